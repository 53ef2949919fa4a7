"""How long each phase of the start took, from the process's own start to the workers' first output, for the agent's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from math import inf

from slaunch.agent.crew import Worker
from slaunch.agent.journal import Journal, since_start_s

BEGAN = "SLAUNCH_BEGAN"
"""Variable with the time at which the command was started that started this step, seconds since the epoch."""
FIRST_LOOK_S, LAST_LOOK_S = 0.01, 1.0
"""How soon after the start to look for output; then at ever longer intervals."""


class Phases:
    """The phases so far. `interpreter` is everything before this object was made: Python's start, imports, options."""

    def __init__(self, env: Mapping[str, str]) -> None:
        now = time.monotonic()
        self._start = now - since_start_s()
        self._ends = [("interpreter", now)]
        self._step_s = step_s(env.get(BEGAN, ""), time.time() - (now - self._start))

    def mark(self, name: str) -> None:
        """A phase ends."""
        self._ends.append((name, time.monotonic()))

    def spawned(self, journal: Journal) -> None:
        """The last phase ends. A line for each: its name, how long it took, and when it ended, in seconds from this process's
        start.
        """
        self.mark("spawn")
        if self._step_s is not None:
            journal.note("phase", name="step", took_s=round(self._step_s, 4), ended_s=0.0)
        before = self._start
        for name, end in self._ends:
            journal.note("phase", name=name, took_s=round(end - before, 4), ended_s=round(end - self._start, 4))
            before = end


class _NoPhases(Phases):
    """Where nobody has timed the start."""

    def __init__(self) -> None:
        pass

    def spawned(self, journal: Journal) -> None:
        """Nothing is known."""


NO_PHASES: Phases = _NoPhases()


def began(env: Mapping[str, str]) -> dict[str, str]:
    """What a process that starts a step tells the tasks of that step."""
    return {BEGAN: env.get(BEGAN) or f"{time.time() - since_start_s():.3f}"}


def step_s(began_at: str, own_s: float) -> float | None:
    """How long it took from the command to this process, by the clocks of both machines; None where no command started it."""
    try:
        return max(0.0, own_s - float(began_at))
    except ValueError:
        return None


class FirstOutput:
    """Looks for the first output of a node's workers.

    Args:
        workers: the node's.
        journal: is told of it.
        now: monotonic.
    """

    def __init__(self, workers: Callable[[], Iterable[Worker]], journal: Journal, now: float) -> None:
        self._workers = workers
        self._journal = journal
        self.start(now)

    def start(self, now: float) -> None:
        """Workers start."""
        self._since = now
        self._wait_s = FIRST_LOOK_S
        self.due = now + self._wait_s

    def tick(self, now: float) -> None:
        """Look, if it is time."""
        if now < self.due:
            return
        from slaunch.agent.sight import output_bytes  # workers do not wait for it

        self._wait_s = min(LAST_LOOK_S, self._wait_s * 1.5)
        self.due = now + self._wait_s
        workers = list(self._workers())
        speaking = [worker.spec.rank for worker in workers if output_bytes(worker)]
        if speaking:
            self._journal.note("phase", name="first output", took_s=round(now - self._since, 4), rank=min(speaking))
        if speaking or (workers and all(worker.ended for worker in workers)):
            self.due = inf
