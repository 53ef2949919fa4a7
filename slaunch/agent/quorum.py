"""Which part of a job that has fallen apart may go on: a pure rule by which two parts never both do.

Counted are the agents that stood together when an attempt was prepared, those that wait included: its base. A part needs more
than half of a base, or half of it and the lowest number. It needs that of every base that any of its agents knows; a base is
forgotten when all agents of a later one have said that they know the later one. So whoever goes on from the earlier base has one
of them with it, and needs a majority of the later base, too.

An agent that has ended counts like all others, as it may have been one of those who went on before it ended. There is one
exception: if all others of a base have certainly ended, nobody is left who could go on from there.
"""

from __future__ import annotations

from collections.abc import Collection

from slaunch.frozen import dataclass


@dataclass(frozen=True)
class Bases:
    """What counts, as far as an agent knows.

    Attributes:
        settled: number of the last attempt whose agents all knew of it; -1 = none is known.
        counted: that attempt's base, and those of attempts that have been prepared since.
    """

    settled: int = -1
    counted: tuple[tuple[int, ...], ...] = ()


def holds(base: Collection[int], gone: Collection[int], dead: Collection[int] = ()) -> bool:
    """Whether those that are left of one base may go on from it.

    Args:
        base: those that stood together.
        gone: those that this part has lost.
        dead: those of them whose process has certainly ended.
    """
    here = [agent for agent in base if agent not in gone]
    if all(agent in here or agent in dead for agent in base):
        return bool(here)
    if 2 * len(here) == len(base):
        return min(here) == min(base)
    return 2 * len(here) > len(base)


def lacking(bases: Bases, here: Collection[int], dead: Collection[int] = ()) -> tuple[int, ...] | None:
    """The base that does not let the agents `here` go on; None if they may."""
    return next((base for base in bases.counted or ((),) if not holds(base, set(base).difference(here), dead)), None)


def proposed(bases: Bases, base: tuple[int, ...]) -> Bases:
    """An attempt is being prepared, and not all of its agents know of it yet."""
    return Bases(bases.settled, (*(each for each in bases.counted if each != base), base))


def merged(one: Bases, other: Bases) -> Bases:
    """What two agents know."""
    if one.settled != other.settled:
        return max(one, other, key=lambda each: each.settled)
    return Bases(one.settled, (*one.counted, *(base for base in other.counted if base not in one.counted)))
