"""A step that has lost a node for good ends when its work is done, not when Slurm gives the node up."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.cluster import Cluster

from .test_restarts import read
from .test_supervision import worker

PATIENCE_S = 90
STAY = """
import os, time
place, attempt, rank = (os.environ[name] for name in ("PLACE", "SLAUNCH_ATTEMPT", "RANK"))
open(f"{place}/up.{attempt}.{rank}", "w").close()
time.sleep(0 if int(attempt) else 600)
"""


@pytest.fixture(name="patient")
def patient_fixture() -> Iterator[Cluster]:
    """A cluster on which Slurm waits for silent nodes as long as by default."""
    with Cluster(nodes=2, settings=("SlurmdTimeout=300", "KillWait=1")).running() as cluster:
        yield cluster


def test_p98_srun_does_not_wait_for_a_dead_node(patient: Cluster) -> None:
    place = patient.scratch
    options = ["--nnodes", "1:2", "--nproc-per-node", "1", "--log-dir", f"{place}/logs", worker(patient, "stay", STAY)]
    words = ["srun", "-N2", "--ntasks-per-node=1", "-c2", "--no-kill", "--kill-on-bad-exit=0", "slaunch", *options]
    job = patient.start(words, env={"PLACE": place})
    said = lambda: f"{os.listdir(place)} {read(f'{place}/logs/agent.0.jsonl')}"  # noqa: E731
    patient.wait_until(lambda: os.path.exists(f"{place}/up.0.0") and os.path.exists(f"{place}/up.0.1"), PATIENCE_S, said)
    patient.fail("n2")
    patient.wait_until(lambda: os.path.exists(f"{place}/up.1.0"), PATIENCE_S, said)
    done = patient.wait(job, PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "ended well" in done.stderr
    assert "srun would wait until Slurm gives the lost node up" in done.stderr
