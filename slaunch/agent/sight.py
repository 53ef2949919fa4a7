"""What the agents see of their workers while they run: for `slaunch status` and for metrics; no decision depends on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from slaunch.agent.crew import Worker
from slaunch.agent.follow import Follower
from slaunch.agent.logs import tail
from slaunch.agent.seen import Sight
from slaunch.agent.tree import descendants
from slaunch.frozen import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
COUNTED_BYTES = 16 << 20
"""Of each file's output, so much is counted at a time; the rest the next time."""
LINE_CHARS = 200
STATES = {"T": "stopped", "D": "waiting"}
"""State letters of a process that are worth a word: stopped by a signal; in an uninterruptible wait, e.g. for a file server."""


@dataclass
class _Trace:
    """What was last seen of a worker."""

    ticks: int
    at: float
    bytes: int = 0
    lines: int = 0


class Looker:
    """Looks at one node's workers.

    Args:
        workers: the node's.
        on_devices: tells of a rank's devices, as `Gauges.on_devices`.
        count: count lines, too; it reads all output once more.
    """

    def __init__(
        self, workers: Callable[[], Iterable[Worker]], on_devices: Callable[[int], tuple[int, int, int]], count: bool = False
    ) -> None:
        self._workers = workers
        self._on_devices = on_devices
        self._count = count
        self._traces: dict[int, _Trace] = {}
        self._files: dict[str, Follower] = {}

    def look(self, now: float) -> tuple[Sight, ...]:
        """What each of them does; `now` is monotonic."""
        return tuple(self._sight(worker, now) for worker in self._workers())

    def renew(self) -> None:
        """Other workers run now."""
        self._traces.clear()
        for file in self._files.values():
            file.close()
        self._files.clear()

    close = renew

    def _sight(self, worker: Worker, now: float) -> Sight:
        pids = [] if worker.ended else [worker.pid, *descendants(worker.pid)]
        ticks = sum(map(_ticks, pids))
        trace = self._traces.setdefault(worker.spec.rank, _Trace(ticks, now))
        cpus = max(0.0, (ticks - trace.ticks) / _TICKS / (now - trace.at)) if now > trace.at else 0.0
        trace.ticks, trace.at = ticks, now
        self._add_output(worker, trace)
        held, most, percent = self._on_devices(worker.spec.rank)
        newest = max((worker.log, worker.err_log), key=_changed_s)
        lines = tail(newest, worker.log_start if newest == worker.log else worker.err_start)
        return Sight(
            worker.spec.rank,
            worker.spec.local_rank,
            worker.spec.role,
            worker.pid,
            "ended" if worker.ended else STATES.get(_state(worker.pid), "running"),
            round(cpus, 2),
            sum(map(_resident, pids)),
            most,
            -1 if worker.ended else held,
            -1 if worker.ended else percent,
            trace.bytes,
            trace.lines if self._count else -1,
            round(max(0.0, time.time() - _changed_s(newest)), 1),
            next((line[:LINE_CHARS] for line in reversed(lines) if line), ""),
        )

    def _add_output(self, worker: Worker, trace: _Trace) -> None:
        """Bytes by the size of the files, or by reading them where lines are counted or files rotated."""
        if not self._count:
            trace.bytes = output_bytes(worker)
            return
        for path, start in files_of(worker):
            try:
                follower = self._files.get(path) or self._files.setdefault(path, Follower(path, start))
            except OSError:
                continue
            read = 0
            while read < COUNTED_BYTES and (data := follower.read()):
                read += len(data)
                trace.lines += data.count(b"\n")
            trace.bytes += read


def files_of(worker: Worker) -> list[tuple[str, int]]:
    """A worker's log files, and where this attempt's part of each begins."""
    return [(worker.log, worker.log_start), *([(worker.err_log, worker.err_start)] if worker.err_log else [])]


def output_bytes(worker: Worker) -> int:
    """How much it has said in this attempt, by the size of its files."""
    return sum(max(0, _size(path) - start) for path, start in files_of(worker))


def _stat(pid: int) -> list[str]:
    """The fields of proc_pid_stat(5) from the third on; [] if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _state(pid: int) -> str:
    return (_stat(pid) or [""])[0]


def _ticks(pid: int) -> int:
    """Clock ticks of CPU that a process, and those of its children that have ended, have used."""
    return sum(map(int, _stat(pid)[11:15]))


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _changed_s(path: str) -> float:
    try:
        return os.stat(path).st_mtime if path else 0.0
    except OSError:
        return 0.0
