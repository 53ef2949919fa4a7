"""What is looked at on every node. A new check is one file here, and one entry in the table."""

from slaunch.doctor.checks import (
    containers,
    cpus,
    gpus,
    imports,
    leftovers,
    limits,
    machine,
    mpi,
    munge,
    network,
    python,
    script,
    storage,
)
from slaunch.doctor.values import Check

CHECKS: tuple[Check, ...] = (
    machine.CHECK,
    cpus.CHECK,
    limits.CHECK,
    munge.CHECK,
    mpi.CHECK,
    gpus.CHECK,
    *storage.CHECKS,
    network.CHECK,
    python.CHECK,
    script.CHECK,
    containers.CHECK,
    leftovers.CHECK,
    imports.CHECK,
)
