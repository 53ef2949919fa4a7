"""Hydra, the mpiexec of MPICH, and any other launcher that gives PMI_RANK, PMI_SIZE and a local rank."""

from __future__ import annotations

from slaunch.allocation import pmi1
from slaunch.allocation.nesting import from_slurm
from slaunch.allocation.reader import Env, Given, Reader
from slaunch.allocation.values import Sighting, Task

OTHERS = ("MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK", "PALS_RANKID", "FLUX_TASK_RANK", "HYDRA_BSTRAP_NODE_ID")
"""Variables of launchers that give PMI_RANK beside their own, richer ones."""


def sight(env: Env) -> Sighting:
    """See a PMI-1 world, unless it is the by-product of another launcher."""
    if "PMI_RANK" not in env or "PMI_SIZE" not in env or any(name in env for name in OTHERS):
        return Sighting("hydra", 0)
    if "MPI_LOCALRANKID" not in env and from_slurm(env):
        return Sighting("hydra", 0)
    return pmi1.sighting(env, "hydra")


def read(given: Given) -> Task:
    """Return this rank's place."""
    return pmi1.task(given.env, "hydra")


READER = Reader("hydra", ("PMI_RANK",), sight, read)
