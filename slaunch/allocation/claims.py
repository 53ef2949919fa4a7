"""Numbers that the user gives although the launcher knows them: they must agree."""

from __future__ import annotations

from slaunch.allocation.values import Shell, Task
from slaunch.errors import AllocationError


def check_claims(standing: Task | Shell, nodes: int | None = None, rank: int | None = None) -> None:
    """Refuse a number of nodes or a rank that differs from the launcher's.

    A rank that a script passes is often one that the batch shell expanded too early, so that every node claims the same.

    Args:
        standing: what the launcher says.
        nodes: number of nodes that the user gave; None = not given.
        rank: rank of this node's task that the user gave; None = not given.

    Raises:
        AllocationError: they differ.
    """
    known = standing.shape.nodes if isinstance(standing, Shell) else len(standing.allocation.nodes)
    if nodes is not None and known and nodes != known:
        raise _disagreement(standing, f"{nodes} nodes were given", f"has {known}")
    if rank is not None and isinstance(standing, Task) and rank != standing.slot.rank:
        raise _disagreement(standing, f"rank {rank} was given", f"says this task is rank {standing.slot.rank}")


def _disagreement(standing: Task | Shell, given: str, known: str) -> AllocationError:
    return AllocationError(
        "start as the user and the launcher both say",
        f"{given}, but {standing.allocation.launcher} {known}",
        "leave it out: slaunch reads it from the launcher (in quotes, a shell expands such a variable too early)",
    )
