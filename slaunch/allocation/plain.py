"""No launcher at all: one process on one machine."""

from __future__ import annotations

from slaunch.allocation.reader import PLAIN, Env, Given, Reader
from slaunch.allocation.values import Allocation, Evidence, Sighting, Slot, Task


def sight(env: Env) -> Sighting:
    """Return the shallowest sighting: it holds wherever no launcher's variables are."""
    return Sighting("plain", PLAIN, (Evidence("(none)", "", "no variable of a scheduler or MPI launcher decides"),))


def read(given: Given) -> Task:
    """Return the one task of a plain machine."""
    nodes = (given.host,) if given.host else ()
    allocation = Allocation("plain", nodes=nodes, tasks_per_node=(1,) * len(nodes), root=given.host)
    return Task(allocation, Slot(rank=0, size=1, local_rank=0))


READER = Reader("plain", (), sight, read)
