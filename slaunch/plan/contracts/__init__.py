"""Contracts: what each framework's worker expects to find in its environment.

A contract is a pure function `variables(seat, env)` that returns the variables of one worker. Add one by writing a module here
and a line in `BUILT_IN` and in the entry points of setup.cfg; another package adds one by an entry point in the group
`slaunch.contracts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from slaunch.errors import PlanError, UsageError
from slaunch.plan.seat import Seat

Contract = Callable[[Seat, Mapping[str, str]], Mapping[str, str]]

GROUP = "slaunch.contracts"

BUILT_IN: Mapping[str, str] = {
    "paddle": "slaunch.plan.contracts.paddle:variables",
    "torch": "slaunch.plan.contracts.torch:variables",
    "jax": "slaunch.plan.contracts.jax:variables",
    "tensorflow": "slaunch.plan.contracts.tensorflow:variables",
    "deepspeed": "slaunch.plan.contracts.deepspeed:variables",
    "horovod": "slaunch.plan.contracts.horovod:variables",
    "accelerate": "slaunch.plan.contracts.accelerate:variables",
    "lightning": "slaunch.plan.contracts.lightning:variables",
    "slaunch": "slaunch.plan.contracts.own:variables",
}
"""Looked up here, not among the entry points, since reading package metadata takes longer than the rest of a start."""


def find(name: str) -> Contract:
    """The contract of that name.

    Raises:
        UsageError: if there is none.
    """
    if name in BUILT_IN:
        module, _, function = BUILT_IN[name].partition(":")
        built_in: Contract = getattr(import_module(module), function)
        return built_in
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        loaded: Contract = entry.load()
        return loaded
    raise UsageError(
        f"find the contract {name!r}", "no such name", f"choose from {', '.join(BUILT_IN)}, or install the package that has it"
    )


def combine(names: Sequence[str], seat: Seat, env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The variables of several contracts together, and which contract each comes from.

    Raises:
        PlanError: if two want different values of one variable.
    """
    values: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name in names:
        for variable, value in find(name)(seat, env).items():
            if values.setdefault(variable, value) != value:
                raise PlanError(
                    f"use the contracts {owners[variable]} and {name} together",
                    f"{variable} would be {values[variable]!r} by {owners[variable]} and {value!r} by {name}",
                    f"leave out one of them with --contracts (now {','.join(names)})",
                )
            owners.setdefault(variable, name)
    return values, owners
