"""Whether workers run where the plan put them, as the kernel tells.

A library may move its process: OpenMP and BLAS runtimes pin the thread that loads them, and what it starts later inherits that.
"""

from __future__ import annotations

from collections.abc import Iterable

from slaunch.frozen import dataclass
from slaunch.node.cpulist import parse, render
from slaunch.node.files import read_text
from slaunch.node.mempolicy import policy_of, told


@dataclass(frozen=True)
class Placed:
    """A worker's place by the plan: its rank, its process, CPUs and memory, as in `WorkerSpec`."""

    rank: int
    pid: int
    cpus: tuple[int, ...]
    memory: tuple[int, ...] = ()
    memory_policy: str = ""


def mask_of(pid: int, root: str = "/") -> tuple[int, ...]:
    """CPUs that a process may run on, ascending; () if it has ended."""
    for line in read_text(f"{root.rstrip('/')}/proc/{pid}/status").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return parse(value.strip())
    return ()


def deviations(workers: Iterable[Placed], root: str = "/") -> dict[int, str]:
    """What is wrong with the place of each worker, by rank; those that are in their place, or have ended, are left out.

    Args:
        workers: those to look at; whoever is bound to nothing is in his place.
        root: where `proc` is found.
    """
    found = ((worker.rank, deviation(worker, root)) for worker in workers)
    return {rank: text for rank, text in found if text}


def deviation(worker: Placed, root: str = "/") -> str:
    """What is wrong with a worker's place, in a line; "" if nothing is."""
    who = f"rank {worker.rank} (process {worker.pid})"
    mask = mask_of(worker.pid, root) if worker.cpus else ()
    if mask and mask != worker.cpus:
        return (
            f"{who} runs on CPUs {render(mask)} instead of {render(worker.cpus)}: something in it, such as an OpenMP or BLAS "
            "library, has changed its mask"
        )
    policy = policy_of(worker.pid, root) if worker.memory else ""
    if policy and policy != told(worker.memory_policy, worker.memory):
        return (
            f"{who} takes its memory by the policy {policy} instead of {told(worker.memory_policy, worker.memory)}: "
            "the kernel refused it, or something in it has changed it"
        )
    return ""
