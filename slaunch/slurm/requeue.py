"""How often a job has been put back into the queue, and why: a small file beside the logs, one for each job.

`requeue.<job>.json` in the directory of the logs. The agent that speaks for the job writes it; the process in the batch script
reads there whether it shall ask Slurm. Slurm counts all requeues (SLURM_RESTART_COUNT): what the file does not explain was its
own doing.
"""

from __future__ import annotations

import json
import os

from slaunch.errors import AllocationError, MissingToolError
from slaunch.frozen import asdict, dataclass, replace
from slaunch.slurm.client import ask

ANY = -1
IDLE_LIMIT = 3
"""A program that tells its progress and has made none in so many runs is not run again, unless the user says otherwise."""
KINDS = ("preempt", "timeout", "failure")
WISH = "put the job back into the queue"
COUNTS = {"preempt": "after a preemption", "timeout": "at the time limit", "failure": "after a failure"}


@dataclass(frozen=True)
class Ledger:
    """What has been.

    Attributes:
        job: the job.
        preempt, timeout, failure, other: number of requeues of each kind; `other`: by Slurm or people, unexplained.
        progress: the furthest step that a worker has told; -1 = none.
        idle: runs in a row that ended by a time limit or a failure and got no further.
        asked: the run (by SLURM_RESTART_COUNT) that is to be followed by another one; -1 = none.
    """

    job: str
    preempt: int = 0
    timeout: int = 0
    failure: int = 0
    other: int = 0
    progress: int = -1
    idle: int = 0
    asked: int = -1

    @property
    def total(self) -> int:
        """All of them."""
        return self.preempt + self.timeout + self.failure + self.other


def path_of(folder: str, job: str) -> str:
    """Return the file's path."""
    return os.path.join(folder, f"requeue.{job}.json")


def read(path: str, job: str) -> Ledger | None:
    """Return what is in the file; None if there is none, or it is another job's or no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            found = Ledger(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.job == job else None


def write(path: str, ledger: Ledger) -> str:
    """Write the file as a whole. What kept it from being written; "" if nothing did."""
    part = f"{path}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(part, "w", encoding="utf-8") as file:
            json.dump(asdict(ledger), file)
        os.replace(part, path)
    except OSError as error:
        return f"{path} was not written: {error.strerror}"
    return ""


def at_start(found: Ledger | None, job: str, restarts: int) -> Ledger:
    """Return the ledger of a run that begins after `restarts` requeues.

    What the file does not explain was Slurm's doing; if there is no file although there have been runs, it is lost, and all of
    them count as failures, lest a job run for ever.
    """
    if restarts == 0:
        return Ledger(job)
    if found is None:
        return Ledger(job, failure=restarts)
    return replace(found, other=found.other + max(0, restarts - found.total), asked=-1)


def refusal(kind: str, ledger: Ledger, budgets: tuple[int, ...], max_idle: int) -> str:
    """Return why the job is not put back into the queue, in words; "" if it is.

    Args:
        kind: one of `KINDS`.
        ledger: what has been, without this time.
        budgets: how often for each of `KINDS`; `ANY` = however often.
        max_idle: runs without progress after which there is none; 0 = `IDLE_LIMIT`, for programs that tell their progress.
    """
    budget = dict(zip(KINDS, budgets, strict=True))[kind]
    if budget != ANY and getattr(ledger, kind) >= budget:
        return f"no requeue: {f'all {budget} {COUNTS[kind]} are used up' if budget else f'none {COUNTS[kind]} is asked for'}"
    limit = max_idle or (IDLE_LIMIT if ledger.progress >= 0 else 0)
    if kind != "preempt" and limit and ledger.idle >= limit:
        return f"no requeue: no progress in {ledger.idle} runs"
    return ""


def with_run(ledger: Ledger, kind: str, progress: int) -> Ledger:
    """Return the ledger after a run that ended as `kind` says and got as far as `progress`."""
    if progress > ledger.progress:
        return replace(ledger, progress=progress, idle=0)
    return replace(ledger, idle=ledger.idle + (kind != "preempt"))


def counted(ledger: Ledger, kind: str, asked: int) -> Ledger:
    """Return the ledger with one more requeue; `asked`: the run that asks for it, -1 if Slurm does it by itself."""
    return replace(ledger, **{kind: getattr(ledger, kind) + 1}, asked=asked)


def ask_slurm(job: str) -> None:
    """Have Slurm put the job back into the queue, which ends it.

    Raises:
        MissingToolError: there is no scontrol.
        AllocationError: Slurm refuses ("operation is presently disabled": the job has Requeue=0), or does not answer in time.
    """
    try:
        ask(("scontrol", "requeue", job))
    except MissingToolError as error:
        raise MissingToolError(WISH, error.seen, error.todo) from None
    except AllocationError as error:
        seen = f"`scontrol requeue {job}`: {error.seen}"
        todo = "submit it by `sbatch --requeue`: Slurm takes back no job that sbatch has not started, where JobRequeue=0 no other"
        raise AllocationError(WISH, seen, todo) from None
