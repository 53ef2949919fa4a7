"""Which device each worker gets, what its visible list says, and at which position its device stands in that list."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plans

from slaunch.errors import DeviceError

CUDA = "CUDA_VISIBLE_DEVICES"


def seen(made, rank, inherited=None, **chosen):
    """(visible list, Paddle's position, slaunch's position, LOCAL_RANK) of a worker."""
    env = plans.env_of(made, rank, inherited, **chosen)
    return env.get(CUDA), env.get("FLAGS_selected_gpus"), env["SLAUNCH_LOCAL_DEVICE"], env["LOCAL_RANK"]


def agent(workers, *labels, visible=CUDA, **chosen):
    return plans.plan([plans.facts(0, workers, plans.gpus(*labels), visible)], **chosen)


def selected(*at, of):
    """Devices as `--devices` leaves them: in the user's order, each with its position in the whole list."""
    everything = plans.gpus(*of)
    return tuple(everything[of.index(label)] for label in at)


def test_f63_f64_the_list_stays_whole_and_position_i_is_worker_i_s():
    inherited = {CUDA: "4,5,6,7"}
    made = agent(4, "4", "5", "6", "7")
    assert [seen(made, rank, inherited) for rank in range(4)] == [("4,5,6,7", *[str(rank)] * 3) for rank in range(4)]


def test_f64_surplus_devices_stay_visible_and_unused():
    made = agent(2, "4", "5", "6", "7")
    assert [seen(made, rank, {CUDA: "4,5,6,7"}) for rank in (0, 1)] == [("4,5,6,7", "0", "0", "0"), ("4,5,6,7", "1", "1", "1")]


def test_f65_one_worker_gets_all_devices():
    made = agent(1, "4", "5", "6", "7")
    assert seen(made, 0, {CUDA: "4,5,6,7"}) == ("4,5,6,7", "0,1,2,3", "0,1,2,3", "0")


def test_f66_f70_a_subset_is_made_the_whole_list_so_that_local_rank_is_an_index():
    made = plans.plan([plans.facts(0, 2, selected("6", "7", of=("4", "5", "6", "7")), CUDA)], devices=("6", "7"))
    chosen = {"devices": ("6", "7")}
    assert [seen(made, rank, {CUDA: "4,5,6,7"}, **chosen) for rank in (0, 1)] == [
        ("6,7", "0", "0", "0"),
        ("6,7", "1", "1", "1"),
    ]


def test_f66_the_user_s_order_is_the_workers_order():
    made = plans.plan([plans.facts(0, 2, selected("3", "1", of=("0", "1", "2", "3")), "")], devices=("3", "1"))
    env = [plans.env_of(made, rank, {}, devices=("3", "1")) for rank in (0, 1)]
    assert [(each[CUDA], each["SLAUNCH_LOCAL_DEVICE"]) for each in env] == [("3,1", "0"), ("3,1", "1")]


def test_f66_one_worker_with_chosen_devices_sees_only_those():
    """JAX or TensorFlow in one process would otherwise take all."""
    made = plans.plan([plans.facts(0, 1, selected("0", "1", of=("0", "1", "2")), CUDA)], devices=("0", "1"))
    assert seen(made, 0, {CUDA: "0,1,2"}, devices=("0", "1")) == ("0,1", "0,1", "0,1", "0")


@pytest.mark.parametrize(("visible", "local_rank"), [("own", "1"), ("virtual", "0")])
def test_own_device_only_is_an_option(visible, local_rank):
    made = agent(2, "4", "5", visible=CUDA)
    whole = plans.plan([plans.facts(0, 2, plans.gpus("4", "5"), CUDA)], visible=visible)
    assert seen(whole, 1, {CUDA: "4,5"}, visible=visible) == ("5", "0", "0", local_rank)
    assert whole.digest != made.digest


def one_each(*labels, uuids=True):
    """Tasks of one machine that see one device each, as under --gpus-per-task=1 or --gpu-bind."""
    everyone = plans.tasks([0] * len(labels))
    return [
        dataclasses.replace(task, devices=plans.gpus(label, uuids=uuids), visible=CUDA)
        for task, label in zip(everyone, labels, strict=True)
    ]


def test_p47_a_task_that_sees_one_device_uses_index_0_whatever_its_local_rank():
    made = plans.plan(one_each("0", "1", "2", "3"))
    assert seen(made, 3, {CUDA: "3"}) == ("3", "0", "0", "3")


