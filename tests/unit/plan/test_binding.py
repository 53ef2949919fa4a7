"""CPUs of workers: invariants on many machines, and the pitfalls."""

from __future__ import annotations

import pytest
from support import machines

from slaunch.errors import PlanError, UsageError
from slaunch.node.devices.choose import assign
from slaunch.plan.binding import bind

MACHINES = machines.load()
POLICIES = ("auto", "numa", "core")
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 28, 56)


def cases(machine):
    """(workers, devices of each): as many workers as the machine carries, with its devices where these suffice."""
    for workers in COUNTS:
        if workers <= len(machine.usable):
            yield workers, ((),) * workers
        if workers <= len(machine.devices):
            yield workers, dealt(machine, workers)


def dealt(machine, workers):
    return assign(machines.devices(machine), workers)


def nodes(machine, cpus):
    return {machine.node_of(cpu) for cpu in cpus}


def placed(machine, made):
    return [nodes(machine, cpus) for cpus in made.cpus]


every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
every_policy = pytest.mark.parametrize("policy", POLICIES)


@every_policy
@every_machine
def test_masks_are_disjoint_allowed_and_of_whole_cores(machine, policy):
    usable_cores = machines.columns(machine, machine.usable)[0]
    for workers, given in cases(machine):
        made = bind(machines.facts(machine, workers), given, policy)
        flat = [cpu for cpus in made.cpus for cpu in cpus]
        assert len(made.cpus) == len(made.threads) == workers
        assert all(made.cpus)
        assert len(flat) == len(set(flat))
        assert set(flat) <= set(machine.usable)
        if workers <= len(usable_cores):
            assert all(set(core) <= set(cpus) or not set(core) & set(cpus) for cpus in made.cpus for core in usable_cores)


@every_policy
@every_machine
def test_p44_threads_are_the_physical_cores_of_the_mask(machine, policy):
    for workers, given in cases(machine):
        made = bind(machines.facts(machine, workers), given, policy)
        in_mask = [len([core for core in machine.cores if set(core) & set(cpus)]) for cpus in made.cpus]
        assert list(made.threads) == in_mask


@every_policy
@every_machine
def test_p41_workers_sit_on_the_numa_node_of_their_device(machine, policy):
    for workers, given in cases(machine):
        made = bind(machines.facts(machine, workers), given, policy)
        wished = [own[0].numa if own else -1 for own in given]
        if workers > 1:
            assert all(at == {node} for node, at in zip(wished, placed(machine, made), strict=True) if node >= 0)


@every_machine
def test_p43_no_mask_of_policy_numa_spans_two_nodes(machine):
    for workers, given in cases(machine):
        made = bind(machines.facts(machine, workers), given, "numa")
        assert all(len(nodes(machine, cpus)) == 1 for cpus in made.cpus)


@every_machine
def test_p43_auto_cuts_at_numa_borders_where_workers_fill_the_nodes(machine):
    filled = len([cpus for cpus in machine.numa.values() if set(cpus) & set(machine.usable)])
    for workers, given in cases(machine):
        made = bind(machines.facts(machine, workers), given, "auto")
        assert workers < filled or all(len(nodes(machine, cpus)) == 1 for cpus in made.cpus)


@pytest.mark.parametrize("name", ["dgx-h100", "mi250x", "grace-hopper", "epyc-quad", "xeon"])
def test_even_machines_are_used_whole(name):
    machine = MACHINES[name]
    made = bind(machines.facts(machine, len(machine.devices)), dealt(machine, len(machine.devices)))
    assert sorted(cpu for cpus in made.cpus for cpu in cpus) == list(machine.usable)
    assert len(set(made.threads)) == 1


def test_p41_gpu_order_against_numa_order_on_mi250x():
    machine = MACHINES["mi250x"]
    made = bind(machines.facts(machine, 8), dealt(machine, 8))
    assert placed(machine, made) == [{3}, {3}, {1}, {1}, {0}, {0}, {2}, {2}]
    assert made.cpus[4] == tuple(range(1, 8))
    assert made.cpus[5] == tuple(range(9, 16))
    assert made.threads == (7,) * 8


def test_p42_masks_are_cut_from_usable_cpus_and_at_caches():
    machine = MACHINES["mi250x"]
    made = bind(machines.facts(machine, 8), ((),) * 8)
    assert made.cpus == tuple(tuple(range(low + 1, low + 8)) for low in range(0, 64, 8))


