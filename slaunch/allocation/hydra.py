"""Hydra, the mpirun of MPICH: PMI_RANK, PMI_SIZE and MPI_LOCALRANKID."""

from __future__ import annotations

from slaunch.allocation.enclosing import enclosing
from slaunch.allocation.nesting import holds_proxies, slurm_serves_pmi
from slaunch.allocation.reader import MPI, SHELL, Env, Given, Reader, check, evidence, number, shown
from slaunch.allocation.values import Allocation, Sighting, Slot, Task


def sight(env: Env) -> Sighting:
    """See Hydra's world; a PMI_RANK that Slurm itself set, or one that a srun inside mpirun kept, does not decide."""
    if "PMI_RANK" not in env or "MPI_LOCALRANKID" not in env:
        return Sighting("hydra", 0)
    seen = evidence(env, PMI_RANK="rank in mpiexec's world", PMI_SIZE="its size", MPI_LOCALRANKID="rank on this node")
    return Sighting("hydra", SHELL + 1 if step_inside(env) else MPI, seen)


def step_inside(env: Env) -> bool:
    """Say whether the innermost launcher is a srun that was started below mpiexec."""
    return slurm_serves_pmi(env) or (env.get("PMI_SIZE") == "1" and not holds_proxies(env, "1"))


def read(given: Given) -> Task:
    """Return this rank's place. Hydra does not tell the host names; they are learnt when the tasks meet."""
    env = given.env
    rank, size = number(env, "PMI_RANK"), number(env, "PMI_SIZE")
    local = number(env, "MPI_LOCALRANKID")
    check(rank < size and local < size, shown(env, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"))
    job, restarts = enclosing(env)
    return Task(Allocation("hydra", job=job, restarts=restarts), Slot(rank, size, local))


READER = Reader("hydra", sight, read)