def test_p47_cgroups_call_every_task_s_device_0():
    made = plans.plan(one_each("0", "0", "0", "0", uuids=False))
    assert [seen(made, rank, {CUDA: "0"}) for rank in range(4)] == [("0", "0", "0", str(rank)) for rank in range(4)]


def test_p47_virtual_local_ranks_suit_scripts_that_take_local_rank_for_an_index():
    made = plans.plan(one_each("0", "1"), visible="virtual")
    assert seen(made, 1, {CUDA: "1"}, visible="virtual") == ("1", "0", "0", "0")


def everyone_sees(machine_of, *labels):
    return [
        dataclasses.replace(task, devices=plans.gpus(*labels), visible=CUDA) for task in plans.tasks(machine_of)
    ]


def test_tasks_that_see_the_same_devices_deal_them_out_by_local_rank():
    made = plans.plan(everyone_sees([0, 0, 1, 1], "0", "1"))
    assert [seen(made, rank, {CUDA: "0,1"}) for rank in range(4)] == [
        ("0,1", "0", "0", "0"),
        ("0,1", "1", "1", "1"),
        ("0,1", "0", "0", "0"),
        ("0,1", "1", "1", "1"),
    ]


def test_f69_more_tasks_than_devices_that_they_share_is_an_error():
    with pytest.raises(DeviceError, match="3 workers a device on node n1"):
        plans.plan(everyone_sees([0, 0, 0], "0", "1"))


def test_a_task_whose_list_nobody_shares_uses_all_of_it():
    first, second = plans.tasks([0, 0])
    first = dataclasses.replace(first, devices=plans.gpus("0", "1"), visible=CUDA)
    second = dataclasses.replace(second, devices=plans.gpus("2", "3"), visible=CUDA)
    made = plans.plan([first, second])
    assert seen(made, 1, {CUDA: "2,3"}) == ("2,3", "0,1", "0,1", "1")


@pytest.mark.parametrize("labels", [("GPU-8932f937", "GPU-377e0049"), ("0000:01:00.0", "1")])
def test_p49_labels_are_opaque(labels):
    made = plans.plan([plans.facts(0, 2, plans.gpus(*labels), CUDA)], visible="own")
    assert [seen(made, rank, {CUDA: ",".join(labels)}, visible="own")[0] for rank in (0, 1)] == list(labels)
    whole = plans.plan([plans.facts(0, 2, plans.gpus(*labels), CUDA)])
    assert seen(whole, 1, {CUDA: ",".join(labels)}) == (",".join(labels), "1", "1", "1")


@pytest.mark.parametrize("labels", [("MIG-377e0049-554c-540b-93c6-d0976f8426cb", "MIG-8e4a8a9c"), ("MIG-GPU-8932/1/2", "1")])
@pytest.mark.parametrize("listed", [True, False])
def test_p49_one_mig_instance_per_process(labels, listed):
    made = plans.plan([plans.facts(0, 2, plans.gpus(*labels), CUDA if listed else "")])
    env = {CUDA: ",".join(labels)} if listed else {}
    assert [seen(made, rank, env) for rank in (0, 1)] == [(labels[0], "0", "0", "0"), (labels[1], "0", "0", "1")]
    tasks = [dataclasses.replace(task, devices=plans.gpus(*labels), visible=CUDA) for task in plans.tasks([0, 0])]
    assert [seen(plans.plan(tasks), rank, {CUDA: ",".join(labels)})[0] for rank in (0, 1)] == list(labels)


