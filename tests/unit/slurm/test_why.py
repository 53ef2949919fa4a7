"""Why Slurm stops a job, from what scontrol of Slurm 22.05 says while it does (lines shortened to the fields that are read)."""

from __future__ import annotations

from math import inf

import pytest

from slaunch.slurm.why import Why, read_why

COMMON = "JobId=3 JobName=job.sh UserId=hpc(1000) RunTime=00:00:37 TimeLimit=00:01:00"
LIMIT = Why("timeout", "the job reached its time limit of 00:01:00", left_s=0.0)
NODE = "slurmstepd-n1: error: *** JOB 3 ON n1 CANCELLED AT 2026-11-30T15:17:57 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("Restarts=0 JobState=COMPLETING Reason=TimeLimit PreemptTime=None", LIMIT),
        ("Restarts=0 JobState=TIMEOUT Reason=TimeLimit PreemptTime=None", LIMIT),
        ("Restarts=0 JobState=RUNNING PreemptTime=2026-11-30T12:59:31", Why("preemption", "the job is preempted", left_s=23.0)),
        ("Restarts=0 JobState=PREEMPTED Reason=None PreemptTime=None", Why("preemption", "the job is preempted", left_s=23.0)),
        ("Restarts=0 JobState=CANCELLED Reason=None PreemptTime=None", Why("cancel", "the job was cancelled", left_s=23.0)),
        ("Restarts=0 JobState=COMPLETING Reason=None PreemptTime=None", Why("cancel", "the job was cancelled", left_s=23.0)),
        ("Restarts=0 JobState=NODE_FAIL Reason=None PreemptTime=None", Why("node", "a node of the job failed", left_s=23.0)),
        ("Restarts=0 JobState=RUNNING Reason=None PreemptTime=None", Why(left_s=23.0)),
        ("Restarts=1 JobState=COMPLETING", Why("requeue", "the job was put back into the queue", True, 23.0)),
    ],
)
def test_p82_reasons(fields: str, why: Why) -> None:
    assert read_why(f"{COMMON} {fields}", 0) == why


def test_no_answer_is_no_reason() -> None:
    assert read_why("", 0) == Why(left_s=inf)


def test_p88_a_job_that_is_back_in_the_queue_says_who_put_it_there_in_its_own_output() -> None:
    record = f"{COMMON} Restarts=3 JobState=COMPLETING"
    old = "slurmstepd-n1: error: *** JOB 3 ON n1 CANCELLED AT 2026-11-30T15:17:10 DUE TO JOB REQUEUE ***\n"
    new = "slurmstepd-n1: error: *** STEP 3.0 ON n1 CANCELLED AT 2026-11-30T15:17:57 DUE TO PREEMPTION ***\nmore\n"
    assert read_why(record, 2, old + new).kind == "preemption"
    assert read_why(record, 2, new + old).kind == "requeue"
    assert read_why(record, 2, new + old + NODE).kind == "node"
    assert read_why(record, 2, "*** JOB 4 ON n1 CANCELLED AT 2026-11-30T15:17:57 DUE TO PREEMPTION ***").kind == "requeue"
    assert read_why(record, 3, new).kind == "cancel"  # that requeue was before this run
