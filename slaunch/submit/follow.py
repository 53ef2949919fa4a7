"""Wait for a job in the queue to its end, tell what becomes of it, and show its output.

Slurm is asked seldom: after a second at first, then after ever longer pauses, sooner again when something has changed. The output
is read from its file meanwhile. A job may start more than once (requeue, preemption), and an array is many jobs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

from slaunch.errors import AllocationError
from slaunch.frozen import dataclass
from slaunch.slurm.records import PASSING, Record, look
from slaunch.submit.tail import Tail, old_bytes

FIRST_S, GROWTH = 1.0, 1.5
"""Pause between the first two questions to Slurm, and by how much it grows."""
TICK_S = 0.3
"""Pause between two looks at the output."""
PATIENCE_S = 600.0
"""How long the controller may be away."""
SETTLE_S = 5.0
"""How long the output's last lines may take to appear here after the end of the job, on a slow file system."""
NEVER = "DependencyNeverSatisfied"


@dataclass(frozen=True)
class Step:
    """What to do after a look at a job.

    Attributes:
        told: lines for the user.
        done: the job has ended, or cannot start.
        changed: something happened since the look before.
    """

    told: tuple[str, ...]
    done: bool
    changed: bool


def step(before: Mapping[str, Record], now: Sequence[Record]) -> Step:
    """Compare two looks at a job. Pure.

    Args:
        before: the records of the look before, by id; {} at first.
        now: those of this look.
    """
    told = tuple(line for record in now if (line := change(before.get(record.id), record)))
    stuck = [record for record in now if record.state == "PENDING" and record.reason == NEVER]
    ended = bool(now) and all(record.ended for record in now)
    # a job that will be back in a moment looks as if it had ended: look twice
    passing = any(record.state in PASSING and before.get(record.id) != record for record in now)
    return Step(told, (ended and not passing) or (bool(stuck) and len(stuck) == len(now)), bool(told))


def change(before: Record | None, now: Record) -> str:
    """What happened to a job between two looks, in a line; "" if nothing did."""
    if before is not None and (before.state, before.restarts, before.reason) == (now.state, now.restarts, now.reason):
        return ""
    again = f", start {now.restarts + 1}" if now.restarts else ""
    if before is not None and now.restarts > before.restarts and now.state == "PENDING":
        return f"job {now.id} is back in the queue ({now.reason})"
    if now.state == "PENDING":
        why = "" if now.reason in ("None", "") else f" ({now.reason})"
        return f"job {now.id} waits in the queue{why}"
    if now.state == "RUNNING":
        return f"job {now.id} runs on {now.nodes}{again}" if before is None or before.state != "RUNNING" else ""
    if now.ended:
        return f"job {now.id} has ended: {now.state}, exit code {now.code}{again}"
    return f"job {now.id} is {now.state}"


def next_pause_s(before_s: float, changed: bool, longest_s: float) -> float:
    """How long not to ask Slurm after a look, from the pause before it and whether it has shown something new."""
    return min(FIRST_S if changed or not before_s else before_s * GROWTH, longest_s)


def code_of(records: Sequence[Record]) -> int:
    """The exit code of the whole: a job's own, of an array's tasks the highest, as with sbatch --wait."""
    leaders = [record for record in records if "+" not in record.id or record.id.endswith("+0")]
    return max((record.code for record in leaders), default=0)


@dataclass(frozen=True)
class Way:
    """How to follow a job.

    Attributes:
        show: show its output.
        poll_s: the longest pause between two questions to Slurm.
        say: how to tell the user something.
        look: how to look at a job, from its id and cluster.
    """

    show: bool
    poll_s: float
    say: Callable[[str], None]
    look: Callable[[str, str], tuple[Record, ...]] = look


class Follower:
    """Follows one job.

    Args:
        job: its id.
        cluster: its cluster; "" = the only one.
        way: how.
        fresh: it has just been submitted: what its output file has already is another job's.
        tails: files to show instead of its output.
    """

    def __init__(self, job: str, cluster: str, way: Way, fresh: bool = False, tails: Sequence[Tail] = ()) -> None:
        self._job, self._cluster, self._way, self._fresh = job, cluster, way, fresh
        self._known: dict[str, Record] = {}
        self._tails: dict[str, Tail] = {tail.path: tail for tail in tails}
        self._own_files = bool(tails)
        self._answered = time.monotonic()

    def run(self) -> tuple[Record, ...]:
        """Follow it to its end; the last that was known of it, () if the controller knows nothing of it.

        Raises:
            AllocationError: the controller is away for too long, or the job can never start.
        """
        pause, at = 0.0, 0.0
        while True:
            if time.monotonic() >= at:
                done, changed = self._look()
                pause = next_pause_s(pause, changed, self._way.poll_s)
                at = time.monotonic() + pause
                if done:
                    break
            self._copy()
            time.sleep(TICK_S)
        self._finish()
        self._refuse_stuck()
        return tuple(self._known.values())

    def _look(self) -> tuple[bool, bool]:
        """Look at the job: whether it has ended, and whether something has changed."""
        try:
            now = self._way.look(self._job, self._cluster)
        except AllocationError as error:
            if time.monotonic() - self._answered > PATIENCE_S:
                raise
            self._way.say(f"Slurm does not answer: {error.seen.splitlines()[0]}")
            return False, False
        self._answered = time.monotonic()
        if not now:
            return True, True
        found = step(self._known, now)
        for line in found.told:
            self._way.say(line)
        self._known = {record.id: record for record in now}
        self._open(now)
        return found.done, found.changed

    def _open(self, now: Sequence[Record]) -> None:
        """Begin with the output of those that have some."""
        if self._own_files or not self._way.show:
            return
        for record in now:
            if record.id.endswith("]") or "+" in record.id.removesuffix("+0"):
                continue
            prefix = f"[{record.id.partition('_')[2]}] ".encode() if "_" in record.id else b""
            for path, out in ((record.output, sys.stdout.buffer), (record.errors, sys.stderr.buffer)):
                if path and path not in self._tails and path != "/dev/null":
                    start = old_bytes(path) if self._fresh and not record.restarts else 0
                    self._tails[path] = Tail(path, out, prefix, start)

    def _copy(self) -> bool:
        return any([tail.copy() for tail in self._tails.values()])

    def _finish(self) -> None:
        """The last lines, until the files grow no more."""
        end = time.monotonic() + SETTLE_S
        quiet = 0
        while quiet < 2 and time.monotonic() < end and self._tails:
            quiet = 0 if self._copy() else quiet + 1
            time.sleep(TICK_S / 3)
        for tail in self._tails.values():
            tail.close()

    def _refuse_stuck(self) -> None:
        stuck = [record.id for record in self._known.values() if record.state == "PENDING"]
        if stuck:
            todo = f"see the job it depends on; `slaunch cancel {self._job}` takes it out of the queue"
            raise AllocationError(f"wait for job {self._job}", f"{', '.join(stuck)}: {NEVER}", todo)
