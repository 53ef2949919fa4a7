"""Which of the nodes that could take part in an attempt do, and in which order: pure rules.

A node keeps its place from attempt to attempt. The place of one that is gone is taken by one that waits, so that all ranks stay
where they were; where none waits, the others close up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slaunch.agent.policy import Policy


def seated(before: Sequence[int], fit: Collection[int], policy: Policy) -> tuple[int, ...]:
    """The nodes of an attempt, in order.

    Args:
        before: those of the last attempt, in order.
        fit: those that can take part, which waited or not.
        policy: how many are wanted.
    """
    waiting = [node for node in sorted(fit) if node not in before]
    wanted = number_of(len(fit), policy)
    seats: list[int] = []
    for node in before:
        if node in fit:
            seats.append(node)
        elif waiting:
            seats.append(waiting.pop(0))
    return (*seats, *waiting)[:wanted]


def number_of(there: int, policy: Policy) -> int:
    """With how many of so many nodes an attempt runs: those beyond the wanted number wait, as many as the user wants do."""
    wanted = max(policy.goal, there - policy.spares)
    return min(there, wanted, policy.most or there)
