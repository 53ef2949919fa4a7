"""Limits of this process that are known to break training: told before the start, with the node's name.

Slurm hands the limits of the shell that submitted the job to its tasks, unless the site says otherwise (slurm.conf,
PropagateResourceLimitsExcept).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping

from slaunch.node.files import names

UNLIMITED = resource.RLIM_INFINITY
FILES = 1024
"""Open files of one worker: data loaders, sockets to all peers, libraries."""
PROCESSES = 128
"""Processes and threads of one worker, data loaders and OpenMP threads among them."""
STACK_BYTES = 1 << 20
NUMBERS = {
    "memlock": resource.RLIMIT_MEMLOCK,
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
}


def read_limits() -> dict[str, tuple[int, int]]:
    """Soft and hard limit by name; `UNLIMITED` where there is none."""
    return {name: resource.getrlimit(number) for name, number in NUMBERS.items()}


def limit_notes(limits: Mapping[str, tuple[int, int]], workers: int, rdma: bool, root: bool) -> tuple[str, ...]:
    """One line for each limit that is too low.

    Args:
        limits: as `read_limits` gives them.
        workers: number of workers here.
        rdma: whether there are InfiniBand, RoCE or similar devices, which lock memory.
        root: whether the superuser runs this, whose processes are not counted.
    """
    low = {
        "memlock": rdma and below(limits["memlock"], UNLIMITED),
        "nofile": below(limits["nofile"], FILES),
        "nproc": not root and below(limits["nproc"], PROCESSES * workers),
        "stack": below(limits["stack"], STACK_BYTES),
    }
    return tuple(f"{text_of(name, limits[name])}: {WHY[name]}" for name, wrong in low.items() if wrong)


WHY = {
    "memlock": "RDMA cannot lock memory and falls back or fails; ulimit -l unlimited where you submit, or ask the site",
    "nofile": f"a worker may need {FILES} files and sockets; raise it with ulimit -n",
    "nproc": f"{PROCESSES} processes and threads per worker are usual; raise it with ulimit -u",
    "stack": "programs may crash without a word; raise it with ulimit -s",
}


def below(limit: tuple[int, int], enough: int) -> bool:
    """Whether the soft limit is less than what is needed."""
    soft = limit[0]
    return soft != UNLIMITED and (enough == UNLIMITED or soft < enough)


def text_of(name: str, limit: tuple[int, int]) -> str:
    """The limit as it is called by `ulimit -a` and prlimit(1)."""
    soft, hard = ("unlimited" if each == UNLIMITED else str(each) for each in limit)
    return f"limit {name} is {soft} (hard limit {hard})"


def has_rdma(root: str) -> bool:
    """Whether this machine has RDMA devices."""
    return bool(names(f"{root.rstrip('/')}/sys/class/infiniband"))


def notes_here(workers: int, root: str = "/") -> tuple[str, ...]:
    """`limit_notes` of this process on this machine."""
    return limit_notes(read_limits(), workers, has_rdma(root), os.geteuid() == 0)