@pytest.mark.parametrize(
    ("labels", "inherited", "left"),
    [
        (("1",), {"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "1"}, {"ROCR_VISIBLE_DEVICES": "1"}),
        (("0", "3"), {"ROCR_VISIBLE_DEVICES": "0,3,4,7", "HIP_VISIBLE_DEVICES": "0,1"}, {"ROCR_VISIBLE_DEVICES": "0,3"}),
        (("0", "1"), {"ROCR_VISIBLE_DEVICES": "0,1"}, {"ROCR_VISIBLE_DEVICES": "0,1"}),
        (("2",), {"CUDA_VISIBLE_DEVICES": "0"}, {"ROCR_VISIBLE_DEVICES": "2"}),
    ],
)
def test_p50_p51_rocm_is_masked_on_exactly_one_level(labels, inherited, left):
    made = plans.plan([plans.facts(0, len(labels), plans.gpus(*labels, kind="rocm"), "ROCR_VISIBLE_DEVICES")])
    env = plans.env_of(made, 0, inherited)
    assert {name: env[name] for name in env if name.endswith("VISIBLE_DEVICES")} == left
    assert env["FLAGS_selected_gpus"] == "0"


def test_f67_without_devices_paddle_is_told_gloo_and_lists_are_left_alone():
    env = plans.env_of(plans.plan(plans.two_by_two()), 0, {CUDA: ""})
    assert (env["PADDLE_DISTRI_BACKEND"], env[CUDA], env["SLAUNCH_LOCAL_DEVICE"]) == ("gloo", "", "")
    assert not any(name.startswith("FLAGS_selected") for name in env)


@pytest.mark.parametrize(("kind", "variable"), [("xpu", "FLAGS_selected_xpus"), ("ipu", "FLAGS_selected_ipus")])
def test_f63_each_kind_has_its_own_selection_variable(kind, variable):
    made = plans.plan([plans.facts(0, 2, plans.gpus("0", "1", kind=kind))])
    assert plans.env_of(made, 1)[variable] == "1"


def test_f68_custom_devices_come_with_their_back_end():
    env = plans.env_of(plans.plan([plans.facts(0, 2, plans.gpus("0", "1", kind="npu"))]), 1)
    assert (env["FLAGS_selected_npus"], env["PADDLE_DISTRI_BACKEND"], env["PADDLE_XCCL_BACKEND"]) == ("1", "xccl", "npu")


@pytest.mark.parametrize(
    ("workers", "chosen", "lists", "positions"),
    [
        (4, {"workers_per_device": 2}, ["4", "4", "5", "5"], ["0"] * 4),
        (2, {"devices_per_worker": 1}, ["4", "5"], ["0"] * 2),
        (2, {"devices_per_worker": -1}, ["4,5", "6,7"], ["0,1"] * 2),
        (3, {"devices_per_worker": -1}, ["4,5", "6", "7"], ["0,1", "0", "0"]),
    ],
)
def test_f71_w43_workers_without_one_device_each_see_their_own_only(workers, chosen, lists, positions):
    """LOCAL_RANK as an index would else lead to another worker's device."""
    made = agent(workers, "4", "5", "6", "7", **chosen)
    told = [seen(made, rank, {CUDA: "4,5,6,7"}, **chosen) for rank in range(workers)]
    assert [each[0] for each in told] == lists
    assert [each[1] for each in told] == [each[2] for each in told] == positions
    assert [each[3] for each in told] == [str(rank) for rank in range(workers)]


def test_f71_tasks_that_see_the_same_devices_share_them_out_in_groups_or_several_to_each():
    made = plans.plan(everyone_sees([0, 0], "0", "1", "2", "3"), devices_per_worker=2)
    assert [seen(made, rank, {CUDA: "0,1,2,3"}, devices_per_worker=2)[0] for rank in (0, 1)] == ["0,1", "2,3"]
    made = plans.plan(everyone_sees([0, 0, 0, 0], "0", "1"), workers_per_device=2)
    assert [seen(made, rank, {CUDA: "0,1"}, workers_per_device=2)[0] for rank in range(4)] == ["0", "0", "1", "1"]


def test_a_task_with_one_gpu_of_its_own_uses_it_as_it_is():
    made = plans.plan(one_each("0", "1", "2", "3"), workers_per_device=2)
    assert [seen(made, rank, {CUDA: str(rank)}, workers_per_device=2)[0] for rank in range(4)] == ["0", "1", "2", "3"]


labels = st.lists(st.text("0123456789abcdefGPUMIG-/", min_size=1, max_size=12), min_size=1, max_size=8, unique=True)


@given(labels, st.integers(1, 8), st.sampled_from(["all", "own", "virtual"]), st.booleans())
def test_the_position_told_is_where_the_worker_s_device_stands(names, workers, visible, pick):
    workers = min(workers, len(names))
    wish = tuple(reversed(names)) if pick else ()
    devices = selected(*(wish or names), of=names)
    made = plans.plan([plans.facts(0, workers, devices, CUDA)], visible=visible, devices=wish)
    for rank in range(workers):
        shown, flags, own, _ = seen(made, rank, {CUDA: ",".join(names)}, visible=visible, devices=wish)
        assert flags == own
        mine = [device.label for device in made.nodes[0].devices[rank]]
        assert [shown.split(",")[int(position)] for position in own.split(",")] == mine
