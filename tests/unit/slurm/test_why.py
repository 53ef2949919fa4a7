"""Why Slurm stops a job, from what scontrol of Slurm 22.05 says while it does (lines shortened to the fields that are read)."""

from __future__ import annotations

import pytest

from slaunch.slurm.why import read_reason

COMMON = "JobId=3 JobName=job.sh UserId=hpc(1000) Restarts=0 RunTime=00:00:37 TimeLimit=00:01:00"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("JobState=COMPLETING Reason=TimeLimit PreemptTime=None", "the job reached its time limit of 00:01:00"),
        ("JobState=TIMEOUT Reason=TimeLimit PreemptTime=None", "the job reached its time limit of 00:01:00"),
        ("JobState=RUNNING Reason=None PreemptTime=2026-11-30T12:59:31", "the job was preempted"),
        ("JobState=PREEMPTED Reason=None PreemptTime=None", "the job was preempted"),
        ("JobState=CANCELLED Reason=None PreemptTime=None", "the job was cancelled"),
        ("JobState=RUNNING Reason=None PreemptEligibleTime=2026-11-30T12:58:54 PreemptTime=None", ""),
        ("", ""),
    ],
)
def test_p82_reasons(fields: str, words: str) -> None:
    assert read_reason(f"{COMMON} {fields}") == words
