"""Open MPI 4 and 5: mpirun, whose processes have OMPI_COMM_WORLD_*."""

from __future__ import annotations

from slaunch.allocation.enclosing import enclosing
from slaunch.allocation.nesting import holds_proxies, slurm_serves_pmi
from slaunch.allocation.reader import MPI, SHELL, Env, Given, Reader, check, evidence, number, shown
from slaunch.allocation.values import Allocation, Sighting, Slot, Task


def sight(env: Env) -> Sighting:
    """See Open MPI's world; below a Slurm step that was started from inside it, it does not decide."""
    if "OMPI_COMM_WORLD_RANK" not in env or "JSM_NAMESPACE_RANK" in env:
        return Sighting("openmpi", 0)
    seen = evidence(
        env,
        OMPI_COMM_WORLD_RANK="rank in mpirun's world",
        OMPI_COMM_WORLD_SIZE="its size",
        OMPI_COMM_WORLD_LOCAL_RANK="rank on this node",
    )
    return Sighting("openmpi", SHELL + 1 if step_inside(env) else MPI, seen)


def step_inside(env: Env) -> bool:
    """Say whether the innermost launcher is a srun that was started below mpirun."""
    if slurm_serves_pmi(env):
        return True
    alone = env.get("OMPI_COMM_WORLD_SIZE") == "1" or env.get("OMPI_COMMAND", "").rpartition("/")[2] == "srun"
    return alone and not holds_proxies(env, env.get("OMPI_COMM_WORLD_SIZE", ""))


def read(given: Given) -> Task:
    """Return this rank's place. Open MPI does not tell the host names; they are learnt when the tasks meet."""
    env = given.env
    rank, size = number(env, "OMPI_COMM_WORLD_RANK"), number(env, "OMPI_COMM_WORLD_SIZE")
    local = number(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    check(rank < size and local < size, shown(env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"))
    job, restarts = enclosing(env)
    return Task(Allocation("openmpi", job=job, restarts=restarts), Slot(rank, size, local))


READER = Reader("openmpi", sight, read)
