"""Looks now and then whether workers are where the plan put them, and tells of each that is not, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from slaunch.agent.crew import Worker
from slaunch.node.verify import Placed, deviations

FIRST_S = (5.0, 60.0)
"""After the start: once libraries have been loaded, and once training has begun."""
EVERY_S = 600.0


class Placement:
    """The looks of one agent.

    Args:
        workers: the node's workers at the time of a look.
        tell: takes a line on what is wrong.
        first_s: seconds from the start to the first looks; further ones follow every `EVERY_S`.
    """

    def __init__(
        self, workers: Callable[[], Iterable[Worker]], tell: Callable[[str], None], first_s: Sequence[float] = FIRST_S
    ) -> None:
        self._workers = workers
        self._tell = tell
        self._first_s = first_s
        self._told: set[int] = set()
        self.start()

    def start(self) -> None:
        """Workers start now, perhaps anew."""
        now = time.monotonic()
        self._coming = [now + seconds for seconds in self._first_s]
        self.due = self._coming.pop(0)
        self._told.clear()

    def tick(self, now: float) -> None:
        """Look, if it is time."""
        if now < self.due:
            return
        self.due = self._coming.pop(0) if self._coming else now + EVERY_S
        new = {rank: text for rank, text in deviations(placed(self._workers())).items() if rank not in self._told}
        self._told.update(new)
        if new:
            more = f"; {len(new) - 1} more workers of this node are not in their place" if len(new) > 1 else ""
            self._tell(next(iter(new.values())) + more)


def placed(workers: Iterable[Worker]) -> Iterable[Placed]:
    """The places of those workers that run."""
    for worker in workers:
        spec = worker.spec
        if not worker.ended:
            yield Placed(spec.rank, worker.pid, spec.cpus, spec.memory, spec.memory_policy)
