"""Notices workers that do not run because something has stopped them: a signal, or a debugger.

Such a worker neither ends nor says anything, and its peers wait for it. The kernel does not tell who sent SIGSTOP; a debugger it
names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slaunch.agent.silence import Watched
from slaunch.agent.tree import describe

LOOK_S = 1.0
"""Between two looks."""
PATIENCE_S = 2.0
"""Stopped for so long, it is told: `scontrol suspend` and Ctrl-Z stop the agent as well, within that time."""


class Halted:
    """The looks of one agent.

    Args:
        workers: the node's workers that run, at the time of a look.
        tell: takes a line on a worker that is stopped, or goes on.
    """

    def __init__(self, workers: Callable[[], Sequence[Watched]], tell: Callable[[str], None]) -> None:
        self.due = 0.0
        self._workers = workers
        self._tell = tell
        self._since: dict[int, float] = {}
        self._told: set[int] = set()

    def renew(self) -> None:
        """Other workers run now, or this agent was stopped itself."""
        self._since.clear()
        self._told.clear()

    def tick(self, now: float) -> None:
        """Look, if it is time."""
        if now < self.due:
            return
        self.due = now + LOOK_S
        for worker in self._workers():
            self._look(worker, now)

    def _look(self, worker: Watched, now: float) -> None:
        state, tracer = status(worker.pid)
        if state not in ("T", "t"):
            self._since.pop(worker.rank, None)
            if worker.rank in self._told:
                self._told.discard(worker.rank)
                self._tell(f"rank {worker.rank} (pid {worker.pid}) goes on")
            return
        stopped_s = now - self._since.setdefault(worker.rank, now)
        if stopped_s >= PATIENCE_S and worker.rank not in self._told:
            self._told.add(worker.rank)
            self._tell(f"rank {worker.rank} (pid {worker.pid}) {by_whom(worker.pid, tracer)}")


def by_whom(pid: int, tracer: int) -> str:
    """What keeps a stopped process from running, in words."""
    if tracer:
        return f"is held by a debugger, {describe(tracer)}"
    return f"has been stopped by a signal (SIGSTOP or the like); `kill -CONT {pid}` lets it go on"


def status(pid: int) -> tuple[str, int]:
    """State letter and tracer of a process, from proc_pid_status(5); ("", 0) if it is gone."""
    state, tracer = "", 0
    try:
        with open(f"/proc/{pid}/status", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name == "State":
                    state = value.split()[0]
                if name == "TracerPid":
                    return state, int(value)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return state, tracer
