"""Where workers' memory comes from, on recorded machines."""

from __future__ import annotations

import pytest
from support import machines, plans

from slaunch.errors import PlanError
from slaunch.node.devices.choose import assign
from slaunch.plan.binding import bind
from slaunch.plan.memory import LEFT, of_node, of_tasks

MACHINES = machines.load()
WITH_MEMORY = {name: tuple(machine.numa) for name, machine in MACHINES.items()}
"""Every NUMA node has memory; on Grace Hopper some are memory alone."""


def facts(name, workers, **changes):
    return machines.facts(MACHINES[name], workers, **{"memory": WITH_MEMORY[name]} | changes)


def chosen(name, workers, wish="auto", policy="auto", **changes):
    seen = facts(name, workers, **changes)
    devices = machines.devices(MACHINES[name])
    given = assign(devices, workers) if workers <= len(devices) else ((),) * workers
    return of_node(seen, bind(seen, given, policy).cpus, wish)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "mi250x", "grace-hopper", "epyc-quad", "xeon"])
def test_p43_workers_bound_to_one_node_of_several_prefer_its_memory(name):
    machine = MACHINES[name]
    made = chosen(name, len(machine.devices))
    assert made.policy == "preferred"
    assert made.nodes == tuple((node,) for node in machine.devices)


@pytest.mark.parametrize(
    ("why", "made"),
    [
        ("one NUMA node", chosen("slice", 2)),
        ("a worker on all nodes", chosen("dgx-h100", 1)),
        ("not bound", chosen("dgx-h100", 8, policy="none")),
        ("numactl started slaunch", chosen("dgx-h100", 8, memory_policy="interleave")),
        ("a container forbids it", chosen("dgx-h100", 8, memory_policy="refused")),
        ("not wanted", chosen("dgx-h100", 8, wish="none")),
        ("no memory where the CPUs are", chosen("dgx-h100", 8, memory=(2, 3))),
    ],
)
def test_auto_leaves_memory_to_the_system(why, made):
    assert made == LEFT, why


def test_a_worker_that_spans_nodes_is_left_beside_those_that_do_not():
    seen = facts("xeon", 2)
    made = of_node(seen, ((0, 2), (4, 5)), "auto")
    assert made.nodes == ((0,), ())


def test_p43_bind_takes_the_nodes_of_the_worker_s_cpus_only():
    assert chosen("dgx-h100", 8, wish="bind").nodes == ((0,),) * 4 + ((1,),) * 4
    assert chosen("dgx-h100", 1, wish="bind").nodes == ((0, 1),)
    assert chosen("slice", 2, wish="bind").nodes == ((0,), (0,))


def test_bind_asks_for_no_memory_that_the_cgroup_forbids():
    assert chosen("dgx-h100", 1, wish="bind", memory=(1,)).nodes == ((1,),)


def test_a_preference_that_cannot_be_is_told():
    made = chosen("dgx-h100", 1, wish="preferred")
    assert made.nodes == ()
    assert "CPUs of 1 of 1 workers lie on several NUMA nodes" in made.notes[0]


def test_a_wish_overrides_the_policy_that_slaunch_was_started_with():
    assert chosen("dgx-h100", 8, wish="preferred", memory_policy="interleave").nodes == ((0,),) * 4 + ((1,),) * 4


@pytest.mark.parametrize(("changes", "said"), [({"memory_policy": "refused"}, "refuses"), ({"memory": ()}, "no NUMA node")])
def test_a_wish_that_the_kernel_refuses_is_an_error(changes, said):
    with pytest.raises(PlanError, match="node dgx-h100") as told:
        chosen("dgx-h100", 8, wish="bind", **changes)
    assert said in told.value.seen


def test_tasks_that_are_workers_keep_what_the_scheduler_chose():
    tasks = [facts("dgx-h100", 1, usable=(0, 112)), facts("dgx-h100", 1, usable=(56, 168))]
    assert of_tasks(tasks, "auto") == LEFT
    assert of_tasks(tasks, "bind").nodes == ((0,), (1,))


def test_the_plan_hands_it_to_the_workers():
    nodes = [plans.facts(0, 2, numa=(0,) * 4 + (1,) * 4, memory=(0, 1)), plans.facts(1, 2)]
    made = plans.plan(nodes)
    assert (made.nodes[0].memory, made.nodes[0].memory_policy) == (((0,), (1,)), "preferred")
    assert made.nodes[1].memory == ()
    specs = [plans.worker(made, rank, {}, plans.options()) for rank in range(4)]
    assert [(spec.memory, spec.memory_policy) for spec in specs] == [((0,), "preferred"), ((1,), "preferred"), ((), ""), ((), "")]
    assert plans.plan(nodes, bind_memory="none").digest != made.digest