def test_half_full_caches_are_not_cut():
    machine = MACHINES["mi250x"]
    usable = (1, 2, 3, 4, 5, 6, 7, 9, 10)
    made = bind(machines.facts(machine, 2, usable=usable), ((),) * 2)
    assert made.cpus == ((1, 2, 3, 4, 5, 6, 7), (9, 10))


def test_p43_uneven_workers_still_keep_to_their_nodes():
    machine = MACHINES["dgx-h100"]
    made = bind(machines.facts(machine, 3), ((),) * 3)
    assert placed(machine, made) == [{0}, {0}, {1}]
    assert made.threads == (28, 28, 56)


def test_cores_near_no_device_stay_idle_and_that_is_told():
    machine = MACHINES["dgx-a100"]
    made = bind(machines.facts(machine, 8), dealt(machine, 8))
    assert made.threads == (8,) * 8
    assert "0-15,32-47,64-79,96-111,128-143,160-175,192-207,224-239 are near no worker's device" in made.notes[0]


@pytest.mark.parametrize(("workers", "at"), [(4, [{3}, {1}, {0}, {2}]), (2, [{1, 3}, {0, 2}])])
def test_f71_w43_workers_with_several_devices_sit_on_the_numa_nodes_of_all_of_them(workers, at):
    machine = MACHINES["mi250x"]
    made = bind(machines.facts(machine, workers), assign(machines.devices(machine), workers, each=-1))
    assert placed(machine, made) == at
    assert made.threads == (56 // workers,) * workers


def test_workers_that_share_a_device_share_its_numa_node_evenly():
    machine = MACHINES["dgx-h100"]
    made = bind(machines.facts(machine, 16), assign(machines.devices(machine), 16, sharing=2))
    assert placed(machine, made) == [{0}] * 8 + [{1}] * 8
    assert made.threads == (7,) * 16


def test_a_gpu_without_near_cpus_of_ours_goes_where_there_is_room():
    machine = MACHINES["dgx-h100"]
    usable = (*range(0, 8), *range(112, 120))
    made = bind(machines.facts(machine, 8, usable=usable), dealt(machine, 8))
    assert made.cpus == tuple((cpu, cpu + 112) for cpu in range(8))


def test_grace_hopper_memory_nodes_without_cpus_are_no_place_for_workers():
    machine = MACHINES["grace-hopper"]
    made = bind(machines.facts(machine, 4), dealt(machine, 4))
    assert placed(machine, made) == [{0}, {1}, {2}, {3}]
    assert made.threads == (72,) * 4


def test_a_lone_worker_has_all_cpus():
    machine = MACHINES["dgx-h100"]
    made = bind(machines.facts(machine, 1), dealt(machine, 1))
    assert made.cpus == (machine.cpus,)
    assert made.threads == (112,)


def test_p39_a_one_core_agent_spreads_its_workers_over_what_the_kernel_grants():
    machine = MACHINES["dgx-h100"]
    facts = machines.facts(machine, 8, usable=(0, 112), reach=machine.cpus)
    made = bind(facts, dealt(machine, 8))
    assert made.threads == (14,) * 8
    assert "mask 0,112 has 1 core for 8 workers: they use 0-223 instead" in made.notes[0]


def test_p39_an_agent_shut_in_one_core_is_an_error_that_tells_the_flags():
    machine = MACHINES["dgx-h100"]
    with pytest.raises(PlanError) as told:
        bind(machines.facts(machine, 8, usable=(0, 112)), ((),) * 8)
    assert "CPUs 0,112 only, of 224" in told.value.seen
    assert "dgx-h100" in told.value.wanted
    assert "--cpus-per-task" in told.value.todo


def test_p39_p45_a_mask_of_mpirun_names_mpirun_s_flag():
    machine = MACHINES["dgx-h100"]
    made = bind(machines.facts(machine, 8, usable=(0, 112), reach=machine.cpus, binder="mpirun"), ((),) * 8)
    assert made.threads == (14,) * 8
    assert "mpirun's mask 0,112" in made.notes[0]
    assert "--bind-to none" in made.notes[0]


def test_a_mask_of_the_user_s_own_is_kept_and_shared():
    machine = MACHINES["dgx-h100"]
    made = bind(machines.facts(machine, 8, usable=(0, 112), reach=machine.cpus, binder=""), ((),) * 8)
    assert made.cpus == ((),) * 8
    assert "8 workers share 2 CPUs" in made.notes[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_p35_p39_a_mask_of_one_core_each_is_kept_and_told(workers):
    machine = MACHINES["dgx-h100"]
    mask = (*range(workers), *range(112, 112 + workers))
    made = bind(machines.facts(machine, workers, usable=mask, reach=machine.cpus), ((),) * workers)
    assert made.cpus == tuple((core, core + 112) for core in range(workers))
    assert "; ask for more with srun --cpus-per-task" in made.notes[0]


def test_p39_a_mask_with_more_cores_than_workers_is_what_was_asked_for():
    machine = MACHINES["dgx-h100"]
    made = bind(machines.facts(machine, 1, usable=(0, 1, 112, 113), reach=machine.cpus), ((),))
    assert made.cpus == ((0, 1, 112, 113),)
    assert made.notes == ()


def test_p39_workers_that_share_a_small_machine_leave_the_one_core_mask_too():
    machine = MACHINES["laptop"]
    made = bind(machines.facts(machine, 20, usable=(0,), reach=machine.cpus), ((),) * 20)
    assert made.cpus == (machine.cpus,) * 20


def test_a_small_machine_is_shared_unbound():
    machine = MACHINES["laptop"]
    made = bind(machines.facts(machine, 20), ((),) * 20)
    assert made.cpus == ((),) * 20
    assert made.threads == (1,) * 20
    assert "20 workers share 8 CPUs" in made.notes[0]


def test_hardware_threads_are_split_when_there_are_fewer_cores_than_workers():
    machine = MACHINES["laptop"]
    made = bind(machines.facts(machine, 8), ((),) * 8)
    assert made.cpus == ((0,), (4,), (1,), (5,), (2,), (6,), (3,), (7,))
    assert made.threads == (1,) * 8


def test_policy_none_binds_nobody_and_counts_fair_shares():
    made = bind(machines.facts(MACHINES["dgx-h100"], 8), ((),) * 8, "none")
    assert made.cpus == ((),) * 8
    assert made.threads == (14,) * 8


def test_policy_core_is_one_near_core_each():
    machine = MACHINES["mi250x"]
    made = bind(machines.facts(machine, 8), dealt(machine, 8), "core")
    assert made.cpus == ((49,), (57,), (17,), (25,), (1,), (9,), (33,), (41,))


@pytest.mark.parametrize("policy", ["map:0-3,8-11", "mask:0xf,0xf00", "mask:f,f00"])
def test_policies_map_and_mask_say_the_same(policy):
    made = bind(machines.facts(MACHINES["xeon"], 2), ((),) * 2, policy)
    assert made.cpus == ((0, 1, 2, 3), (8, 9, 10, 11))
    assert made.threads == (4, 4)


def test_a_map_may_name_what_the_kernel_grants_beyond_the_mask():
    machine = MACHINES["xeon"]
    made = bind(machines.facts(machine, 1, usable=(0,), reach=machine.cpus), ((),), "map:4-7")
    assert made.cpus == ((4, 5, 6, 7),)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("map:0,8,16", "3 items for 4 workers"),
        ("map:0,1,x,2", "ranges"),
        ("map:0,,1,2", "ranges"),
        ("mask:0x1,0x2,0x4,zz", "hexadecimal"),
        ("mask:0x1,0x0,0x2,0x4", "without a CPU"),
        ("socket", "auto, numa"),
    ],
)
def test_a_policy_that_is_not_understood_is_an_error(policy, said):
    with pytest.raises(UsageError) as told:
        bind(machines.facts(MACHINES["xeon"], 4), ((),) * 4, policy)
    assert said in str(told.value)


def test_p42_a_map_of_cpus_that_are_not_ours_is_an_error_that_lists_ours():
    with pytest.raises(UsageError) as told:
        bind(machines.facts(MACHINES["mi250x"], 2), ((),) * 2, "map:0,8")
    assert "0,8 are not among" in told.value.seen
    assert "1-7,9-15" in told.value.seen


def test_facts_without_numa_and_caches_are_split_all_the_same():
    facts = machines.facts(MACHINES["xeon"], 4, numa=(), caches=())
    made = bind(facts, dealt(MACHINES["xeon"], 4))
    assert made.threads == (10,) * 4
