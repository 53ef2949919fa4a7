"""Which nodes take part in an attempt, by what was found of their health: pure rules.

A node with a fault never does. One with a doubt, or one that has shown a fault lately, does if there are not enough others; a job
that cannot lose nodes has no others.
"""

from __future__ import annotations

from collections.abc import Sequence

from slaunch.badnodes import until_s
from slaunch.errors import DeviceError
from slaunch.frozen import dataclass
from slaunch.node.values import Problem

CLOCK_S = 30.0
"""A clock that is further from most others casts a doubt on its node: certificates, tickets and file dates go wrong there."""


@dataclass(frozen=True)
class Shown:
    """What a node has shown before an attempt.

    Attributes:
        node: which.
        faults, doubts: what was found there; see `node.health`.
        offset_s: its clock, ahead of the hub's.
    """

    node: int
    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    offset_s: float = 0.0


@dataclass(frozen=True)
class Choice:
    """Nodes of an attempt, () if there are too few that are fit; and the others with the reason."""

    members: tuple[int, ...]
    left_out: tuple[tuple[int, str], ...] = ()


def choose(shown: Sequence[Shown], past: Sequence[tuple[int, float]], least: int, now: float) -> Choice:
    """The nodes of an attempt.

    Args:
        shown: of all nodes that are there, in their order.
        past: faults before: node and time.
        least: with how many nodes the job goes on; 0 = with all only.
        now: by the clock of `past`.
    """
    unfit = {each.node: each.faults[0] for each in shown if each.faults}
    fit = len(shown) - len(unfit)
    if fit < (least or len(shown)):
        return Choice((), tuple(unfit.items()))
    wary = {node: why for node, why in doubts(shown, past, now).items() if node not in unfit}
    for node in list(wary)[: max(0, (least or fit) - (fit - len(wary)))]:
        del wary[node]
    left_out = unfit | wary
    return Choice(tuple(each.node for each in shown if each.node not in left_out), tuple(left_out.items()))


def doubts(shown: Sequence[Shown], past: Sequence[tuple[int, float]], now: float) -> dict[int, str]:
    """Nodes to do without if there are enough others, and why; in the order in which they are needed after all."""
    late = odd_clocks(shown)
    found: dict[int, str] = {}
    for each in shown:
        until = until_s((time for node, time in past if node == each.node), now)
        if each.doubts:
            found[each.node] = each.doubts[0]
        elif each.node in late:
            found[each.node] = f"its clock is {late[each.node]:+.0f} s from the others'"
        elif until > now:
            found[each.node] = "it has shown faults before"
    return found


def odd_clocks(shown: Sequence[Shown]) -> dict[int, float]:
    """Nodes whose clock is far from the middle one, and by how much, if most are near it: else nobody knows which are wrong."""
    middle = sorted(each.offset_s for each in shown)[len(shown) // 2]
    odd = {each.node: each.offset_s - middle for each in shown if abs(each.offset_s - middle) > CLOCK_S}
    return odd if 2 * len(odd) < len(shown) else {}


def too_few(choice: Choice, there: int, least: int, hosts: Sequence[str]) -> Problem:
    """The error of a job that cannot go on: of `there` nodes too few are fit."""
    named = "; ".join(f"node {node} ({hosts[node]}): {why}" for node, why in choice.left_out[:8])
    few = f" ({there - len(choice.left_out)} are fit, and at least {least} are wanted)" if least else ""
    todo = "leave it out, or start the job with --nnodes MIN:MAX and a node more; --health-check no takes it as it is"
    return Problem(DeviceError.exit_code, "start the workers on healthy nodes", f"{named}{few}", todo)
