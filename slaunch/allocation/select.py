"""Choose the reader for an environment: the innermost launcher wins, as a whole."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from slaunch.allocation.reader import Env, Given, Reader
from slaunch.allocation.values import Shell, Sighting, Task
from slaunch.errors import AllocationError, UsageError

BUILT_IN = {
    "slurm": "slaunch.allocation.slurm:READER",
    "openmpi": "slaunch.allocation.openmpi:READER",
    "hydra": "slaunch.allocation.hydra:READER",
    "plain": "slaunch.allocation.plain:READER",
}
"""Readers by name. The same table is in setup.cfg as entry points `slaunch.schedulers`, where other packages add theirs."""

MARKS = {"slurm": "SLURM", "openmpi": "OMPI_COMM_WORLD_RANK", "hydra": "MPI_LOCALRANKID", "plain": ""}
"""A variable, or the start of one, without which a reader's module need not be imported."""


def read_file(path: str) -> str:
    """Return the content of a small text file."""
    with open(path, encoding="utf-8", errors="replace") as file:
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
    return reader.read(Given(env, host, read_text))


def sightings(env: Env) -> tuple[Sighting, ...]:
    """Return every reader's sighting that has evidence, deepest first."""
    seen = (load(name).sight(env) for name in BUILT_IN if marked(env, name))
    return tuple(sorted((one for one in seen if one.evidence), key=lambda one: -one.depth))


def speaks(env: Env) -> bool:
    """Say whether this process should print an error that all tasks of the step see. Never raises."""
    try:
        standing = read(env)
        return isinstance(standing, Shell) or standing.slot.rank == 0
    except Exception:
        return True


def marked(env: Env, name: str) -> bool:
    """Say whether the environment has a variable that makes this reader worth importing."""
    return any(variable.startswith(MARKS[name]) for variable in env) if MARKS[name] else True


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
        UsageError: there is none.
    """
    if name in BUILT_IN:
        return load(name)
    from importlib.metadata import entry_points

    for point in entry_points(group="slaunch.schedulers", name=name):
        reader = point.load()
        assert isinstance(reader, Reader)
        return reader
    raise UsageError("read the job's environment", f"--scheduler {name}", f"choose one of: auto, {', '.join(BUILT_IN)}")


def load(name: str) -> Reader:
    """Import a built-in reader."""
    module, _, attribute = BUILT_IN[name].partition(":")
    reader = getattr(import_module(module), attribute)
    assert isinstance(reader, Reader)
    return reader
