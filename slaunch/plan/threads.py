"""Each worker's number of threads: in the plan of a task, and in its environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.node.values import NodeFacts
from slaunch.plan.binding import Binding
from slaunch.plan.seat import Seat

THREAD_VARIABLES = ("OMP_NUM_THREADS",)
"""MKL, OpenBLAS, numexpr and torch follow OMP_NUM_THREADS where their own variable is unset."""


def threads_of_tasks(tasks: Sequence[NodeFacts]) -> Binding:
    """Layout "task": the scheduler has bound each task (P37). Tasks that have the same CPUs share their cores equally."""
    sharing: dict[tuple[int, ...], int] = {}
    for task in tasks:
        sharing[task.cpus] = sharing.get(task.cpus, 0) + 1
    threads = tuple(max(1, len(task.cores) // sharing[task.cpus]) for task in tasks)
    return Binding(((),) * len(tasks), threads)


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """One thread per physical core of the worker's share, unless the user says otherwise (P44)."""
    threads = str(seat.node.threads[seat.local_rank])
    return {name: threads for name in THREAD_VARIABLES if not env.get(name)}
