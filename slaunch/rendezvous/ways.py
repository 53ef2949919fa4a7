"""Ways of meeting, by name. A way is a function from the ground and a deadline (`time.monotonic()`) to a `Gatherer`.

It raises UnusableError where it cannot work, and RendezvousError where it should have. Add one by writing a module here and a
line in `BUILT_IN` and in the entry points of setup.cfg; another package adds one by an entry point in the group
`slaunch.rendezvous`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from slaunch.errors import UsageError
from slaunch.rendezvous.gatherer import Gatherer, Ground

GROUP = "slaunch.rendezvous"

BUILT_IN: Mapping[str, str] = {
    "mpi": "slaunch.rendezvous.mpi:meet_by_mpi",
    "slurm": "slaunch.rendezvous.slurm:meet_by_slurm",
    "tcp": "slaunch.rendezvous.tcp:meet_by_tcp",
    "etcd": "slaunch.rendezvous.etcd:meet_by_etcd",
}
"""Looked up here, not among the entry points, since reading package metadata takes longer than the rest of a start."""

Way = Callable[[Ground, float], Gatherer]


def find(name: str) -> Way:
    """The way of that name.

    Raises:
        UsageError: if there is none.
    """
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return checked(name, getattr(import_module(module), attribute))
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        return checked(name, entry.load())
    known = ", ".join(("auto", *BUILT_IN))
    raise UsageError(f"meet by {name!r}", "no such way of meeting", f"choose from {known}, or install the package that has it")


def checked(name: str, found: object) -> Way:
    """What an entry point offers, if it can be called."""
    if not callable(found):
        raise UsageError(f"meet by {name!r}", f"what is registered under this name is {found!r}", "mend that package")
    return found
