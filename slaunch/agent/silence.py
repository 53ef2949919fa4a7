"""Notices workers that say nothing any more: no output for a long time, on any of this node's workers.

Output is what every program has; it is measured by the size of the log files. What a silent worker does meanwhile, by /proc,
tells the odd one of a hanging job: in a collective all ranks but one wait in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf

from slaunch.agent.values import Look
from slaunch.frozen import dataclass

LOOKS = 10
"""Looks within one time-out: it is noticed up to a tenth late."""
SHORTEST_S, LONGEST_S = 0.1, 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """A worker that runs, and where its output goes, and its errors if that is another file."""

    rank: int
    pid: int
    log: str
    err_log: str = ""


@dataclass
class Trace:
    """What was last seen of a worker."""

    size: int
    changed: float
    ticks: int
    looked: float
    cpu: float = 0.0


class Silence:
    """Looks at workers now and then. `timeout_s` 0 switches it off."""

    def __init__(self, timeout_s: float, node: int, host: str) -> None:
        self.due = 0.0 if timeout_s else inf
        self._timeout_s = timeout_s
        self._place = node, host
        self._traces: dict[int, Trace] = {}
        self._ranks: set[int] = set()
        self._life_at = -inf

    def renew(self) -> None:
        """Other workers run now."""
        self.due = 0.0 if self._timeout_s else inf
        self._traces.clear()
        self._ranks = set()

    def look(self, workers: Sequence[Watched], now: float) -> tuple[Look, ...] | None:
        """None while one of the workers has said something within the time-out, or has ended; else what each of them does."""
        self.due = now + min(LONGEST_S, max(SHORTEST_S, self._timeout_s / LOOKS))
        traces = [self._trace(worker, now) for worker in workers]
        ranks = {worker.rank for worker in workers}
        if ranks != self._ranks:
            self._ranks, self._life_at = ranks, now
        if workers and now - max(self._life_at, *(trace.changed for trace in traces)) < self._timeout_s:
            return None
        return tuple(self._describe(*pair, now) for pair in zip(workers, traces, strict=True))

    def _trace(self, worker: Watched, now: float) -> Trace:
        size, ticks = _size(worker.log) + (_size(worker.err_log) if worker.err_log else 0), _stat(worker.pid)[1]
        trace = self._traces.setdefault(worker.rank, Trace(size, now, ticks, now))
        if size != trace.size:
            trace.size, trace.changed = size, now
        if now > trace.looked:
            trace.cpu = (ticks - trace.ticks) / _TICKS / (now - trace.looked)
            trace.ticks, trace.looked = ticks, now
        return trace

    def _describe(self, worker: Watched, trace: Trace, now: float) -> Look:
        state, wchan = _stat(worker.pid)[0], _read(f"/proc/{worker.pid}/wchan")
        silent_s = round(now - trace.changed, 1)
        return Look(worker.rank, *self._place, worker.pid, silent_s, round(trace.cpu, 2), state, "" if wchan == "0" else wchan)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _stat(pid: int) -> tuple[str, int]:
    """State letter and clock ticks used, fields 3, 14 and 15 of proc_pid_stat(5)."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], int(fields[11]) + int(fields[12])) if fields else ("", 0)


def _read(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""
