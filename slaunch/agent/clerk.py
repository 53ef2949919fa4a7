"""Asks the scheduler, beside the agent's work, how much time the job has left. The hub's agent alone does.

Slurm before 23.11 tells no job when it ends, and a limit may be changed while the job runs: so squeue is asked after the start,
shortly before the workers are to be warned, and now and then in between.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Mapping
from math import inf

from slaunch.agent.errand import Errand
from slaunch.agent.linux import die_with_parent
from slaunch.clock import wall_s

FIRST_S = 1.0
"""When squeue is asked first: not while the workers start, and not by a job that is over at once."""
ASK_S = 10.0
"""How long squeue may take."""
EVERY_S = 600.0
"""Between two questions."""
FAR_S = 1e9
"""What is told of a limit that has been taken away."""
SHORTLY_S = 20.0
"""Before the warning is due, the limit is looked up once more."""


class Clerk:
    """Asks and tells.

    Args:
        env: this process's environment.
        warn_s: seconds before the end at which something will be done; 0 = nothing, and the first answer is enough.
        tell: takes the seconds left; not called where there is no limit.
        selector, spared: the agent's; see `Errand`.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        warn_s: float,
        tell: Callable[[float], None],
        selector: selectors.BaseSelector,
        spared: set[int],
    ) -> None:
        self._job = env.get("SLURM_JOB_ID", "")
        self._end_s = float(env["SLURM_JOB_END_TIME"]) if env.get("SLURM_JOB_END_TIME", "").isdecimal() else 0.0
        self._warn_s = warn_s
        self._tell = tell
        self._place = selector, spared
        self._errand: Errand | None = None
        self._told = False
        first = time.monotonic() + (0.0 if self._end_s else FIRST_S)
        self._next = first if self._job else inf

    @property
    def due(self) -> float:
        """When there is something to do, on the monotonic clock."""
        return min(self._next, self._errand.due if self._errand else inf)

    def tick(self, now: float) -> None:
        """Do it, if it is time."""
        if self._errand:
            self._errand.tick(now)
        if now < self._next:
            return
        self._next = inf
        if self._end_s:  # known from the environment, at the start only
            left_s, self._end_s = self._end_s - wall_s(), 0.0
            self._answered({"left_s": left_s})
            return
        self.close()
        self._errand = Errand(lambda: {"left_s": left_s_of(self._job)}, self._answered, ASK_S, *self._place)

    def close(self) -> None:
        """End what has been started."""
        if self._errand:
            self._errand.close()
        self._errand = None

    def _answered(self, said: Mapping[str, float] | None) -> None:
        now = time.monotonic()
        left_s = said["left_s"] if said else -1.0
        if left_s >= 0 and (self._told or left_s < inf):  # less than 0: squeue is not there, or does not know
            self._told = True
            self._tell(min(left_s, FAR_S))
        if self._warn_s:
            warn_s = left_s - self._warn_s
            self._next = now + (min(EVERY_S, warn_s - SHORTLY_S) if warn_s > SHORTLY_S + 5 else EVERY_S)


def left_s_of(job: str) -> float:
    """The seconds that a job has left, inf without a limit; -1 if Slurm cannot be asked.

    A squeue that hangs ends with this process.
    """
    import subprocess

    from slaunch.errors import AllocationError
    from slaunch.slurm.client import duration_s

    own, argv = os.getpid(), ("squeue", "--noheader", f"--jobs={job}", "--format=%L")
    die = lambda: die_with_parent(own)  # noqa: E731
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, preexec_fn=die)
        return duration_s(done.stdout.split()[0])
    except (OSError, IndexError, AllocationError):
        return -1.0
