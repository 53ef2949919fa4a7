"""A node as a tree of plain values: packages, NUMA nodes, cores, devices and network cards, and which worker has what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from slaunch.frozen import dataclass
from slaunch.node.devices.links import Links
from slaunch.node.values import Device, NodeFacts
from slaunch.plan.build import group
from slaunch.plan.cores import Lists, nodes_of
from slaunch.plan.values import NodePlan, Plan
from slaunch.rendezvous.values import Membership

UNKNOWN = -1

Tree = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A physical core: its CPUs, where it is, and the local ranks of the workers that may run on it."""

    cpus: tuple[int, ...]
    package: int
    numa: int
    cache: int
    workers: tuple[int, ...]


def trees(plan: Plan, membership: Membership, links: Links) -> list[Tree]:
    """Each different node once, with the hosts that look like it. `links`: those of the devices of this machine."""
    found: dict[str, Tree] = {}
    for node, machine in zip(plan.nodes, group(membership.facts), strict=True):
        made = tree_of(node, machine.tasks)
        if membership.rank in machine.ranks:
            add_links(made, links)
        like = found.setdefault(repr({**made, "workers": [without_rank(worker) for worker in made["workers"]]}), made)
        like["hosts"].append(node.host)
    return list(found.values())


def add_links(tree: Tree, links: Links) -> None:
    """Say of each device to which others it has direct links, and how many."""
    devices = [device for place in tree["packages"] for numa in place["numa"] for device in numa["devices"]]
    names = {device["pci"]: f"{device['kind']} {device['label']}" for device in devices}
    for device in devices:
        device["links"] = {names.get(far, far): count for far, count in links.get(device["pci"], {}).items()}


def without_rank(worker: Tree) -> Tree:
    """A worker as others of its local rank on other nodes."""
    return {name: value for name, value in worker.items() if name != "rank"}


def tree_of(node: NodePlan, tasks: Sequence[NodeFacts]) -> Tree:
    """A node as plain values."""
    own = [tasks[at if len(tasks) > 1 else 0] for at in range(len(node.ranks))]
    cpus = tuple(bound or facts.cpus for bound, facts in zip(node.cpus, own, strict=True))
    cells = cells_of(tasks, cpus)
    places = sorted({cell.package for cell in cells} | elsewhere(cells, tasks), key=unknown_last)
    return {
        "hosts": [],
        "online": tasks[0].online,
        "cpus": sorted({cpu for cell in cells for cpu in cell.cpus}),
        "packages": [package(at, cells, tasks, node) for at in places],
        "workers": [worker(node, at, cpus[at], own[at], len(tasks)) for at in range(len(node.ranks))],
        "notes": list(node.notes),
    }


def unknown_last(number: int) -> tuple[bool, int]:
    """Numbers in order, `UNKNOWN` at their end."""
    return number == UNKNOWN, number


def elsewhere(cells: Sequence[Cell], tasks: Sequence[NodeFacts]) -> set[int]:
    """`UNKNOWN`, as a package, where a device or card is on a NUMA node that none of our cores is on."""
    return {UNKNOWN} if numa_of_things(tasks) - {cell.numa for cell in cells} else set()


def numa_of_things(tasks: Sequence[NodeFacts]) -> set[int]:
    """NUMA nodes of devices and cards."""
    devices = {device.numa for facts in tasks for device in facts.devices}
    return devices | {nic.numa for facts in tasks for nic in facts.nics}


def cells_of(tasks: Sequence[NodeFacts], cpus: Lists) -> list[Cell]:
    """The node's cores as all its tasks see them; those beyond their masks only if a worker uses one."""
    used = {cpu for own in cpus for cpu in own}
    parts: dict[int, tuple[set[int], int, int, int]] = {}
    for facts in tasks:
        for core, numa, cache, place in columns(facts, used):
            parts.setdefault(min(core), (set(), place, numa, cache))[0].update(core)
    rows = sorted(parts.values(), key=lambda part: (unknown_last(part[1]), unknown_last(part[2]), min(part[0])))
    return [Cell(tuple(sorted(core)), place, numa, cache, on(core, cpus)) for core, place, numa, cache in rows]


