"""Whether workers run where the plan put them, as the kernel tells.

A library may move its process: OpenMP and BLAS runtimes pin the thread that loads them, and what it starts later inherits that.
"""

from __future__ import annotations

from collections.abc import Iterable

from slaunch.node.cpulist import parse, render
from slaunch.node.files import read_text


def mask_of(pid: int, root: str = "/") -> tuple[int, ...]:
    """CPUs that a process may run on, ascending; () if it has ended."""
    for line in read_text(f"{root.rstrip('/')}/proc/{pid}/status").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return parse(value.strip())
    return ()


def deviations(workers: Iterable[tuple[int, int, tuple[int, ...]]], root: str = "/") -> tuple[str, ...]:
    """One line for each worker that is not where it should be.

    Args:
        workers: rank, process id and planned CPUs of each; those with () are bound to nothing and are passed over.
        root: where `proc` is found.
    """
    real = ((rank, pid, planned, mask_of(pid, root)) for rank, pid, planned in workers if planned)
    return tuple(
        f"rank {rank} (process {pid}) runs on CPUs {render(mask)} instead of {render(planned)}: "
        "something in it, such as an OpenMP or BLAS library, has changed its mask"
        for rank, pid, planned, mask in real
        if mask and mask != planned
    )
