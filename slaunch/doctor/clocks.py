"""Whether the nodes agree on the time of day."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from slaunch.doctor.values import ERROR, WARNING, Finding
from slaunch.frozen import dataclass

NAME = "clock"
OFF_S = 1.0
FAR_OFF_S = 60.0
"""MUNGE refuses credentials that are more than five minutes old or young (munge(7)), whatever else is slow."""


@dataclass(frozen=True)
class Reading:
    """How far a node's clock is ahead of the doctor's, and how wrong that may be at most; in seconds."""

    offset_s: float
    error_s: float


def reading(sent_s: float, told_s: float, heard_s: float) -> Reading:
    """From when the question was sent, what the node's clock said, and when the answer came, by the doctor's clock."""
    return Reading(told_s - (sent_s + heard_s) / 2, (heard_s - sent_s) / 2)


def better(one: Reading | None, other: Reading) -> Reading:
    """The more exact of two."""
    return other if one is None or other.error_s < one.error_s else one


def judge(readings: Mapping[str, Reading], here: str) -> list[Finding]:
    """Nodes whose clock is off for certain, measured by the median of all; and the doctor's own."""
    if not readings:
        return []
    middle = median(each.offset_s for each in readings.values())
    found = [off(node, each.offset_s - middle, each.error_s) for node, each in readings.items()]
    if here not in readings:
        found.append(off(here, -middle, max(each.error_s for each in readings.values())))
    return [each for each in found if each]


def off(node: str, offset_s: float, error_s: float) -> Finding | None:
    """A clock that is off."""
    surely = abs(offset_s) - error_s
    if surely < OFF_S:
        return None
    far = surely >= FAR_OFF_S
    way = "ahead of" if offset_s > 0 else "behind"
    means = "beyond 300 s munge refuses credentials, and steps fail" if far else "times in logs and of files mislead"
    todo = "on that node: `chronyc tracking` or `timedatectl`; tell the administrator"
    seen = f"the clock is {abs(offset_s):.1f} s {way} the other nodes' (within {error_s:.2f} s)"
    return Finding(NAME, ERROR if far else WARNING, seen, means + "; make and rsync see wrong ages", todo, (node,))
