"""Each worker's share of its node's CPUs: which to bind to, and how many threads they carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.node.values import NodeFacts
from slaunch.options import Options
from slaunch.plan.seat import Seat

Shares = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]
"""CPUs to bind to (() = not bound) and physical cores, each by local rank."""

THREAD_VARIABLES = ("OMP_NUM_THREADS",)
"""MKL, OpenBLAS, numexpr and torch follow OMP_NUM_THREADS where their own variable is unset."""


def cpus_of_node(facts: NodeFacts, options: Options) -> Shares:
    """Layout "agent": the node's cores are shared out equally."""
    return ((),) * facts.workers, (max(1, len(facts.cores) // facts.workers),) * facts.workers


def cpus_of_tasks(tasks: Sequence[NodeFacts], options: Options) -> Shares:
    """Layout "task": the scheduler has bound each task. Tasks that have the same CPUs share them equally."""
    sharing: dict[tuple[int, ...], int] = {}
    for task in tasks:
        sharing[task.cpus] = sharing.get(task.cpus, 0) + 1
    return ((),) * len(tasks), tuple(max(1, len(task.cores) // sharing[task.cpus]) for task in tasks)


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """One thread per physical core of the worker's share, unless the user says otherwise (P44)."""
    threads = str(seat.node.threads[seat.local_rank])
    return {name: threads for name in THREAD_VARIABLES if not env.get(name)}
