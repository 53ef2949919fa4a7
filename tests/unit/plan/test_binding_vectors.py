"""mpibind's own expectations: every worker must be placed at least as near as there."""

from __future__ import annotations

import json

import pytest
from support import machines

from slaunch.errors import PlanError
from slaunch.node.cpulist import parse
from slaunch.node.values import Device
from slaunch.plan.binding import bind

with open(f"{machines.DATA}/vectors/binding_mpibind.json") as file:
    VECTORS = json.load(file)


def machine_of(topology):
    cores = tuple(parse(core) for core in topology["cores"])
    numa = {index: parse(cpus) for index, cpus in enumerate(topology["memory_nodes"])}
    cpus = tuple(sorted(cpu for core in cores for cpu in core))
    return machines.Machine("vector", cores, numa, (), cpus, ())


def allowed(machine, case):
    only = case.get("only")
    if only is None:
        return machine.cpus
    return parse(only["set"]) if only["kind"] == 0 else machine.numa[int(only["set"])]


def near_of(topology):
    """The NUMA node of each GPU of a machine: mpibind tells it where it gives the GPU to a worker on one node."""
    machine = machine_of(VECTORS["topologies"][topology])
    near = {}
    for case in VECTORS["cases"]:
        for gpus, cpus in zip(case["gpus"], case["cpus"], strict=True):
            found = nodes(machine, parse(cpus))
            if gpus and case["topology"] == topology and case["gpu_first"] and "only" not in case and len(found) == 1:
                near.update(dict.fromkeys(gpus.split(","), found.pop()))
    return near


def devices_of(case):
    """The case's GPUs of each worker."""
    near = near_of(case["topology"])
    return [tuple(Device("gpu", 0, gpu, numa=near[gpu]) for gpu in filter(None, gpus.split(","))) for gpus in case["gpus"]]


def nodes(machine, cpus):
    return {machine.node_of(cpu) for cpu in cpus}


PLACED = [case for case in VECTORS["cases"] if "single pu" not in case["what"]]
STACKED = [case for case in VECTORS["cases"] if "single pu" in case["what"]]


def name(case):
    return f"{case['topology']}: {case['what']}"


@pytest.mark.parametrize("case", PLACED, ids=name)
def test_p41_at_least_as_near_as_mpibind(case):
    machine = machine_of(VECTORS["topologies"][case["topology"]])
    mine = allowed(machine, case)
    made = bind(machines.facts(machine, case["tasks"], usable=mine), devices_of(case))
    assert len(made.cpus) == case["tasks"]
    assert sum(map(len, made.cpus)) == len({cpu for cpus in made.cpus for cpu in cpus})
    for cpus, theirs, gpus in zip(made.cpus, case["cpus"], case["gpus"], strict=True):
        assert set(cpus) <= set(mine)
        assert len(nodes(machine, cpus)) <= len(nodes(machine, parse(theirs)))
        if gpus:
            assert nodes(machine, cpus) <= nodes(machine, parse(theirs))


@pytest.mark.parametrize("case", STACKED, ids=name)
def test_eight_workers_are_not_stacked_on_one_hardware_thread(case):
    machine = machine_of(VECTORS["topologies"][case["topology"]])
    with pytest.raises(PlanError):
        bind(machines.facts(machine, case["tasks"], usable=allowed(machine, case)), ((),) * case["tasks"])
