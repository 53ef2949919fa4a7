"""Intel MPI: a Hydra of its own, which marks its processes with HYDRA_BSTRAP_* (recorded with 2021.19)."""

from __future__ import annotations

from slaunch.allocation import pmi1
from slaunch.allocation.reader import Env, Given, Reader
from slaunch.allocation.values import Sighting, Task


def sight(env: Env) -> Sighting:
    """See Intel MPI's world."""
    if "HYDRA_BSTRAP_NODE_ID" not in env or "PMI_RANK" not in env:
        return Sighting("intelmpi", 0)
    return pmi1.sighting(env, "intelmpi")


def read(given: Given) -> Task:
    """Return this rank's place."""
    return pmi1.task(given.env, "intelmpi")


READER = Reader("intelmpi", ("PMI_RANK",), sight, read)
