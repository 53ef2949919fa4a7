"""Which process manager interface this task was started with: MPI finds its peers through it, if it understands it."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.frozen import dataclass
from slaunch.rendezvous.library import INTEL, MPICH, OPENMPI, Library

PMIX, PMI2, PMI1, PALS, NONE = "PMIx", "PMI-2", "PMI-1", "PALS", "none"

UNDERSTANDS: Mapping[str, tuple[str, ...]] = {MPICH: (PMI1, PMI2, PALS), INTEL: (PMI1, PMI2, PALS), OPENMPI: (PMIX,)}
"""What each kind of library understands as it is usually built.

Tried under Slurm 22.05 with MPICH 4 and 5, Intel MPI 2021.18, Open MPI 4 and 5. Intel MPI worked with PMIx too, which its makers
and Slurm's do not promise.
"""


@dataclass(frozen=True)
class Interface:
    """A process manager interface.

    Attributes:
        kind: `PMIX`, `PMI2`, `PMI1`, `PALS` or `NONE`.
        evidence: the variable that tells.
    """

    kind: str
    evidence: str


def read_interface(env: Mapping[str, str]) -> Interface:
    """The interface in this task's environment. The innermost launcher's decides: mpirun sets its own on top of Slurm's."""
    in_step = "SLURM_STEP_ID" in env
    rules = (
        (PMIX, "PMIX_RANK", True),
        (PALS, "PALS_RANKID", True),
        (PMI2, "PMI_FD", in_step and "PMI_SPAWNED" not in env and "HYDI_CONTROL_FD" not in env),
        (PMI1, "PMI_FD", True),
        (PMI1, "PMI_PORT", True),
    )
    for kind, variable, holds in rules:
        if holds and variable in env:
            return Interface(kind, variable)
    return Interface(NONE, "neither PMIX_RANK nor PMI_FD is set")


def fits(library: Library, interface: Interface) -> bool:
    """Whether this library finds its peers through this interface."""
    return interface.kind in UNDERSTANDS.get(library.kind, ())


def advice(env: Mapping[str, str]) -> str:
    """What to do where MPI does not find its peers."""
    if "SLURM_STEP_ID" not in env or "OMPI_COMM_WORLD_RANK" in env or "HYDI_CONTROL_FD" in env:
        return "start the tasks with the mpirun of the library that mpi4py loads (MPI4PY_LIBMPI names another), or with srun"
    return (
        "leave --rendezvous out, or use srun --mpi=pmix with Open MPI, --mpi=pmi2 with MPICH and Intel MPI (an old one also needs"
        f" I_MPI_PMI_LIBRARY){offered()}"
    )


def offered() -> str:
    """Which interfaces this Slurm offers, as the end of a sentence."""
    from slaunch.errors import SlaunchError
    from slaunch.slurm.client import ask

    try:
        words = [line.split()[-1] for line in ask(("srun", "--mpi=list"), limit_s=5.0).splitlines() if line.strip()]
    except SlaunchError:
        return ""
    plugins = sorted(word for word in words if not word.endswith("...") and word.isidentifier() and "_v" not in word)
    return f"; this Slurm offers {', '.join(plugins)}" if plugins else ""
