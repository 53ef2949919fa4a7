"""MVAPICH: MV2_COMM_WORLD_* up to version 2, MVP_COMM_WORLD_* from 3 (mpirun_rsh and its own Hydra; MVAPICH user guides)."""

from __future__ import annotations

from slaunch.allocation.enclosing import enclosing
from slaunch.allocation.nesting import srun_inside
from slaunch.allocation.reader import MPI, SHELL, Env, Given, Reader, check, evidence, number, shown
from slaunch.allocation.values import Allocation, Sighting, Slot, Task


def prefix(env: Env) -> str:
    """Return how this version's variables start."""
    return "MVP_COMM_WORLD_" if "MVP_COMM_WORLD_RANK" in env else "MV2_COMM_WORLD_"


def sight(env: Env) -> Sighting:
    """See MVAPICH's world."""
    start = prefix(env)
    if start + "RANK" not in env:
        return Sighting("mvapich", 0)
    seen = evidence(env, **{start + "RANK": "rank", start + "SIZE": "size", start + "LOCAL_RANK": "rank on this node"})
    return Sighting("mvapich", SHELL + 1 if srun_inside(env, env.get(start + "SIZE", "")) else MPI, seen)


def read(given: Given) -> Task:
    """Return this rank's place. The host names are not told; they are learnt when the tasks meet."""
    env, start = given.env, prefix(given.env)
    rank, size, local = number(env, start + "RANK"), number(env, start + "SIZE"), number(env, start + "LOCAL_RANK")
    check(rank < size and local < size, shown(env, start + "RANK", start + "SIZE", start + "LOCAL_RANK"))
    job, restarts = enclosing(env)
    return Task(Allocation("mvapich", job, restarts=restarts, evidence=sight(env).evidence), Slot(rank, size, local))


READER = Reader("mvapich", ("MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK"), sight, read)
