"""Why Slurm stops a job, asked while it does.

What Slurm 22.05 shows of a job that is being stopped (tried): at its time limit `Reason=TimeLimit`; put back into the queue, by
anybody, `Restarts` one more than the job was told; cancelled, none of that; each time `JobState=COMPLETING`. With a grace time a
preemption shows first as `PreemptTime`. Whether a job that is back in the queue was preempted, only slurmd's line in the job's
own error file tells.
"""

from __future__ import annotations

from slaunch.errors import AllocationError, MissingToolError
from slaunch.frozen import dataclass
from slaunch.slurm.client import ask, duration_s, field

LIMIT_S = 2.0
"""The job is being stopped: KillWait, 30 s by default, is all the time there is."""
TAIL_BYTES = 8192
ENDING = ("COMPLETING", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT", "PREEMPTED")


@dataclass(frozen=True)
class Why:
    """What Slurm says.

    Attributes:
        kind: "timeout", "preemption", "requeue" (a preemption or somebody's wish), "node", "cancel", or "" (it was not Slurm).
        text: the same for people.
        queued: the job is back in the queue already.
        left_s: seconds until its time limit; inf if none is known.
    """

    kind: str = ""
    text: str = ""
    queued: bool = False
    left_s: float = float("inf")


def why_stopped(job: str, restarts: int) -> Why:
    """Return what Slurm says of a job that has been requeued so often; nothing if it does not answer in time."""
    try:
        record = ask(("scontrol", "--oneliner", "show", "job", job), LIMIT_S)
    except (AllocationError, MissingToolError):
        return Why()
    return read_why(record, restarts, end_of(field(record, "StdErr")))


def read_why(record: str, restarts: int, said: str = "") -> Why:
    """Return it from `scontrol --oneliner show job`.

    Args:
        record: its answer.
        restarts: how often the job had been requeued when this run began.
        said: the end of the job's error file.
    """
    state, reason, left_s = field(record, "JobState"), field(record, "Reason"), time_left_s(record)
    again = field(record, "Restarts")
    if again.isdecimal() and int(again) > restarts:
        return Why(*requeued_by(said, field(record, "JobId")), queued=True, left_s=left_s)
    if reason == "TimeLimit" or state == "TIMEOUT":
        return Why("timeout", f"the job reached its time limit of {field(record, 'TimeLimit')}", left_s=0.0)
    if state == "PREEMPTED" or field(record, "PreemptTime") not in ("", "None"):
        return Why("preemption", "the job is preempted", left_s=left_s)
    if state == "NODE_FAIL" or reason == "NodeDown":
        return Why("node", "a node of the job failed", left_s=left_s)
    return Why("cancel", "the job was cancelled", left_s=left_s) if state in ENDING else Why(left_s=left_s)


def requeued_by(said: str, job: str) -> tuple[str, str]:
    """Return kind and text of a requeue, by slurmd's last line on the job."""
    lines = [line for line in said.splitlines() if f"JOB {job} ON" in line or f"STEP {job}." in line]
    last = lines[-1] if lines else ""
    if "DUE TO PREEMPTION" in last:
        return "preemption", "the job was preempted; Slurm has put it back into the queue"
    if "NODE FAILURE" in last:
        return "node", "a node failed; Slurm has put the job back into the queue"
    return "requeue", "the job was put back into the queue"


def time_left_s(record: str) -> float:
    """Return the seconds until the time limit; inf if they are not told."""
    try:
        return max(0.0, duration_s(field(record, "TimeLimit")) - duration_s(field(record, "RunTime")))
    except AllocationError:
        return float("inf")


def end_of(path: str) -> str:
    """Return the end of a file; "" if it cannot be read here."""
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
