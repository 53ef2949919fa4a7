"""Roles of the user's own: whose each worker is, with which command, devices and cores."""

import pytest
from support import plans

from slaunch.errors import DeviceError, PlanError
from slaunch.node.values import SPARE_PORTS
from slaunch.options import Part, Program
from slaunch.plan.modes import find
from slaunch.plan.parts import here
from slaunch.plan.values import Command
from slaunch.plan.workers import worker

LEARNER = Part("learner", (), Program("learn.py"), workers=1, component=0, kind="cpu", cores=3)
ACTOR = Part("actor", (), Program("act.py"), workers=2, component=1)
SERVER = Part("server", (), Program("ps.py"), component=1, kind="cpu")
TRAINER = Part("trainer", (), Program("ps.py"), component=0, workers=2, devices=1)


def planned(parts, *nodes, **chosen):
    """The plan, and each worker's (role, devices, cores)."""
    options = plans.options(parts=tuple(parts), **chosen)
    commands = tuple(Command(part.name, part.ranks, (part.program.target,), part.env) for part in parts)
    membership = plans.Membership(tuple(nodes), 0, 0, "none", "", b"")
    made = plans.build(membership, options, plans.SLURM, ("train.py",), "job7", "/logs", 0, commands)
    specs = [worker(made, rank, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, options) for rank in range(made.world)]
    found = [(spec.argv[0], "".join(device.label for device in spec.devices), len(spec.cpus) // 2) for spec in specs]
    return made, specs, found


def node(index, component, parts, devices=4, chosen=None, **changes):
    """A node of a component, with as many workers as roles have there."""
    options = plans.options(parts=tuple(parts), **(chosen or {}))
    workers = find(options.mode).wish(here(options, component), "").workers
    ports = tuple(range(100, 100 + workers + SPARE_PORTS))
    gpus = plans.gpus(*map(str, range(devices)))
    made = {"visible": "CUDA_VISIBLE_DEVICES", "component": component, "ports": ports, **changes}
    return plans.facts(index, workers=workers, devices=gpus, **made)


def test_components_of_a_heterogeneous_job_have_roles_of_their_own():
    parts = (LEARNER, ACTOR)
    made, specs, found = planned(parts, node(0, 0, parts), node(1, 1, parts), node(2, 1, parts))
    assert found == [("learn.py", "", 3), *[("act.py", "0", 4), ("act.py", "1", 4)] * 2]
    assert [command.ranks for command in made.commands] == [((0, 0),), ((1, 4),)]
    assert specs[0].set_env["CUDA_VISIBLE_DEVICES"] == ""  # it sees no device at all
    assert specs[0].set_env["PADDLE_DISTRI_BACKEND"] == "gloo"
    assert "CUDA_VISIBLE_DEVICES" not in specs[1].set_env  # where no role speaks of devices, lists stay as found


def test_without_components_one_node_plays_all_roles():
    parts = (LEARNER, ACTOR)
    _, specs, found = planned(parts, node(0, -1, parts))
    assert found == [("learn.py", "", 3), ("act.py", "0", 3), ("act.py", "1", 2)]
    assert [spec.set_env["CUDA_VISIBLE_DEVICES"] for spec in specs] == ["", "0", "1"]
    assert specs[0].set_env["OMP_NUM_THREADS"] == "3"


def test_a_job_that_is_tried_on_a_small_machine_shares_what_there_is():
    parts = (LEARNER, Part("actor", (), Program("act.py"), workers=2, component=1, kind="gpu"))
    made, _, found = planned(parts, node(0, -1, parts, devices=0, cpus=(0, 1), cores=((0,), (1,)), online=2))
    assert [name for name, _, _ in found] == ["learn.py", "act.py", "act.py"]
    assert any("share them evenly" in note for note in made.nodes[0].notes)


def test_parameter_servers_on_a_component_of_their_own():
    parts = (SERVER, TRAINER)
    chosen = {"mode": "ps", "server_num": 2}
    everyone = [node(index, min(index, 1), parts, devices=0 if index else 4, chosen=chosen) for index in range(3)]
    made, specs, found = planned(parts, *everyone, **chosen)
    assert [each.roles for each in made.nodes] == [("trainer", "trainer"), ("server", "server"), ("server", "server")]
    assert made.nodes[2].numbers == (2, 3)
    assert [devices for _, devices, _ in found] == ["0", "1", "", "", "", ""]
    assert specs[1].set_env["FLAGS_selected_gpus"] == "0"
    assert specs[1].set_env["CUDA_VISIBLE_DEVICES"] == "1"


def test_roles_by_ranks_have_devices_and_cores_too():
    parts = (
        Part("big", ((0, 0),), Program("a"), devices=2, cores=4),
        Part("small", (), Program("b"), kind="gpu"),
    )
    _, specs, found = planned(parts, plans.facts(0, workers=3, devices=plans.gpus(*"0123"), visible="CUDA_VISIBLE_DEVICES"))
    assert found == [("a", "01", 4), ("b", "2", 2), ("b", "3", 2)]
    assert specs[0].set_env["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_tasks_of_a_component_are_of_its_one_role_however_many_they_are():
    tasks = [plans.facts(machine, workers=1, component=machine) for machine in (0, 1, 1, 1)]
    made, _, found = planned((LEARNER, ACTOR), *tasks)
    assert made.layout == "task"
    assert [name for name, _, _ in found] == ["learn.py", "act.py", "act.py", "act.py"]
    assert "left aside" in made.nodes[0].notes[0]  # cores: they are the scheduler's to give


def test_a_task_whose_role_wants_no_device_sees_none():
    parts = (Part("reader", ((0, 0),), Program("r"), devices=0), Part("rest", (), Program("t")))
    gpus = {"devices": plans.gpus(*"01"), "visible": "CUDA_VISIBLE_DEVICES"}
    _, specs, found = planned(parts, *(plans.facts(0, workers=1, **gpus) for _ in range(3)))
    assert [devices for _, devices, _ in found] == ["", "0", "1"]
    assert specs[0].set_env["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("parts", "component", "changes", "error", "word"),
    [
        ((LEARNER,), 1, {"workers": 1}, PlanError, "no role of --roles has workers on component 1"),
        ((LEARNER, ACTOR), 0, {"workers": 1, "cores": ((0, 1), (2, 3)), "cpus": (0, 1, 2, 3)}, PlanError, "ask for 3 cores"),
        ((Part("a", (), Program("a"), workers=1, kind="xpu"),), -1, {}, DeviceError, "of the kind gpu"),
        ((Part("a", (), Program("a"), workers=1, devices=9),), -1, {}, DeviceError, "9 devices"),
        ((Part("a", (), Program("a")), Part("b", (), Program("b"))), -1, {"workers": 2}, PlanError, "a and b have no ranks"),
        ((Part("a", (), Program("a"), workers=1), ACTOR), -1, {"workers": 2}, PlanError, "1 a, 2 actor"),
    ],
)
def test_roles_that_do_not_fit(parts, component, changes, error, word):
    with pytest.raises(error) as caught:
        planned(parts, node(0, component, parts, **changes) if not changes.get("workers") else sized(component, changes))
    assert word in str(caught.value)


def sized(component, changes):
    """A node with a number of workers that its roles did not tell."""
    workers = changes["workers"]
    more = {name: value for name, value in changes.items() if name != "workers"}
    return plans.facts(0, workers=workers, component=component, devices=plans.gpus(*"0123"), **more)


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ((Part("sever", (), Program("a"), workers=1), Part("", (), Program("b"))), "has sever; the mode ps has server, trainer"),
        ((Part("server", (), Program("a"), workers=0), Part("", (), Program("b"))), "no server"),
        ((Part("coordinator", (), Program("a")), Part("", (), Program("b"))), "coordinator and the job have no ranks"),
    ],
)
def test_roles_that_the_mode_does_not_have(parts, word):
    with pytest.raises(PlanError) as caught:
        planned(parts, plans.facts(0, workers=2), mode="ps")
    assert word in str(caught.value)


def test_cores_of_a_role_are_near_its_devices():
    """Two NUMA nodes of four cores; the device is at the second one."""
    device = plans.dataclasses.replace(plans.gpus("0")[0], numa=1)
    cores = tuple((core,) for core in range(8))
    facts = plans.facts(0, workers=2, devices=(device,), cpus=tuple(range(8)), cores=cores, numa=(0,) * 4 + (1,) * 4)
    parts = (Part("t", ((0, 0),), Program("t"), devices=1, cores=3), Part("s", (), Program("s"), kind="cpu"))
    _, specs, _ = planned(parts, facts)
    assert specs[0].cpus == (4, 5, 6)
    assert set(specs[1].cpus) <= {0, 1, 2, 3, 7}
    assert planned(parts, facts, bind="none")[1][0].cpus == ()
    assert planned(parts, facts, bind="none")[1][0].set_env["OMP_NUM_THREADS"] == "3"
    assert planned(parts, facts, bind="map:0,1")[1][0].cpus == (0,)  # the user's own CPUs win