def columns(facts: NodeFacts, used: set[int]) -> Iterable[tuple[tuple[int, ...], int, int, int]]:
    """Cores with their NUMA node, cache and package."""
    wide = bool(facts.reach) and not used <= set(facts.cpus)
    cores = facts.reach if wide else facts.cores
    unknown = (UNKNOWN,) * len(cores)
    numa, caches, places = (
        (facts.reach_numa, facts.reach_caches, facts.reach_packages) if wide else (facts.numa, facts.caches, facts.packages)
    )
    return zip(cores, numa or unknown, caches or unknown, places or unknown, strict=True)


def on(core: set[int], cpus: Lists) -> tuple[int, ...]:
    """Local ranks of the workers that may run on a core."""
    return tuple(at for at, own in enumerate(cpus) if core.intersection(own))


def package(at: int, cells: Sequence[Cell], tasks: Sequence[NodeFacts], node: NodePlan) -> Tree:
    """A package with its NUMA nodes; `UNKNOWN` has what is near none of our cores."""
    own = [cell for cell in cells if cell.package == at]
    numa = {cell.numa for cell in own}
    if at == UNKNOWN:
        numa |= numa_of_things(tasks) - {cell.numa for cell in cells}
    return {"package": at, "numa": [domain(each, own, tasks, node) for each in sorted(numa, key=unknown_last)]}


def domain(numa: int, cells: Sequence[Cell], tasks: Sequence[NodeFacts], node: NodePlan) -> Tree:
    """A NUMA node: its cores, and what is near them."""
    own = [cell for cell in cells if cell.numa == numa]
    devices = {key_of(each): each for facts in tasks for each in facts.devices if each.numa == numa}
    nics = {nic.name: nic for facts in tasks for nic in facts.nics if nic.numa == numa}
    return {
        "numa": numa,
        "memory": any(numa in facts.memory for facts in tasks),
        "cores": [{"cpus": list(cell.cpus), "cache": cell.cache, "workers": list(cell.workers)} for cell in own],
        "devices": [
            {
                **{name: getattr(each, name) for name in ("kind", "label", "pci", "name", "memory_bytes")},
                "links": {},
                "workers": holders(each, node),
            }
            for each in devices.values()
        ],
        "nics": [
            {
                "name": nic.name,
                "kind": nic.kind,
                "speed_mbps": nic.speed_mbps,
                "workers": [at for at, near in enumerate(node.nics) if nic.name in near],
            }
            for nic in nics.values()
        ],
    }


def key_of(device: Device) -> tuple[str, str]:
    """What makes it the same device for two tasks."""
    name = device.uuid or device.pci
    return ("", name) if name else (device.kind, device.label)


def holders(device: Device, node: NodePlan) -> list[int]:
    """Local ranks of a device's workers."""
    return [at for at, own in enumerate(node.devices) if any(key_of(each) == key_of(device) for each in own)]


def worker(node: NodePlan, at: int, cpus: tuple[int, ...], facts: NodeFacts, tasks: int) -> Tree:
    """One worker's share; one of several tasks has the mask that its launcher gave it."""
    return {
        "rank": node.ranks[at],
        "local_rank": at,
        "cpus": list(cpus),
        "bound_by": "slaunch" if node.cpus[at] else "launcher" if tasks > 1 else "",
        "threads": node.threads[at],
        "numa": list(nodes_of(facts, cpus)),
        "memory": {"policy": node.memory_policy, "nodes": list(node.memory[at])} if node.memory and node.memory[at] else None,
        "devices": [f"{device.kind} {device.label}" for device in node.devices[at]],
        "nics": list(node.nics[at]) if node.nics else [],
    }
