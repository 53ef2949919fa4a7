"""Nodes for maps: recorded machines with recorded network cards, and plans on them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

from slaunch.frozen import replace
from slaunch.node.fabric import read_nics
from slaunch.node.values import SPARE_PORTS, Address, Device, Nic, NodeFacts
from slaunch.plan.build import build
from slaunch.plan.values import Plan
from slaunch.rendezvous.values import Membership
from support import fabrics, machines, plans

CASES: Mapping[str, Mapping[str, object]] = {
    "dgx-h100": {"workers": 8, "fabric": "dgx-h100", "nodes": 4},
    "mi250x": {"workers": 8, "fabric": "mi250x"},
    "dgx-a100": {"workers": 8},
    "grace-hopper": {"workers": 4},
    "xeon-two-each": {"machine": "xeon", "workers": 2, "fabric": "xeon", "chosen": {"devices_per_worker": 2}},
    "xeon-unbound": {"machine": "xeon", "workers": 4, "chosen": {"bind": "none"}},
    "laptop": {"workers": 1},
    "slice-tasks": {"machine": "slice", "workers": 2, "tasks": True},
}
"""What is drawn: machine, number of workers, and what else differs."""


def planned(name: str) -> tuple[Plan, Membership]:
    """A case's plan, and the facts it was made from."""
    case = CASES[name]
    machine = machines.load()[str(case.get("machine", name))]
    devices, nics = equipment(machine, str(case.get("fabric", "")))
    workers = int(str(case["workers"]))
    one = machines.facts(machine, workers, devices=devices, nics=nics, memory=tuple(n for n, cpus in machine.numa.items()))
    if case.get("tasks"):
        facts = [placed(shut_in(one, at, workers), 0, at, 1) for at in range(workers)]
    else:
        facts = [placed(one, at, at, workers) for at in range(int(str(case.get("nodes", 1))))]
    membership = Membership(tuple(facts), 0, 0, "none", "", b"")
    options = plans.options(**case.get("chosen", {}))
    return build(membership, options, plans.SLURM, ("python3", "train.py"), "job7", "/logs"), membership


def equipment(machine: machines.Machine, fabric: str) -> tuple[tuple[Device, ...], tuple[Nic, ...]]:
    """The machine's devices and cards."""
    if not fabric:
        return machines.devices(machine), ()
    raw = fabrics.load()[fabric]
    with tempfile.TemporaryDirectory() as folder:
        fabrics.write_sysfs(raw, folder)
        return fabrics.devices(raw), read_nics(fabrics.devices(raw), folder)


def placed(facts: NodeFacts, host: int, task: int, workers: int) -> NodeFacts:
    """A task on a host, with an address and ports."""
    first = 20000 + 100 * task
    return replace(
        facts,
        host=f"n{host + 1}",
        machine=f"machine{host}",
        addresses=(Address(f"10.0.0.{host + 1}", "eth0", 24),),
        ports=tuple(range(first, first + workers + SPARE_PORTS)),
    )


def shut_in(facts: NodeFacts, at: int, tasks: int) -> NodeFacts:
    """One of several tasks, each with its share of the cores and a device of its own."""
    each = len(facts.cores) // tasks
    part = slice(at * each, (at + 1) * each)
    columns = {name: getattr(facts, name)[part] for name in ("cores", "numa", "caches", "packages")}
    cpus = tuple(sorted(cpu for core in columns["cores"] for cpu in core))
    return replace(facts, workers=1, cpus=cpus, devices=(replace(facts.devices[at], position=0),), **columns)
