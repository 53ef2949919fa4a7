"""What the launchers of the MPICH family share: PMI_RANK and PMI_SIZE."""

from __future__ import annotations

from slaunch.allocation.enclosing import enclosing
from slaunch.allocation.nesting import srun_inside
from slaunch.allocation.reader import MPI, SHELL, Env, check, evidence, first_of, number, shown
from slaunch.allocation.values import Allocation, Sighting, Slot, Task

LOCAL = ("MPI_LOCALRANKID", "PMI_LOCAL_RANK")


def sighting(env: Env, name: str) -> Sighting:
    """Return the sighting of a PMI-1 world; a srun that was started inside it stands deeper."""
    seen = evidence(
        env,
        PMI_RANK="rank in mpiexec's world",
        PMI_SIZE="its size",
        MPI_LOCALRANKID="rank on this node",
        PMI_LOCAL_RANK="rank on this node",
    )
    return Sighting(name, SHELL + 1 if srun_inside(env, env.get("PMI_SIZE", "")) else MPI, seen)


def task(env: Env, name: str) -> Task:
    """Return this rank's place. The host names are not told; they are learnt when the tasks meet."""
    rank, size, local = number(env, "PMI_RANK"), number(env, "PMI_SIZE"), number(env, *LOCAL)
    check(rank < size and local < size, shown(env, "PMI_RANK", "PMI_SIZE", first_of(env, *LOCAL)))
    job, restarts = enclosing(env)
    allocation = Allocation(name, job, restarts=restarts, evidence=sighting(env, name).evidence, warnings=bootstrap(env))
    return Task(allocation, Slot(rank, size, local))


def bootstrap(env: Env) -> tuple[str, ...]:
    """Return a warning where the two variables that choose how Hydra starts its proxies disagree.

    Slurm 23.11 and later set both to "slurm" in every job (Slurm MPI guide); a user who changes one has to change the other.
    """
    names = ("HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP")
    values = {env[name] for name in names if env.get(name)}
    return (f"{shown(env, *names)}: Hydra's two start-up settings disagree; set both alike",) if len(values) > 1 else ()
