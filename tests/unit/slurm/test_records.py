"""Jobs as `scontrol --oneliner show job` tells them. The lines are recorded from Slurm 22.05, shortened."""

from collections.abc import Sequence

import pytest

from slaunch.errors import AllocationError
from slaunch.slurm.records import Record, look, parse, past

TASK = (
    "JobId=5 ArrayJobId=4 ArrayTaskId=0 JobName=p.sh UserId=hpc(1001) GroupId=hpc(1001) MCS_label=N/A Priority=4294901756 "
    "Nice=0 Account=(null) QOS=(null) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 "
    "Reboot=0 ExitCode=3:0 RunTime=00:00:01 TimeLimit=365-00:00:00 NodeList=n[1-2] BatchHost=n1 NumNodes=2 CPUs/Task=1 "
    "ReqB:S:C:T=0:0:*:* TRES=cpu=2,mem=200M,node=2,billing=2 Socks/Node=* NtasksPerN:B:S:C=1:0:*:* Command=/tmp/p.sh "
    "WorkDir=/tmp/my runs StdErr=/tmp/my runs/p-5.err StdIn=/dev/null StdOut=/tmp/my runs/p-5.out Power= "
)
WAITING = "JobId=4 ArrayJobId=4 ArrayTaskId=2-9%2 JobName=p JobState=PENDING Reason=Dependency Restarts=0 NodeList=(null)"
PART = "JobId=30 HetJobId=29 HetJobOffset=1 HetJobIdSet=29-30 JobName=p JobState=RUNNING Reason=None ExitCode=0:0 NodeList=n3"


def test_a_record_is_read() -> None:
    assert parse(TASK) == Record(
        *("4_0", "FAILED", "NonZeroExitCode", 2, 3, "/tmp/my runs/p-5.out", "/tmp/my runs/p-5.err", "n[1-2]", "p.sh")
    )
    assert parse(WAITING) == Record("4_[2-9%2]", "PENDING", "Dependency", name="p")
    assert parse(PART).id == "29+1"


@pytest.mark.parametrize(
    ("state", "told", "code"),
    [
        ("COMPLETED", 0, 0),
        ("FAILED", 3, 3),
        ("FAILED", 0, 1),
        ("TIMEOUT", 0, 124),
        ("CANCELLED", 0, 143),
        ("NODE_FAIL", 0, 75),
        ("OUT_OF_MEMORY", 0, 137),
        ("PREEMPTED", 0, 143),
    ],
)
def test_p86_only_a_completed_job_has_code_0(state: str, told: int, code: int) -> None:
    assert Record("1", state, exit=told).code == code


def test_a_signal_is_a_code_as_in_a_shell() -> None:
    assert parse("JobId=1 JobState=FAILED ExitCode=0:9").code == 137


def test_a_job_that_is_forgotten_is_none_but_a_silent_controller_is_an_error() -> None:
    def forgotten(argv: Sequence[str]) -> str:
        raise AllocationError("run", "slurm_load_jobs error: Invalid job id specified", "")

    def silent(argv: Sequence[str]) -> str:
        raise AllocationError("run", "no answer within 10 s", "")

    assert look("9", ask=forgotten) == ()
    with pytest.raises(AllocationError):
        look("9", ask=silent)


def test_accounting_knows_what_the_controller_has_forgotten() -> None:
    """In the form that sacct's manual gives for --parsable2."""
    text = "7_0|COMPLETED|0:0\n7_1|CANCELLED by 1001|0:15\n7_2|FAILED|3:0\n"
    assert [record.code for record in past("7", ask=lambda argv: text)] == [0, 143, 3]

    def disabled(argv: Sequence[str]) -> str:
        raise AllocationError("run", "Slurm accounting storage is disabled", "")

    assert past("7", ask=disabled) == ()


def test_the_cluster_is_asked_that_has_the_job() -> None:
    asked: list[Sequence[str]] = []

    def ask(argv: Sequence[str]) -> str:
        asked.append(argv)
        return TASK + "\n"

    assert look("4", "east", ask)[0].id == "4_0"
    assert asked == [("scontrol", "--oneliner", "--clusters=east", "show", "job", "4")]
