"""Which process manager interface this task was started with: MPI finds its peers through it, if it understands it."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.frozen import dataclass
from slaunch.rendezvous.library import MPICH, OPENMPI, Library

PMIX, PMI2, PMI1, PALS, NONE = "PMIx", "PMI-2", "PMI-1", "PALS", "none"

UNDERSTANDS: Mapping[str, tuple[str, ...]] = {MPICH: (PMI1, PMI2, PALS), OPENMPI: (PMIX,)}
"""What each kind of library understands as it is usually built; tried under Slurm 22.05 with MPICH 4 and 5, Open MPI 4 and 5."""


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
