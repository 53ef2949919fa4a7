"""What workers' libraries are told of network cards, on the recorded machines."""

from __future__ import annotations

import pytest
from support import fabrics, plans

from slaunch.frozen import replace
from slaunch.node.fabric import read_nics

FABRICS = fabrics.load()
OURS = ("NCCL_IB_HCA", "UCX_NET_DEVICES", "MPICH_OFI_NIC_POLICY")


def facts(tmp_path, name, workers=0, **changes):
    """The machine with a core for each device, on the device's NUMA node."""
    machine = FABRICS[name]
    fabrics.write_sysfs(machine, str(tmp_path))
    devices = changes.pop("devices", fabrics.devices(machine))
    cores = {
        "cpus": tuple(range(len(devices))),
        "cores": tuple((cpu,) for cpu in range(len(devices))),
        "numa": tuple(device.numa for device in devices),
        "online": len(devices),
    }
    nics = read_nics(devices, str(tmp_path))
    return plans.facts(0, workers or len(devices), devices, **{**cores, "nics": nics, **changes})


def told(made, rank, inherited=None, **chosen):
    env = plans.env_of(made, rank, inherited, **chosen)
    return {name: env[name] for name in OURS if name in env}


def test_dgx_h100_leaves_its_storage_cards_out_for_nccl_and_gives_each_worker_its_own_for_ucx(tmp_path):
    made = plans.plan([facts(tmp_path, "dgx-h100")])
    cards = [f"mlx5_{card}:1" for card in (0, 3, 4, 5, 6, 9, 10, 11)]
    assert [told(made, rank) for rank in range(8)] == [
        {"NCCL_IB_HCA": f"={','.join(cards)}", "UCX_NET_DEVICES": card} for card in cards
    ]


def test_p43_mi250x_workers_on_one_numa_node_each_take_the_card_of_that_node(tmp_path):
    made = plans.plan([facts(tmp_path, "mi250x")])
    assert [told(made, rank) for rank in range(8)] == [{"MPICH_OFI_NIC_POLICY": "NUMA"}] * 8
    assert made.nodes[0].nics == tuple((f"hsn{card}",) for card in (0, 0, 1, 1, 2, 2, 3, 3))


@pytest.mark.parametrize(("workers", "chosen"), [(2, {"devices_per_worker": 4}), (8, {"bind": "none"})])
def test_p43_where_a_worker_may_be_on_several_numa_nodes_its_gpu_says_which_card(tmp_path, workers, chosen):
    made = plans.plan([facts(tmp_path, "mi250x", workers)], **chosen)
    assert told(made, 0)["MPICH_OFI_NIC_POLICY"] == "GPU"


def test_on_ethernet_ucx_keeps_all_cards(tmp_path):
    assert told(plans.plan([facts(tmp_path, "h200")]), 1) == {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1,mlx5_2:1"}


def test_infiniband_of_several_subnets_keeps_all_cards_for_ucx(tmp_path):
    seen = facts(tmp_path, "xeon")
    assert told(plans.plan([seen]), 0) == {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_2:1", "UCX_NET_DEVICES": "mlx5_0:1"}
    apart = tuple(replace(nic, subnet=f"fe80:0000:0000:000{nic.numa}") for nic in seen.nics)
    assert told(plans.plan([replace(seen, nics=apart)]), 0) == {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_2:1"}


def test_where_all_cards_are_equally_far_libraries_choose(tmp_path):
    assert told(plans.plan([facts(tmp_path, "h200-vm")]), 0) == {}


def test_one_card_is_no_choice(tmp_path):
    seen = facts(tmp_path, "h200")
    assert told(plans.plan([replace(seen, nics=seen.nics[:1])]), 0) == {}


def test_workers_without_devices_are_told_nothing(tmp_path):
    seen = facts(tmp_path, "dgx-h100")
    assert told(plans.plan([replace(seen, devices=())]), 0) == {}


def test_devices_that_nobody_uses_do_not_count(tmp_path):
    seen = facts(tmp_path, "dgx-h100", workers=2)
    assert told(plans.plan([seen]), 0) == {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_3:1", "UCX_NET_DEVICES": "mlx5_0:1"}


def test_a_lone_worker_has_the_cards_of_all_its_devices(tmp_path):
    made = plans.plan([facts(tmp_path, "dgx-h100", workers=1)])
    assert told(made, 0)["NCCL_IB_HCA"].count(":") == 8
    assert "UCX_NET_DEVICES" not in told(made, 0)


def test_the_user_s_own_values_stay(tmp_path):
    made = plans.plan([facts(tmp_path, "dgx-h100")])
    own = {"NCCL_IB_HCA": "^mlx5_1", "UCX_NET_DEVICES": "all"}
    assert told(made, 0, own) == own


def test_the_choice_can_be_left_to_libraries(tmp_path):
    assert told(plans.plan([facts(tmp_path, "dgx-h100")], nics="none"), 0) == {}


def test_tasks_with_a_gpu_of_their_own_name_the_same_cards(tmp_path):
    """As under --gpus-per-task=1: each task calls its GPU 0."""
    machine = FABRICS["xeon"]
    fabrics.write_sysfs(machine, str(tmp_path))
    everyone = []
    for task, device in zip(plans.tasks([0, 0, 0, 0]), fabrics.devices(machine), strict=True):
        own = (replace(device, position=0, label="0"),)
        everyone.append(replace(task, devices=own, visible="CUDA_VISIBLE_DEVICES", nics=read_nics(own, str(tmp_path))))
    made = plans.plan(everyone)
    assert made.layout == "task"
    assert [told(made, rank)["UCX_NET_DEVICES"] for rank in range(4)] == ["mlx5_0:1", "mlx5_0:1", "mlx5_2:1", "mlx5_2:1"]
    assert {told(made, rank)["NCCL_IB_HCA"] for rank in range(4)} == {"=mlx5_0:1,mlx5_2:1"}
