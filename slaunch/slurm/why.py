"""Why Slurm stops a job, asked while it does."""

from __future__ import annotations

from slaunch.errors import AllocationError, MissingToolError
from slaunch.slurm.client import ask, field

LIMIT_S = 2.0
"""The job is being stopped: KillWait, 30 s by default, is all the time there is."""


def why_stopped(job: str) -> str:
    """Return the reason in words; "" if Slurm does not tell, or not in time."""
    try:
        return read_reason(ask(("scontrol", "--oneliner", "show", "job", job), LIMIT_S))
    except (AllocationError, MissingToolError):
        return ""


def read_reason(text: str) -> str:
    """Return the reason in words from `scontrol --oneliner show job`; "" if it says none."""
    state, reason = field(text, "JobState"), field(text, "Reason")
    if reason == "TimeLimit" or state == "TIMEOUT":
        return f"the job reached its time limit of {field(text, 'TimeLimit')}"
    if state == "PREEMPTED" or field(text, "PreemptTime") not in ("", "None"):
        return "the job was preempted"
    if state == "CANCELLED":
        return "the job was cancelled"
    return ""
