"""Parameter servers: on each node some servers and some trainers. Servers are ended when all trainers are done."""

from __future__ import annotations

from collections.abc import Sequence

from slaunch.node.values import NodeFacts, Wish
from slaunch.options import Options
from slaunch.plan.modes import Cast, Mode
from slaunch.plan.modes.roles import cast_by_counts, cast_by_lists, check_numbers, wish_of
from slaunch.plan.modes.servers import lists, variables, wanted
from slaunch.plan.parts import wants_devices


def wish(options: Options, own: str) -> Wish:
    """What a node is asked for."""
    check_numbers(options)
    return wish_of(wanted(options), lists(options), own, wants_devices(options))


def cast(facts: Sequence[NodeFacts], options: Options) -> tuple[Cast, ...]:
    """Every node's servers and trainers."""
    check_numbers(options)
    fixed = lists(options)
    return cast_by_lists(facts, fixed) if fixed else cast_by_counts(facts, options, wanted)


MODE = Mode("ps", wish, cast, variables, contracts=("slaunch",), replaces=("paddle",), layouts=("agent",))
