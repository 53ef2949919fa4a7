"""Machines for tests: the facts of those in tests/data/machines, and their sysfs as files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slaunch.node.cpulist import parse, render
from slaunch.node.values import Device, NodeFacts

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")


@dataclass(frozen=True)
class Machine:
    """Its cores (all their CPUs), the CPUs of each NUMA node, groups of CPUs that share a cache, usable CPUs, device nodes, and
    the NUMA nodes of each package."""

    name: str
    cores: tuple[tuple[int, ...], ...]
    numa: Mapping[int, tuple[int, ...]]
    caches: tuple[tuple[int, ...], ...]
    usable: tuple[int, ...]
    devices: tuple[int, ...]
    packages: tuple[tuple[int, ...], ...] = ()

    @property
    def cpus(self) -> tuple[int, ...]:
        return tuple(sorted(cpu for core in self.cores for cpu in core))

    def package_of(self, cpu: int) -> int:
        return next((at for at, nodes in enumerate(self.packages) if self.node_of(cpu) in nodes), -1)

    def node_of(self, cpu: int) -> int:
        return next((node for node, cpus in self.numa.items() if cpu in cpus), -1)


def load() -> dict[str, Machine]:
    with open(f"{DATA}/machines/machines.json") as file:
        raw = json.load(file)
    return {name: one(name, fields) for name, fields in raw.items() if name != "about"}


def one(name: str, raw: Mapping[str, object]) -> Machine:
    count, threads, stride, shared = (int(str(raw[key])) for key in ("cores", "threads", "stride", "caches"))
    cores = tuple(tuple(core + stride * thread for thread in range(threads)) for core in range(count))
    numa = {int(node): parse(cpus) for node, cpus in raw["numa"].items()}  # type: ignore[attr-defined]
    groups = [cores[low : low + shared] for low in range(0, count, shared)] if shared else []
    caches = tuple(tuple(sorted(cpu for core in group for cpu in core)) for group in groups)
    everything = render(cpu for core in cores for cpu in core)
    usable = parse(str(raw.get("usable", everything)))
    packages = tuple(map(tuple, raw["packages"]))  # type: ignore[call-overload]
    return Machine(name, cores, numa, caches, usable, tuple(raw["devices"]), packages)  # type: ignore[arg-type]


def facts(
    machine: Machine, workers: int, /, usable: Sequence[int] = (), reach: Sequence[int] = (), **changes: object
) -> NodeFacts:
    """Facts of a task that may use these CPUs (else all usable ones), and reach those."""
    mine, wide = columns(machine, usable or machine.usable), columns(machine, reach)
    fields: dict[str, object] = {
        "host": machine.name,
        "machine": f"boot-of-{machine.name}",
        "addresses": (),
        "cpus": tuple(sorted(usable or machine.usable)),
        "cores": mine[0],
        "devices": devices(machine),
        "visible": "",
        "workers": workers,
        "ports": (),
        "control_port": 0,
        "pid": 1,
        "python": "python",
        "versions": "",
        "program_digest": "",
        "time_s": 0.0,
        "numa": mine[1],
        "caches": mine[2],
        "reach": wide[0],
        "reach_numa": wide[1],
        "reach_caches": wide[2],
        "packages": tuple(machine.package_of(core[0]) for core in mine[0]),
        "reach_packages": tuple(machine.package_of(core[0]) for core in wide[0]),
        "online": len(machine.cpus),
        "binder": "srun",
    }
    return NodeFacts(**(fields | changes))  # type: ignore[arg-type]


Columns = tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...]]


def columns(machine: Machine, cpus: Sequence[int]) -> Columns:
    """Cores, NUMA nodes, caches of a set of CPUs, as the probe makes them."""
    cores = tuple(tuple(cpu for cpu in core if cpu in set(cpus)) for core in machine.cores)
    cores = tuple(core for core in cores if core)
    caches = tuple(next((group[0] for group in machine.caches if core[0] in group), -1) for core in cores)
    return cores, tuple(machine.node_of(core[0]) for core in cores), caches


def devices(machine: Machine) -> tuple[Device, ...]:
    return tuple(Device("gpu", at, str(at), numa=node) for at, node in enumerate(machine.devices))


def write_sysfs(machine: Machine, root: str) -> None:
    """The machine's sysfs below `root`: the files that a kernel has there and slaunch reads."""
    for path, text in sysfs(machine):
        full = os.path.join(root, "sys/devices/system", path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as file:
            file.write(f"{text}\n")


def sysfs(machine: Machine) -> Iterator[tuple[str, str]]:
    yield "cpu/online", render(machine.cpus)
    yield "node/online", render(machine.numa)
    for node, cpus in machine.numa.items():
        yield f"node/node{node}/cpulist", render(cpus)
    for core in machine.cores:
        for cpu in core:
            yield f"cpu/cpu{cpu}/topology/thread_siblings_list", render(core)
            yield f"cpu/cpu{cpu}/topology/physical_package_id", str(machine.package_of(cpu))
    for group in machine.caches:
        for cpu in group:
            yield f"cpu/cpu{cpu}/cache/index3/shared_cpu_list", render(group)
