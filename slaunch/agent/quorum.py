"""Which part of a job that has fallen apart may go on: a pure rule by which two parts never both do.

Counted are the agents that stood together when an attempt was prepared, those that wait included: its base. A part needs more
than half of a base, or half of it and the lowest number, and it needs that of every base that any of its agents knows. A base is
settled once all of its agents know of it; those of earlier attempts count no more then. So whoever goes on from an earlier base
has an agent of the settled one with it, and needs a majority of that, too.

An agent that has ended counts like all others, as it may have been one of those who went on before it ended. There is one
exception: if all others of a base had certainly ended before they can have gone on, nobody is left who could.
"""

from __future__ import annotations

from collections.abc import Collection

from slaunch.frozen import dataclass


@dataclass(frozen=True)
class Bases:
    """What counts, as far as an agent knows.

    Attributes:
        settled: number of the last attempt of which all of its agents knew; -1 = none is known.
        counted: that attempt and those that have been prepared since: number and base of each.
    """

    settled: int = -1
    counted: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def agents(self) -> frozenset[int]:
        """All that count somewhere."""
        return frozenset(agent for _, base in self.counted for agent in base)


def known_to_all(base: tuple[int, ...], attempt: int = 0) -> Bases:
    """All agents know of this attempt."""
    return Bases(attempt, ((attempt, base),))


def holds(base: Collection[int], gone: Collection[int], dead: Collection[int] = ()) -> bool:
    """Whether those that are left of one base may go on from it.

    Args:
        base: those that stood together.
        gone: those that this part has lost.
        dead: those of them whose process has certainly ended, and before it can have gone on without this part.
    """
    here = [agent for agent in base if agent not in gone]
    if all(agent in here or agent in dead for agent in base):
        return bool(here)
    if 2 * len(here) == len(base):
        return min(here) == min(base)
    return 2 * len(here) > len(base)


def lacking(bases: Bases, here: Collection[int], dead: Collection[int] = ()) -> tuple[int, ...] | None:
    """The base that does not let the agents `here` go on; None if they may."""
    counted = tuple(base for _, base in bases.counted) or ((),)
    return next((base for base in counted if not holds(base, set(base).difference(here), dead)), None)


def proposed(bases: Bases, attempt: int, base: tuple[int, ...]) -> Bases:
    """An attempt is being prepared, and not all of its agents know of it yet."""
    return Bases(bases.settled, (*bases.counted, (attempt, base)))


def merged(one: Bases, other: Bases) -> Bases:
    """What two agents know. What was prepared before the attempt that was settled last is over; what came later is not."""
    settled = max(one.settled, other.settled)
    return Bases(settled, tuple(each for each in sorted({*one.counted, *other.counted}) if each[0] >= settled))
