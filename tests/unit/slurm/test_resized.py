"""A shell whose job has lost or gained nodes since its variables were set."""

import pytest

from slaunch.allocation.values import Allocation, Shell, StepShape
from slaunch.errors import AllocationError, MissingToolError
from slaunch.slurm.resized import as_it_is_now, taken
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
    smaller = listed == "n[1-2]"
    cpus = 8 if smaller else 0  # nobody says how many it has on its new nodes
    assert shell.shape == StepShape(len(shell.allocation.nodes), cpus_per_task=cpus, overlap=smaller, resized=True)
    assert ("--overlap" in step_call(shell, {}, ("x",)).argv) == smaller, "a dead step's CPUs count as taken"
    assert shell.allocation.nodes == (("n1", "n2") if listed == "n[1-2]" else ("n1", "n2", "n3", "n4", "n5", "n6"))
    assert f"from 4 to {len(shell.allocation.nodes)} nodes" in shell.allocation.warnings[-1]


def test_srun_does_not_read_the_jobs_old_size():
    old = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_NODELIST": "n[1-4]", "SLURM_JOB_CPUS_PER_NODE": "8(x4)", "SLURM_JOB_ID": "7"}
    env = {**old, "SLURM_JOB_NUM_NODES": "4"}
    assert step_call(JOB, env, ("x",)).env == env
    grown = as_it_is_now(JOB, answering("JobId=7 NodeList=n[1-6]"))
    assert step_call(grown, env, ("x",)).env == {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "6"}


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


def knowing(listed, **states):
    """A controller that knows job 7 and nodes."""

    def ask(argv, limit_s):
        if argv[:4] == ("scontrol", "--oneliner", "show", "node"):
            return f"NodeName={argv[4]} Arch=x86_64 State={states[argv[4]]} Weight=1"
        return answering(f"JobId=7 NodeList={listed}")(argv, limit_s)

    return ask


@pytest.mark.parametrize(
    ("listed", "state", "found"),
    [
        ("n[1-2]", "IDLE", ("n3",)),
        ("n[1-2]", "ALLOCATED", ("n3",)),
        ("n[1-2]", "MIXED+COMPLETING", ("n3",)),
        ("n[1-2]", "DOWN", ()),
        ("n[1-2]", "IDLE*", ()),
        ("n[1-2]", "IDLE+NOT_RESPONDING", ()),
        ("n[1-3]", "IDLE", ()),
        ("(null)", "IDLE", ()),
    ],
)
def test_a_node_that_is_well_and_no_longer_the_jobs_was_taken_from_it(listed, state, found):
    assert taken("7", ["n3"], knowing(listed, n3=state)) == found


def test_nothing_was_taken_as_far_as_a_silent_controller_says():
    assert taken("7", ["n3"], failing(AllocationError)) == ()
    assert taken("7", ["n3"], failing(MissingToolError)) == ()
