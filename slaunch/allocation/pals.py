"""Cray PALS: mpiexec and aprun on HPE systems with PBS.

Each process has PALS_RANKID, PALS_LOCAL_RANKID and PALS_NODEID; the size is in PMI_SIZE where Cray PMI is loaded, else only in
the file that PALS_APINFO names. Slurm's cray_shasta and Flux's cray plug-ins set the same variables for their own tasks.
"""

from __future__ import annotations

from slaunch.allocation import apinfo
from slaunch.allocation.enclosing import enclosing
from slaunch.allocation.nesting import from_slurm
from slaunch.allocation.reader import MPI, Env, Given, Reader, check, evidence, file_text, number, shown
from slaunch.allocation.values import Allocation, Sighting, Slot, Task
from slaunch.errors import AllocationError


def sight(env: Env) -> Sighting:
    """See PALS, unless Slurm or Flux play its part."""
    if "PALS_RANKID" not in env or from_slurm(env) or "FLUX_TASK_RANK" in env:
        return Sighting("pals", 0)
    seen = evidence(
        env,
        PALS_RANKID="rank in mpiexec's world",
        PALS_LOCAL_RANKID="rank on this node",
        PALS_NODEID="index of this node",
        PALS_APINFO="file with the application's layout",
        PMI_SIZE="number of ranks",
    )
    return Sighting("pals", MPI, seen)


def read(given: Given) -> Task:
    """Return this rank's place; nodes and counts come from the layout file, where PALS wrote one.

    Raises:
        AllocationError: the number of ranks is told nowhere, or variables and file contradict each other.
    """
    env = given.env
    rank = number(env, "PALS_RANKID")
    job, restarts = enclosing(env)
    seen = sight(env).evidence
    layout = read_layout(given)
    if not layout:
        size, local = number(env, "PMI_SIZE"), number(env, "PALS_LOCAL_RANKID")
        check(rank < size and local < size, shown(env, "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID"))
        return Task(Allocation("pals", job, restarts=restarts, evidence=seen), Slot(rank, size, local))
    size = len(layout.places)
    told_size = number(env, "PMI_SIZE") if env.get("PMI_SIZE") else size
    check(rank < size == told_size, shown(env, "PALS_RANKID", "PMI_SIZE"), f"{size} ranks in PALS_APINFO")
    node, local = layout.places[rank]
    told = env.get("PALS_LOCAL_RANKID", str(local)), env.get("PALS_NODEID", str(node))
    check(told == (str(local), str(node)), shown(env, "PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_NODEID"), "not so in PALS_APINFO")
    allocation = Allocation(
        "pals", job, nodes=layout.hosts, tasks_per_node=layout.counts, root=layout.root, restarts=restarts, evidence=seen
    )
    return Task(allocation, Slot(rank, size, local, node))


def read_layout(given: Given) -> apinfo.Layout | None:
    """Return the application's layout; None if there is no such file, or none that is understood and PMI_SIZE tells enough.

    Raises:
        AllocationError: the file is not understood, and there is no PMI_SIZE.
    """
    if not given.env.get("PALS_APINFO"):
        return None
    try:
        return apinfo.parse(file_text(given, "PALS_APINFO"), given.env["PALS_APINFO"])
    except AllocationError:
        if given.env.get("PMI_SIZE"):
            return None
        raise


READER = Reader("pals", ("PALS_RANKID",), sight, read)
