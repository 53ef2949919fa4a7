"""Who is missing, in words."""

import pytest

from slaunch.allocation.values import Allocation
from slaunch.rendezvous.names import missing_text, rank_text, some


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "task 3"),
        ([0, 1, 2, 5], "tasks 0-2, 5"),
        ([], "tasks "),
        (list(range(0, 40, 2)), "tasks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"),
    ],
)
def test_ranks(ranks, text):
    assert rank_text(ranks) == text


def test_some():
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"


def test_one_task_per_node_is_named_by_its_node():
    allocation = Allocation("slurm", nodes=("n1", "n2", "n3"), tasks_per_node=(1, 1, 1))
    assert missing_text([1, 2], {0: "n1"}, allocation) == "n2 (task 1), n3 (task 2)"


def test_several_tasks_per_node_are_counted_by_node():
    """Which task is on which node depends on the distribution, so it is not guessed."""
    allocation = Allocation("slurm", nodes=("n1", "n2"), tasks_per_node=(2, 2))
    assert missing_text([1, 3], {0: "n1", 2: "n2"}, allocation) == "tasks 1, 3; by node: n1 (1 of 2 here), n2 (1 of 2 here)"
    assert missing_text([2, 3], {0: "n1", 1: "n1"}, allocation) == "tasks 2-3; by node: n2 (0 of 2 here)"


def test_without_nodes_only_ranks_are_named():
    assert missing_text([1], {0: "x"}, Allocation("hydra")) == "task 1"


def test_thousands_are_named_shortly():
    nodes = tuple(f"n{i}" for i in range(5000))
    allocation = Allocation("slurm", nodes=nodes, tasks_per_node=(1,) * 5000)
    assert len(missing_text(list(range(1, 5000)), {0: "n0"}, allocation)) < 200
