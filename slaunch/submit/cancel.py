"""`slaunch cancel JOB`: end a job in good order.

What waits in the queue is taken out of it first, so that nothing starts in the place of what ends. What runs is asked to stop
(SIGTERM to its steps): slaunch stops its workers and tells its report. What still runs after a while is cancelled by Slurm.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

from slaunch.errors import AllocationError
from slaunch.jobs import Run, find
from slaunch.slurm.client import ask
from slaunch.slurm.records import Record, look
from slaunch.submit.send import recall

FIRST_S, GROWTH, LONGEST_S = 0.5, 1.5, 5.0
"""Pauses between questions to Slurm."""


def cancel(job: str, patience_s: float, env: Mapping[str, str], say: Callable[[str], None]) -> int:
    """End a job; 0 if it has ended.

    Args:
        job: its id; "12" a whole array or heterogeneous job, "12_3" one task of an array.
        patience_s: how long it may take to stop by itself.
        env: for what is remembered of it.
        say: how to tell the user something.

    Raises:
        AllocationError: Slurm does not know it, or does not end it.
        MissingToolError: there is no scancel.
    """
    cluster = made.cluster if (made := recall(job, env)) else ""
    records = look(job, cluster)
    if not records:
        raise AllocationError(f"cancel job {job}", "Slurm's controller does not know it", "see `squeue --me` for your jobs")
    where = (f"--clusters={cluster}",) if cluster else ()
    if waiting(records):
        ask(("scancel", *where, "--state=PENDING", job))
    if running(records) and any(map(goes_on, find(job, env, os.getcwd()))):
        say(f"job {job}: asked to stop; Slurm ends it in {patience_s:g} s if it does not")
        ask(("scancel", *where, "--signal=TERM", job))
        if wait(job, cluster, patience_s):
            say(f"job {job} has stopped")
            return 0
    if not ended(look(job, cluster)):
        ask(("scancel", *where, job))
        say(f"job {job}: cancelled")
    return 0


def wait(job: str, cluster: str, patience_s: float) -> bool:
    """Wait until the job has ended; whether it has in time."""
    end, pause = time.monotonic() + patience_s, FIRST_S
    while time.monotonic() < end:
        time.sleep(min(pause, max(0.0, end - time.monotonic())))
        pause = min(pause * GROWTH, LONGEST_S)
        if not running(look(job, cluster)):
            return ended(look(job, cluster))
    return False


def goes_on(run: Run) -> bool:
    """Whether a run of slaunch has not told its end: there is no report, or one of a run before the job was requeued."""
    try:
        return os.stat(run.report).st_mtime < run.started_s
    except OSError:
        return True


def waiting(records: Sequence[Record]) -> bool:
    """Whether something of the job waits in the queue."""
    return any(record.state == "PENDING" for record in records)


def running(records: Sequence[Record]) -> bool:
    """Whether something of the job runs, or is just ending."""
    return any(not record.ended and record.state != "PENDING" for record in records)


def ended(records: Sequence[Record]) -> bool:
    """Whether all of the job has ended."""
    return all(record.ended for record in records)
