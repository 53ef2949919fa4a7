"""A shell whose job has lost or gained nodes since its variables were set."""

import pytest

from slaunch.allocation.values import Allocation, Shell, StepShape
from slaunch.errors import AllocationError, MissingToolError
from slaunch.slurm.resized import as_it_is_now
from slaunch.slurm.step import step_call

JOB = Shell(Allocation("slurm", "7", nodes=("n1", "n2", "n3", "n4")), StepShape(4, cpus_per_task=8))


def answering(text):
    """A controller that knows job 7."""

    def ask(argv, limit_s):
        assert argv == ("scontrol", "--oneliner", "show", "job", "7")
        assert limit_s <= 10
        return text

    return ask


def failing(error):
    """A controller that cannot be asked."""

    def ask(argv, limit_s):
        raise error("ask", "no", "later")

    return ask


@pytest.mark.parametrize("listed", ["n[1-2]", "n[1-6]"])
def test_the_nodes_of_now_are_used_and_told(listed):
    shell = as_it_is_now(JOB, answering(f"JobId=7 JobName=x NodeList={listed} BatchHost=n1 NumNodes=2"))
    assert shell.shape == StepShape(len(shell.allocation.nodes), cpus_per_task=8, overlap=listed == "n[1-2]")
    assert ("--overlap" in step_call(shell, {}, ("x",)).argv) == (listed == "n[1-2]"), "a dead step's CPUs count as taken"
    assert shell.allocation.nodes == (("n1", "n2") if listed == "n[1-2]" else ("n1", "n2", "n3", "n4", "n5", "n6"))
    assert f"from 4 to {len(shell.allocation.nodes)} nodes" in shell.allocation.warnings[-1]


@pytest.mark.parametrize(
    "ask",
    [
        answering("JobId=7 NodeList=n[1-4] BatchHost=n1"),
        answering("JobId=7 NodeList=(null)"),
        answering("JobId=7"),
        answering("NodeList=n[1-"),
        failing(MissingToolError),
        failing(AllocationError),
    ],
)
def test_nothing_changes_without_news(ask):
    assert as_it_is_now(JOB, ask) is JOB


def test_other_launchers_and_components_are_not_asked_about():
    parts = Shell(Allocation("slurm", "7"), StepShape(2, het_groups=(0, 1)))
    other = Shell(Allocation("pbs", "7"), StepShape(2))
    assert as_it_is_now(parts, failing(AssertionError)) is parts
    assert as_it_is_now(other, failing(AssertionError)) is other
