"""What a reader is, and the few helpers that all readers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slaunch.allocation.values import Evidence, Shell, Sighting, Task
from slaunch.errors import AllocationError
from slaunch.frozen import dataclass

Env = Mapping[str, str]

PLAIN, HINT, SHELL, STEP, INNER_STEP, MPI = 0, 5, 10, 20, 25, 30
"""Depths of nesting: no launcher; a hint of one (a host file, a Flux socket) that any job outweighs; a batch or allocation
shell; a scheduler's step; a scheduler started inside such a step; an MPI launcher."""


@dataclass(frozen=True)
class Given:
    """All that a reader may look at.

    Attributes:
        env: the environment.
        host: this machine's host name; "" if not known.
        read_text: returns the content of a file (node files, rank files); bytes that are no UTF-8 come as surrogate escapes.
    """

    env: Env
    host: str
    read_text: Callable[[str], str]


@dataclass(frozen=True)
class Reader:
    """Reads the variables of one scheduler or MPI launcher.

    Attributes:
        name: what `--scheduler` takes and `Allocation.launcher` says.
        rank: the variables that hold a task's rank, whichever is set; () if its processes have none.
        sight: says whether an environment is this reader's, and how deep in the nesting it stands. Never raises.
        read: makes the value; raises AllocationError.
    """

    name: str
    rank: tuple[str, ...]
    sight: Callable[[Env], Sighting]
    read: Callable[[Given], Task | Shell]


def first_of(env: Env, *names: str) -> str:
    """Return the first of these variables that is set and not empty; the first name if none is."""
    return next((name for name in names if env.get(name)), names[0])


def number(env: Env, *names: str) -> int:
    """Return the value of the first of these variables that is set: a number, zero or above.

    Raises:
        AllocationError: none is set, or it is no such number.
    """
    name = first_of(env, *names)
    value = env.get(name, "")
    if not (value.isascii() and value.isdecimal()):
        seen = f"{name}={value!r} is not a number" if value else f"{' and '.join(names)} not set"
        raise AllocationError(
            "read this process's place in the job", seen, "start slaunch by the launcher itself, with its variables unchanged"
        )
    return int(value)


def evidence(env: Env, **meanings: str) -> tuple[Evidence, ...]:
    """Return what was seen of these variables (name=meaning), in this order, without those that are not set."""
    return tuple(Evidence(name, env[name], meaning) for name, meaning in meanings.items() if name in env)


def check(holds: bool, *seen: str) -> None:
    """Raise an AllocationError on variables that contradict each other, unless `holds`."""
    if not holds:
        raise AllocationError(
            "make sense of the launcher's variables",
            "; ".join(seen),
            "these cannot all be true: do not set them by hand, or name the right launcher with --scheduler",
        )


def shown(env: Env, *names: str) -> str:
    """Return `A=1, B=2` for the variables that are set, for an error or a warning."""
    return ", ".join(f"{name}={env[name]}" for name in names if name in env)


def file_text(given: Given, variable: str) -> str:
    """Return the content of the file that a variable names.

    Raises:
        AllocationError: the variable is empty, or the file cannot be read.
    """
    path = given.env.get(variable, "")
    try:
        return given.read_text(path)
    except OSError as error:
        raise AllocationError(
            "read the job's hosts", f"{variable}={path!r}: {error.strerror}", "start slaunch within the job, on one of its nodes"
        ) from None
