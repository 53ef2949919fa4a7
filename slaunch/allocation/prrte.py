"""A bare PMIx launcher, such as PRRTE's prterun: it gives PMIX_RANK, but no size (recorded with Open MPI 5.0.11's prterun)."""

from __future__ import annotations

from slaunch.allocation.nesting import from_slurm
from slaunch.allocation.reader import MPI, Env, Given, Reader, evidence, shown
from slaunch.allocation.values import Sighting, Task
from slaunch.errors import AllocationError

RICHER = ("OMPI_COMM_WORLD_RANK", "JSM_NAMESPACE_RANK", "PALS_RANKID", "FLUX_TASK_RANK")
"""Variables of launchers that give PMIX_RANK beside their own."""


def sight(env: Env) -> Sighting:
    """See a PMIx world of no other launcher."""
    if "PMIX_RANK" not in env or from_slurm(env) or any(name in env for name in RICHER):
        return Sighting("prrte", 0)
    return Sighting("prrte", MPI, evidence(env, PMIX_RANK="rank in a PMIx world", PMIX_NAMESPACE="its name"))


def read(given: Given) -> Task:
    """Refuse: the number of ranks is not in the environment, and to guess it would make several small worlds of one job.

    Raises:
        AllocationError: always.
    """
    raise AllocationError(
        "learn how many ranks there are",
        f"{shown(given.env, 'PMIX_RANK', 'PMIX_NAMESPACE')}, but no variable tells the size",
        "start slaunch with Open MPI's mpirun instead of prterun",
    )


READER = Reader("prrte", ("PMIX_RANK",), sight, read)
