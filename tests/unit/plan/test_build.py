"""From facts to the plan: layouts, ranks, counts, the digest."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plans

from slaunch.errors import DeviceError, PlanError
from slaunch.plan.build import build
from slaunch.plan.values import NodePlan, Plan
from slaunch.rendezvous.values import Membership

counts = st.lists(st.integers(1, 6), min_size=1, max_size=8)


@given(counts)
def test_one_task_per_machine_any_counts_give_block_wise_ranks_once_each(workers):
    made = plans.plan(plans.facts(index, count) for index, count in enumerate(workers))
    assert made.layout == "agent"
    assert [rank for node in made.nodes for rank in node.ranks] == list(range(sum(workers))) == list(range(made.world))
    assert [node.first_rank for node in made.nodes] == [sum(workers[:index]) for index in range(len(workers))]
    assert [len(node.ports) for node in made.nodes] == workers


@given(st.lists(st.integers(0, 4), min_size=2, max_size=20))
def test_any_spread_of_tasks_gives_ranks_once_each_and_rank_is_task_rank(machine_of):
    made = plans.plan(plans.tasks(machine_of))
    assert sorted(rank for node in made.nodes for rank in node.ranks) == list(range(len(machine_of)))
    for node in made.nodes:
        assert {machine_of[rank] for rank in node.ranks} == {machine_of[node.first_rank]}
        assert list(node.ranks) == sorted(node.ranks)
    assert [node.first_rank for node in made.nodes] == sorted(node.first_rank for node in made.nodes)
    several = len(set(machine_of)) < len(machine_of)
    assert made.layout == ("task" if several else "agent")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_every_task_computes_the_same_digest(machine_of, data):
    everyone = tuple(plans.tasks(machine_of))
    me = data.draw(st.integers(0, len(everyone) - 1))
    made = [
        build(Membership(everyone, rank, 0, way, way, secret), plans.options(), plans.SLURM, ("a",), "j")
        for rank, way, secret in ((0, "mpi", b"1"), (me, "slurm", b"2"))
    ]
    assert made[0] == made[1]
    assert made[0].digest == made[1].digest
    assert hash(made[0]) == hash(made[0].digest)


def test_f82_different_counts_per_node_form_one_world():
    made = plans.plan([plans.facts(0, 1), plans.facts(1, 3)])
    assert (made.world, [node.ranks for node in made.nodes]) == (4, [(0,), (1, 2, 3)])
    assert {plans.env_of(made, rank)["PADDLE_GLOBAL_SIZE"] for rank in range(4)} == {"4"}
    assert [plans.env_of(made, rank)["PADDLE_LOCAL_SIZE"] for rank in range(4)] == ["1", "3", "3", "3"]


def test_cyclic_distribution_spreads_ranks_and_counts_positions_on_the_machine():
    made = plans.plan(plans.tasks([0, 1, 0, 1]))
    assert [node.ranks for node in made.nodes] == [(0, 2), (1, 3)]
    env = [plans.env_of(made, rank) for rank in range(4)]
    assert [(each["RANK"], each["LOCAL_RANK"], each["GROUP_RANK"]) for each in env] == [
        ("0", "0", "0"),
        ("1", "0", "1"),
        ("2", "1", "0"),
        ("3", "1", "1"),
    ]


def test_uneven_tasks_per_machine_are_one_world_of_tasks():
    made = plans.plan(plans.tasks([0, 0, 1]))
    assert (made.layout, made.world, [node.ranks for node in made.nodes]) == ("task", 3, [(0, 1), (2,)])


def test_nodes_are_ordered_by_their_lowest_task_not_by_name():
    made = plans.plan([plans.facts(5), plans.facts(2)])
    assert [node.host for node in made.nodes] == ["n6", "n3"]


def test_p15_a_count_that_contradicts_the_scheduler_names_both_numbers():
    with pytest.raises(PlanError) as caught:
        plans.plan(plans.tasks([0, 0]), nproc_per_node=8)
    assert "--nproc_per_node 8" in caught.value.seen
    assert "2 tasks on node n1" in caught.value.seen
    assert plans.plan(plans.tasks([0, 0]), nproc_per_node=2).world == 2


def test_p48_the_world_never_comes_from_visible_devices():
    """Four tasks under --gpu-bind=closest, one GPU visible each: one world of four."""
    everyone = plans.tasks([0, 0, 0, 0])
    for rank, task in enumerate(everyone):
        everyone[rank] = dataclasses.replace(task, devices=plans.gpus(str(rank)), visible="CUDA_VISIBLE_DEVICES")
    made = plans.plan(everyone)
    assert made.world == 4
    assert {plans.env_of(made, rank)["WORLD_SIZE"] for rank in range(4)} == {"4"}


def test_f69_more_workers_than_devices_names_both_and_the_node():
    with pytest.raises(DeviceError) as caught:
        plans.plan([plans.facts(0, 3, plans.gpus("0", "1"))])
    assert "3 workers" in caught.value.wanted
    assert "n1" in caught.value.wanted
    assert "0,1" in caught.value.seen


def test_too_few_ports_is_an_error_not_a_shorter_list():
    with pytest.raises(PlanError, match="6 ports"):
        plans.plan([plans.facts(0, 3, ports=tuple(range(6)))])


def test_no_workers_is_an_error():
    with pytest.raises(PlanError, match="0 workers wanted"):
        plans.plan([plans.facts(0, 0, ports=(1, 2, 3, 4))])


SAMPLE = plans.plan(plans.two_by_two(devices=plans.gpus("0", "1")))
CHANGED = {str: "other", int: 99, tuple: (("x",),), bool: True}


def different(value):
    return CHANGED[type(value)]


@pytest.mark.parametrize("name", sorted(set(Plan.__match_args__) - {"digest", "nodes"}))
def test_the_digest_covers_every_field_of_the_plan(name):
    from slaunch.plan.digest import digest

    assert digest(SAMPLE) == SAMPLE.digest
    assert digest(dataclasses.replace(SAMPLE, **{name: different(getattr(SAMPLE, name))})) != SAMPLE.digest


@pytest.mark.parametrize("name", sorted(set(NodePlan.__match_args__) - {"address", "devices"}))
def test_the_digest_covers_every_field_of_a_node(name):
    from slaunch.plan.digest import digest

    changed = dataclasses.replace(SAMPLE.nodes[1], **{name: different(getattr(SAMPLE.nodes[1], name))})
    assert digest(dataclasses.replace(SAMPLE, nodes=(SAMPLE.nodes[0], changed))) != SAMPLE.digest


@pytest.mark.parametrize("part", ["address", "devices"])
def test_the_digest_covers_addresses_and_devices(part):
    from slaunch.plan.digest import digest

    node = SAMPLE.nodes[1]
    other = {"address": dataclasses.replace(node.address, ip="10.0.0.9"), "devices": (plans.gpus("0"), plans.gpus("7"))}[part]
    changed = dataclasses.replace(node, **{part: other})
    assert digest(dataclasses.replace(SAMPLE, nodes=(SAMPLE.nodes[0], changed))) != SAMPLE.digest


def test_bound_workers_get_their_share_of_cpus_and_threads():
    made = plans.plan(plans.two_by_two())
    assert made.nodes[0].cpus == ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
    assert made.nodes[0].threads == (4, 4)


def test_nodes_that_are_alike_share_one_binding_and_others_get_their_own():
    small = {"cpus": tuple(range(4)), "cores": ((0,), (1,), (2,), (3,))}
    made = plans.plan([plans.facts(0), plans.facts(1, **small), plans.facts(2)])
    assert made.nodes[0].cpus is made.nodes[2].cpus
    assert made.nodes[1].cpus == ((0, 1), (2, 3))


def test_p37_tasks_keep_the_scheduler_s_binding_and_share_a_common_mask_s_cores_as_threads():
    made = plans.plan(plans.tasks([0, 0]))
    assert made.nodes[0].cpus == ((), ())
    assert made.nodes[0].threads == (4, 4)
    everyone = [
        dataclasses.replace(task, cpus=(rank, rank + 8), cores=((rank, rank + 8),))
        for rank, task in enumerate(plans.tasks([0, 0]))
    ]
    assert plans.plan(everyone).nodes[0].threads == (1, 1)
