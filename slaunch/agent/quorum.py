"""Which part of a job that has fallen apart may go on: a pure rule by which two parts never both do.

Counted are the agents that stood together when the last attempt was prepared, those that wait included. A part goes on if it
has more than half of them; of two halves the one with the lowest number does. Agents whose process has certainly ended do not
count, since they cannot be part of another half.
"""

from __future__ import annotations

from collections.abc import Collection


def holds(base: Collection[int], gone: Collection[int], dead: Collection[int] = ()) -> bool:
    """Whether the agents that are left may go on.

    Args:
        base: those that stood together last.
        gone: those that this part has lost.
        dead: those of them that are dead for certain.
    """
    living = [agent for agent in base if agent not in dead]
    here = [agent for agent in living if agent not in gone]
    if 2 * len(here) == len(living):
        return bool(here) and min(here) == min(living)
    return 2 * len(here) > len(living)
