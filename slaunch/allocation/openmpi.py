"""Open MPI 4 and 5: mpirun, whose processes have OMPI_COMM_WORLD_*."""

from __future__ import annotations

from slaunch.allocation.enclosing import enclosing
from slaunch.allocation.nesting import srun_inside
from slaunch.allocation.reader import MPI, SHELL, Env, Given, Reader, check, evidence, number, shown
from slaunch.allocation.values import Allocation, Sighting, Slot, Task


def sight(env: Env) -> Sighting:
    """See Open MPI's world. jsrun sets the same variables beside its own; a srun started inside mpirun stands deeper."""
    if "OMPI_COMM_WORLD_RANK" not in env or "JSM_NAMESPACE_RANK" in env:
        return Sighting("openmpi", 0)
    seen = evidence(
        env,
        OMPI_COMM_WORLD_RANK="rank in mpirun's world",
        OMPI_COMM_WORLD_SIZE="its size",
        OMPI_COMM_WORLD_LOCAL_RANK="rank on this node",
    )
    inside = srun_inside(env, env.get("OMPI_COMM_WORLD_SIZE", ""), env.get("OMPI_COMMAND", ""))
    return Sighting("openmpi", SHELL + 1 if inside else MPI, seen)


def read(given: Given) -> Task:
    """Return this rank's place. Open MPI does not tell the host names; they are learnt when the tasks meet."""
    env = given.env
    rank, size = number(env, "OMPI_COMM_WORLD_RANK"), number(env, "OMPI_COMM_WORLD_SIZE")
    local = number(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    here = number(env, "OMPI_COMM_WORLD_LOCAL_SIZE") if "OMPI_COMM_WORLD_LOCAL_SIZE" in env else size
    told = shown(env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
    check(rank < size and local < here <= size, told)
    job, restarts = enclosing(env)
    return Task(Allocation("openmpi", job, restarts=restarts, evidence=sight(env).evidence), Slot(rank, size, local))


READER = Reader("openmpi", ("OMPI_COMM_WORLD_RANK",), sight, read)
