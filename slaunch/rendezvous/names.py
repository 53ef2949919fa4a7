"""Naming tasks and nodes in messages, shortly even if there are thousands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.allocation.values import Allocation

MOST = 8
"""So many names at most in one line."""


def some(names: Sequence[str], most: int = MOST) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def rank_text(ranks: Sequence[int]) -> str:
    """Ascending numbers as "task 3" or "tasks 0-2, 5"."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return f"task{'s' if len(ranks) != 1 else ''} {some(words)}"


def missing_text(missing: Sequence[int], here: Mapping[int, str], allocation: Allocation) -> str:
    """Who is missing: by node where the launcher tells where its tasks are.

    Args:
        missing: their ranks, ascending.
        here: nodes of those who are here, by rank.
        allocation: what the launcher told.
    """
    nodes, per_node = allocation.nodes, allocation.tasks_per_node
    if set(per_node) == {1} and len(nodes) == len(missing) + len(here):
        return some([f"{nodes[rank]} (task {rank})" for rank in missing])
    if not per_node or len(nodes) != len(per_node):
        return rank_text(missing)
    arrived = list(here.values())
    short = [
        f"{node} ({arrived.count(node)} of {tasks} here)"
        for node, tasks in zip(nodes, per_node, strict=True)
        if arrived.count(node) < tasks
    ]
    return f"{rank_text(missing)}; by node: {some(short)}" if short else rank_text(missing)
