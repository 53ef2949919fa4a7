"""Which component of a heterogeneous job a node belongs to, in recorded steps."""

import json
import os

import pytest

from slaunch.allocation.components import component_of

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "data", "environments")


def components(name):
    """Component by node."""
    with open(os.path.join(DATA, f"{name}.json")) as file:
        tasks = json.load(file)["tasks"]
    return {task["env"].get("SLURMD_NODENAME", ""): component_of(task["env"], "") for task in tasks}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("slurm_het_job_step", {"n4": 0, "n1": 1, "n2": 1}),
        ("slurm_het_job_step_1", {"n1": 1, "n2": 1}),
        ("slurm_het_job_step_swapped", {"n4": 0, "n1": 1}),
        ("slurm_het_step", {"n4": 0, "n1": 1, "n2": 1}),
        ("slurm_step_reordered", {"n1": -1, "n2": -1, "n3": -1}),
    ],
)
def test_p10_the_component_of_every_node(name, found):
    assert components(name) == found
