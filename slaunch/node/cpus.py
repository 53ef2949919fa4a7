"""Which CPUs this task may run on, and how they hang together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from slaunch.frozen import dataclass
from slaunch.node.cpulist import parse
from slaunch.node.files import read_int, read_text


@dataclass(frozen=True)
class Cores:
    """Physical cores in ascending order of their first CPU.

    Attributes:
        cpus: the usable CPUs of each core.
        numa: NUMA node of each core; -1 if unknown.
        caches: last-level cache of each core, named by the lowest CPU that shares it; -1 if unknown.
        packages: package (socket) of each core; -1 if unknown.
    """

    cpus: tuple[tuple[int, ...], ...]
    numa: tuple[int, ...]
    caches: tuple[int, ...]
    packages: tuple[int, ...]


NO_CORES = Cores((), (), (), ())

BINDERS = {
    "OMPI_COMM_WORLD_RANK": "mpirun",
    "PALS_RANKID": "mpiexec",
    "FLUX_TASK_RANK": "flux run",
    "SLURM_STEP_ID": "srun",
    "PMI_RANK": "mpiexec",
}
"""Launchers that bind their tasks to CPUs unless told otherwise, by a variable that each sets; the innermost first."""


def binder(env: Mapping[str, str]) -> str:
    """The launcher that may have bound this task; "" if none has started it."""
    return next((name for variable, name in BINDERS.items() if variable in env), "")


@dataclass(frozen=True)
class CpuFacts:
    """CPUs of this task.

    Attributes:
        mask: CPUs that the task may run on now.
        cores: these, by physical core.
        reach: all cores that the kernel would grant, if these are more; else `NO_CORES`.
        online: number of CPUs of the machine.
    """

    mask: tuple[int, ...]
    cores: Cores
    reach: Cores
    online: int


def read_cpus(root: str = "/", mask: Iterable[int] = (), granted: Iterable[int] = ()) -> CpuFacts:
    """CPUs of this task on this machine.

    Args:
        root: where `sys` is found; another directory holds a recorded machine.
        mask: CPUs of the task; empty = ask the kernel.
        granted: CPUs that the kernel grants; empty = ask the kernel.
    """
    system = os.path.join(root, "sys/devices/system")
    own = frozenset(mask) or frozenset(os.sched_getaffinity(0))
    online = frozenset(parse(read_text(f"{system}/cpu/online"))) or own
    wide = frozenset(granted) or (own if own >= online else reachable(own, online))
    return CpuFacts(
        tuple(sorted(own)), cores_of(system, own), cores_of(system, wide) if wide > own else NO_CORES, len(online)
    )


def reachable(own: frozenset[int], online: frozenset[int]) -> frozenset[int]:
    """CPUs that the kernel grants to this process when it asks for all of them.

    The kernel cuts such a request down to the CPUs of the process's cgroup, so the answer is right for every version and
    mount of cgroups, where the scheduler's CPU binding (a mere mask) can be undone and its cgroup cannot.
    """
    try:
        os.sched_setaffinity(0, online)
        granted = frozenset(os.sched_getaffinity(0))
        os.sched_setaffinity(0, own)
    except OSError:  # a sandbox that forbids the call: then the mask is all there is
        return own
    return granted


def cores_of(system: str, cpus: frozenset[int]) -> Cores:
    """Group CPUs by physical core, reading one file for each core and cache, and two for each NUMA node."""
    numa_of = numa_nodes(system)
    several = len(set(numa_of.values())) > 1
    cache_of: dict[int, int] = {}
    package_of: dict[int, int] = {}
    seen: set[int] = set()
    cores = []
    for cpu in sorted(cpus):
        if cpu in seen:
            continue
        siblings = parse(read_text(f"{system}/cpu/cpu{cpu}/topology/thread_siblings_list")) or (cpu,)
        seen.update(siblings)
        if cpu not in cache_of:
            shared = parse(read_last_cache(f"{system}/cpu/cpu{cpu}/cache"))
            cache_of.update(dict.fromkeys(shared or (cpu,), shared[0] if shared else -1))
        numa = numa_of.get(cpu, -1)
        part = numa if several else cache_of[cpu]  # neither reaches beyond a package, but for a lone NUMA node
        if part not in package_of:
            package_of[part] = read_int(f"{system}/cpu/cpu{cpu}/topology/physical_package_id", -1)
        cores.append((tuple(sibling for sibling in siblings if sibling in cpus), numa, cache_of[cpu], package_of[part]))
    return Cores(*(tuple(column) for column in zip(*cores, strict=True))) if cores else NO_CORES


def numa_nodes(system: str) -> dict[int, int]:
    """NUMA node of each CPU of the machine."""
    nodes = parse(read_text(f"{system}/node/online"))
    return {cpu: node for node in nodes for cpu in parse(read_text(f"{system}/node/node{node}/cpulist"))}


def read_last_cache(caches: str) -> str:
    """CPUs that share the last-level cache: the third level's, or the second's on machines without a third."""
    return read_text(f"{caches}/index3/shared_cpu_list") or read_text(f"{caches}/index2/shared_cpu_list")
