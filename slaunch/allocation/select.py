"""Choose the reader for an environment: the innermost launcher wins, as a whole."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from slaunch.allocation.leftovers import warnings
from slaunch.allocation.reader import SHELL, Env, Given, Reader
from slaunch.allocation.values import Shell, Sighting, Task
from slaunch.errors import AllocationError, UsageError
from slaunch.frozen import replace

BUILT_IN = {
    "slurm": "slaunch.allocation.slurm:READER",
    "openmpi": "slaunch.allocation.openmpi:READER",
    "hydra": "slaunch.allocation.hydra:READER",
    "intelmpi": "slaunch.allocation.intelmpi:READER",
    "mvapich": "slaunch.allocation.mvapich:READER",
    "prrte": "slaunch.allocation.prrte:READER",
    "pals": "slaunch.allocation.pals:READER",
    "flux": "slaunch.allocation.flux:READER",
    "lsf": "slaunch.allocation.lsf:READER",
    "pbs": "slaunch.allocation.pbs:READER",
    "hostfile": "slaunch.allocation.hostfile:READER",
    "plain": "slaunch.allocation.plain:READER",
}
"""Readers by name. The same table is in setup.cfg as entry points `slaunch.schedulers`, where other packages add theirs."""

MARKS = {
    "slurm": (
        "SLURM_JOB_ID",
        "SLURM_JOBID",
        "SLURM_STEP_ID",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_NTASKS_PER_NODE",
        "SLURM_NNODES",
        "SLURM_JOB_NODELIST",
        "SLURM_NODELIST",
    ),
    "openmpi": ("OMPI_COMM_WORLD_RANK",),
    "hydra": ("PMI_RANK",),
    "intelmpi": ("HYDRA_BSTRAP_NODE_ID",),
    "mvapich": ("MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK"),
    "prrte": ("PMIX_RANK",),
    "pals": ("PALS_RANKID",),
    "flux": ("FLUX_TASK_RANK", "FLUX_URI"),
    "lsf": ("JSM_NAMESPACE_RANK", "LSB_JOBID"),
    "pbs": ("PBS_JOBID", "PBS_NODEFILE"),
    "hostfile": ("SLAUNCH_HOSTFILE",),
}
"""The variables without any of which a reader has nothing to see, so that its module need not be imported."""


def read_file(path: str) -> str:
    """Return the content of a file; bytes that are no UTF-8 come as surrogate escapes."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def read(env: Env, scheduler: str = "auto", host: str = "", read_text: Callable[[str], str] = read_file) -> Task | Shell:
    """Return what this process is: one task of a step, or a shell from which the step is still to be started.

    Args:
        env: the environment.
        scheduler: "auto", or the name of a reader.
        host: this machine's host name.
        read_text: how to read a file that a variable names.

    Raises:
        AllocationError: the variables are malformed or contradict each other, or two launchers claim to be innermost.
        UsageError: no reader of that name.
    """
    reader = innermost(env) if scheduler == "auto" else named(scheduler)
    standing = reader.read(Given(env, host, read_text))
    found = warnings(env)
    if not found:
        return standing
    return replace(standing, allocation=replace(standing.allocation, warnings=(*standing.allocation.warnings, *found)))


def sightings(env: Env) -> tuple[Sighting, ...]:
    """Return every sighting of the built-in readers that has evidence, deepest first."""
    seen = (load(name).sight(env) for name in BUILT_IN if marked(env, name))
    return tuple(sorted((one for one in seen if one.evidence), key=lambda one: -one.depth))


def speaks(env: Env) -> bool:
    """Say whether this process should print an error that all tasks of its step see. Never raises.

    It should if it is task rank 0 of the innermost launcher, or of all that may be, or if its rank cannot be told.
    """
    seen = sightings(env)
    deepest = [load(one.reader) for one in seen if one.depth == seen[0].depth]
    ranks = [env[name] for reader in deepest for name in reader.rank if env.get(name, "").isdecimal()]
    places = [env[name] for name in ("SLURM_NODEID", "SLURM_LOCALID") if env.get(name, "").isdecimal()]
    return seen[0].depth <= SHELL or all(number == "0" for number in ranks or places)


def marked(env: Env, name: str) -> bool:
    """Say whether the environment has a variable that makes this reader worth importing."""
    return name not in MARKS or any(variable in env for variable in MARKS[name])


def innermost(env: Env) -> Reader:
    """Return the reader with the deepest sighting.

    Raises:
        AllocationError: two readers stand equally deep.
    """
    seen = sightings(env)
    ties = [one for one in seen if one.depth == seen[0].depth]
    if len(ties) > 1:
        raise AllocationError(
            "tell which launcher started this process",
            "; ".join(f"{one.reader}: " + ", ".join(f"{e.variable}={e.value}" for e in one.evidence) for one in ties),
            "name it: " + " or ".join(f"--scheduler {one.reader}" for one in ties),
        )
    return load(seen[0].reader)


def named(name: str) -> Reader:
    """Return the reader of this name, built in or from another package.

    Raises:
        UsageError: there is none, or what the other package offers is no reader.
    """
    if name in BUILT_IN:
        return load(name)
    from importlib.metadata import entry_points

    for point in entry_points(group="slaunch.schedulers", name=name):
        reader = point.load()
        if not isinstance(reader, Reader):
            raise UsageError("read the job's environment", f"{point.value} is no reader", "mend that package")
        return reader
    raise UsageError("read the job's environment", f"--scheduler {name}", f"choose one of: auto, {', '.join(BUILT_IN)}")


def load(name: str) -> Reader:
    """Import a built-in reader."""
    module, _, attribute = BUILT_IN[name].partition(":")
    reader = getattr(import_module(module), attribute)
    assert isinstance(reader, Reader)
    return reader
