"""Job modes: which workers a node has, and what the workers of this kind of job find in their environment.

A mode is a value `MODE` of the class below. Add one by writing a module here and a line in `BUILT_IN` and in the entry points of
setup.cfg; another package adds one by an entry point in the group `slaunch.modes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from slaunch.errors import PlanError, UsageError
from slaunch.frozen import dataclass
from slaunch.node.values import NodeFacts, Wish
from slaunch.options import Options
from slaunch.plan.parts import total
from slaunch.plan.seat import Seat

GROUP = "slaunch.modes"

BUILT_IN: Mapping[str, str] = {
    "collective": "slaunch.plan.modes.collective:MODE",
    "ps": "slaunch.plan.modes.ps:MODE",
    "ps_heter": "slaunch.plan.modes.ps_heter:MODE",
    "rpc": "slaunch.plan.modes.rpc:MODE",
    "ipu": "slaunch.plan.modes.ipu:MODE",
}
"""Looked up here, not among the entry points, since reading package metadata takes longer than the rest of a start."""

COMMON = Options.contracts
"""The contracts in force where the user chose none and the mode does not say otherwise."""


@dataclass(frozen=True)
class Cast:
    """The parts that a node's workers play.

    Attributes:
        roles: role of each worker, by local rank; () = all are plain workers.
        numbers: its number among all workers of its role, by local rank.
        endpoints: endpoint that the user fixed for it, by local rank; () = the node's address and a free port.
    """

    roles: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    endpoints: tuple[str, ...] = ()


def no_wish(options: Options, own: str) -> Wish:
    """Nothing beyond what the options say, and the user's roles where they have numbers of workers."""
    return Wish(workers=total(options))


def plain(facts: Sequence[NodeFacts], options: Options) -> tuple[Cast, ...]:
    """All workers are alike."""
    return (Cast(),) * len(facts)


def nothing(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """No variables of its own."""
    return {}


@dataclass(frozen=True)
class Mode:
    """One kind of job.

    Attributes:
        name: as in `--mode`.
        wish: what it asks of a node, from the options as they are `here` (see `plan.parts`) and this node's address among
            `Options.ips` ("" if none are listed).
        cast: the parts of every node's workers, from one task's facts for each node.
        variables: what a worker finds in its environment, beside its contracts and stronger than they.
        contracts: the contracts that are in force unless the user chooses.
        replaces: contracts that this mode's variables stand for.
        layouts: the layouts it can run in; "agent" alone where somebody has to end the services.
    """

    name: str
    wish: Callable[[Options, str], Wish] = no_wish
    cast: Callable[[Sequence[NodeFacts], Options], tuple[Cast, ...]] = plain
    variables: Callable[[Seat, Mapping[str, str]], Mapping[str, str]] = nothing
    contracts: tuple[str, ...] = COMMON
    replaces: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ("agent", "task")


def find(name: str) -> Mode:
    """The mode of that name.

    Raises:
        UsageError: if there is none.
    """
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return checked(name, getattr(import_module(module), attribute))
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        return checked(name, entry.load())
    known = ", ".join(BUILT_IN).replace("_", "-")
    raise UsageError(f"run the mode {name!r}", "no such mode", f"choose from {known}, or install the package that has it")


def checked(name: str, found: object) -> Mode:
    """What an entry point offers, if it is a mode."""
    if not isinstance(found, Mode):
        raise UsageError(f"run the mode {name!r}", f"what is registered under this name is {found!r}", "mend that package")
    return found


def contracts_of(mode: Mode, options: Options) -> tuple[str, ...]:
    """The contracts in force: the mode's own choice, or the user's less those that the mode replaces."""
    if options.contracts == COMMON:
        return mode.contracts
    return tuple(name for name in options.contracts if name not in mode.replaces)


def check_layout(mode: Mode, layout: str) -> None:
    """Refuse a layout that the mode cannot run in.

    Raises:
        PlanError: the mode needs an agent on each node, but several tasks were started there.
    """
    if layout not in mode.layouts:
        raise PlanError(
            f"run the mode {mode.name.replace('_', '-')}",
            "several tasks were started on one node, so that each becomes a worker and nobody ends the services",
            "start one task per node (srun --ntasks-per-node=1, mpirun --map-by node), or slaunch in the batch script",
        )
