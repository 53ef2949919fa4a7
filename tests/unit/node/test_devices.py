"""Kinds of devices by evidence, AMD's two masks, lists of other kinds, the choice and the dealing out."""

from __future__ import annotations

import configparser
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.errors import DeviceError, UsageError
from slaunch.node.devices.choose import assign, select
from slaunch.node.devices.share import sharing_notes
from slaunch.node.devices.table import GROUP, KINDS, find
from slaunch.node.devices.values import Found, View
from slaunch.node.devices.visible import tokens
from slaunch.node.probe import group_count
from slaunch.node.values import Device
from slaunch.options import Options, Program

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
NUMA_OF_GCD = (3, 3, 1, 1, 0, 0, 2, 2)


def write(root, path, text=""):
    full = root / path
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_text(text)


@pytest.fixture
def mi250x(tmp_path):
    """The KFD topology of a node with four MI250X: a CPU node for each NUMA node, then eight GPUs."""
    write(tmp_path, "dev/kfd")
    for node in range(4):
        write(tmp_path, f"sys/class/kfd/kfd/topology/nodes/{node}/properties", "cpu_cores_count 32\nsimd_count 0\n")
    for gcd, numa in enumerate(NUMA_OF_GCD):
        bus = 0xC1 + gcd
        base = f"sys/class/kfd/kfd/topology/nodes/{4 + gcd}"
        fields = {"simd_count": 440, "location_id": bus << 8, "domain": 0, "unique_id": 0x1000 + gcd}
        write(tmp_path, f"{base}/properties", "".join(f"{name} {value}\n" for name, value in fields.items()))
        write(tmp_path, f"{base}/name", "aldebaran\n")
        write(tmp_path, f"{base}/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68702699520\nflags 0\n")
        write(tmp_path, f"sys/bus/pci/devices/0000:{bus:02x}:00.0/numa_node", f"{numa}\n")
    return str(tmp_path)


def labels(found):
    return [device.label for device in found.devices]


def seen(found):
    return " ".join(each.seen for each in found.problems)


# -- AMD ------------------------------------------------------------------------------------------------------------


def test_p41_amd_gpus_with_their_numa_nodes(mi250x):
    found = find(View({}, mi250x))
    assert (found.kind, found.variable) == ("rocm", "")
    assert labels(found) == [str(number) for number in range(8)]
    assert [device.numa for device in found.devices] == list(NUMA_OF_GCD)
    assert found.devices[1] == Device(
        "rocm", 1, "1", "GPU-0000000000001001", "0000:c2:00.0", 3, 68702699520, "aldebaran"
    )


@pytest.mark.parametrize("inner", ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_p50_the_inner_mask_counts_among_what_the_outer_left(mi250x, inner):
    found = find(View({"ROCR_VISIBLE_DEVICES": "0,3,4,7", inner: "0,1"}, mi250x))
    assert labels(found) == ["0", "3"]
    assert [device.position for device in found.devices] == [0, 1]
    assert found.variable == "ROCR_VISIBLE_DEVICES"


def test_p50_hip_is_stronger_than_cuda(mi250x):
    found = find(View({"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "5"}, mi250x))
    assert labels(found) == ["2"]


def test_p50_equal_lists_are_one_statement(mi250x):
    found = find(View({"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "1"}, mi250x))
    assert labels(found) == ["1"]
    assert found.problems == ()


def test_p50_an_inner_mask_out_of_range_is_told(mi250x):
    found = find(View({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "4"}, mi250x))
    assert found.devices == ()
    assert "HIP_VISIBLE_DEVICES=4 counts among the 2 devices of ROCR_VISIBLE_DEVICES=4,5" in seen(found)
    assert found.problems[0].code == 66


def test_p51_a_cuda_list_on_an_amd_machine_is_told_as_the_outer_mask(mi250x):
    found = find(View({"CUDA_VISIBLE_DEVICES": "6"}, mi250x))
    assert (found.kind, found.variable, labels(found)) == ("rocm", "ROCR_VISIBLE_DEVICES", ["6"])
    assert found.devices[0].numa == 2


def test_p49_amd_uuids(mi250x):
    found = find(View({"ROCR_VISIBLE_DEVICES": "GPU-0000000000001003,GPU-0000000000001000"}, mi250x))
    assert [device.numa for device in found.devices] == [1, 3]


@pytest.mark.parametrize("text", ["8", "GPU-1234", "0,9"])
def test_amd_devices_that_are_not_there(mi250x, text):
    found = find(View({"ROCR_VISIBLE_DEVICES": text}, mi250x))
    assert f"no {text.split(',')[-1]} among the 8 GPUs" in seen(found)


def test_amd_gpus_that_the_cgroup_forbids_are_not_counted(mi250x):
    for node in range(6, 12):  # the kernel answers with an error there, which reads as an empty file
        os.truncate(f"{mi250x}/sys/class/kfd/kfd/topology/nodes/{node}/properties", 0)
    assert labels(find(View({}, mi250x))) == ["0", "1"]


def test_amd_without_driver_believes_the_list(tmp_path):
    found = find(View({"ROCR_VISIBLE_DEVICES": "2,3"}, str(tmp_path)))
    assert (found.kind, labels(found)) == ("rocm", ["2", "3"])
    assert "unverified" in found.notes[0]


# -- other kinds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["XPU_VISIBLE_DEVICES", "XPULINK_VISIBLE_DEVICES"])
def test_f58_kunlun(tmp_path, variable):
    found = find(View({variable: "1,3"}, str(tmp_path)))
    assert (found.kind, found.variable, labels(found)) == ("xpu", variable, ["1", "3"])


def test_f58_the_link_list_is_the_stronger(tmp_path):
    found = find(View({"XPU_VISIBLE_DEVICES": "0,1", "XPULINK_VISIBLE_DEVICES": "2"}, str(tmp_path)))
    assert labels(found) == ["2"]


def test_f58_kunlun_device_files(tmp_path):
    for name in ("xpuctrl", "xpu0", "xpu1", "xpu10"):
        write(tmp_path, f"dev/{name}")
    assert labels(find(View({}, str(tmp_path)))) == ["0", "1", "10"]


def test_f58_intel_tiles(tmp_path):
    found = find(View({"ZE_AFFINITY_MASK": "0.0,0.1,3"}, str(tmp_path)))
    assert (found.kind, labels(found)) == ("xpu", ["0.0", "0.1", "3"])


def test_f58_intel_compute_gpus_and_no_display(tmp_path):
    for pci, kind in (("0000:00:02.0", "0x030000"), ("0000:3a:00.0", "0x038000"), ("0000:9a:00.0", "0x038000")):
        write(tmp_path, f"sys/bus/pci/drivers/i915/{pci}/keep")
        write(tmp_path, f"sys/bus/pci/devices/{pci}/class", f"{kind}\n")
        write(tmp_path, f"sys/bus/pci/devices/{pci}/numa_node", "1\n")
    found = find(View({}, str(tmp_path)))
    assert [(each.label, each.pci, each.numa) for each in found.devices] == [("0", "0000:3a:00.0", 1), ("1", "0000:9a:00.0", 1)]


def test_f61_a_laptop_s_display_is_no_device(tmp_path):
    write(tmp_path, "sys/bus/pci/drivers/i915/0000:00:02.0/keep")
    write(tmp_path, "sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n")
    assert find(View({}, str(tmp_path))) == Found("cpu")


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ["0", "1"]),
        ({"ASCEND_VISIBLE_DEVICES": "0-2,6"}, ["0", "1", "2", "6"]),
        ({"ASCEND_VISIBLE_DEVICES": "4,1"}, ["4", "1"]),
        ({"ASCEND_RT_VISIBLE_DEVICES": "5", "ASCEND_VISIBLE_DEVICES": "0-7"}, ["5"]),
    ],
)
def test_f59_ascend(tmp_path, env, expected):
    for name in ("davinci_manager", "davinci0", "davinci1"):
        write(tmp_path, f"dev/{name}")
    found = find(View(env, str(tmp_path)))
    assert (found.kind, labels(found)) == ("npu", expected)


def test_f59_a_custom_type_and_its_list(tmp_path):
    found = find(View({"PADDLE_XCCL_BACKEND": "iluvatar_gpu", "ILUVATAR_GPU_VISIBLE_DEVICES": "2,3"}, str(tmp_path)))
    assert (found.kind, found.variable, labels(found)) == ("iluvatar_gpu", "ILUVATAR_GPU_VISIBLE_DEVICES", ["2", "3"])


def test_f59_a_named_type_that_is_built_in_is_looked_for_as_such(tmp_path):
    write(tmp_path, "dev/davinci3")
    assert labels(find(View({"PADDLE_XCCL_BACKEND": "npu"}, str(tmp_path)))) == ["3"]


def test_f60_ipus_are_counted(tmp_path):
    for number in range(4):
        write(tmp_path, f"dev/ipu{number}")
    found = find(View({}, str(tmp_path)))
    assert (found.kind, labels(found)) == ("ipu", ["0", "1", "2", "3"])
    assert len(select(found, ("2",))) == 2
    assert len(select(found, ("4",))) == 4


@pytest.mark.parametrize("wish", [("5",), ("0",), ("1", "2"), ("two",)])
def test_f60_a_count_of_ipus_that_are_not_there(tmp_path, wish):
    found = Found("ipu", tuple(Device("ipu", at, str(at)) for at in range(4)))
    with pytest.raises(DeviceError) as told:
        select(found, wish)
    assert "this machine has 4" in told.value.seen


def test_f61_nothing_is_a_cpu(tmp_path):
    assert find(View({}, str(tmp_path))) == Found("cpu")


def test_slurm_s_lists_for_all_vendors_on_a_machine_without_driver_mean_nvidia(tmp_path):
    lists = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
    found = find(View(dict.fromkeys(lists, "0,1"), str(tmp_path)))
    assert (found.kind, found.variable) == ("gpu", "CUDA_VISIBLE_DEVICES")


def test_slurm_s_lists_for_all_vendors_on_an_amd_machine_mean_amd(mi250x):
    lists = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
    found = find(View(dict.fromkeys(lists, "4,5"), mi250x))
    assert (found.kind, labels(found)) == ("rocm", ["4", "5"])


def test_the_same_door_for_built_in_and_further_kinds():
    config = configparser.ConfigParser()
    config.read(os.path.join(ROOT, "setup.cfg"))
    listed = dict(line.split(" = ") for line in config["options.entry_points"][GROUP].split("\n") if line)
    assert listed == {kind.name: kind.look for kind in KINDS}


# -- lists, choice, dealing out -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("0,1", ("0", "1")),
        (" 0 , 1 ", ("0", "1")),
        ("", ()),
        ("all", None),
        ("-1", ()),
        ("2,-1,3", ("2",)),
        ("2,,3", ("2",)),
        ("NoDevFiles", ()),
        ("void", ()),
        ("GPU-8932f937,MIG-377e0049-554c-540b-93c6-d0976f8426cb", ("GPU-8932f937", "MIG-377e0049-554c-540b-93c6-d0976f8426cb")),
        ("MIG-GPU-e91edf3b/1/2", ("MIG-GPU-e91edf3b/1/2",)),
    ],
)
def test_p49_f62_visible_lists(text, items):
    assert tokens(text) == items


def some(*names):
    return Found("gpu", tuple(Device("gpu", at, name) for at, name in enumerate(names)), "CUDA_VISIBLE_DEVICES")


def test_f66_f70_chosen_labels_keep_their_positions():
    assert [device.position for device in select(some("4", "5", "6", "7"), ("6", "7"))] == [2, 3]
    assert [device.position for device in select(some("4", "5", "6", "7"), ("7", "4"))] == [3, 0]


def test_f56_an_unknown_label_is_an_error_with_the_list():
    with pytest.raises(DeviceError) as told:
        select(some("4", "5"), ("0", "4"))
    assert "0 not there; CUDA_VISIBLE_DEVICES has 4,5" in told.value.seen


def test_a_label_named_twice_is_an_error():
    with pytest.raises(DeviceError) as told:
        select(some("4", "5"), ("4", "4"))
    assert "4 named twice" in told.value.seen


def test_f64_one_device_for_each_of_several_workers():
    devices = some("4", "5", "6", "7").devices
    assert assign(devices, 2) == ((devices[0],), (devices[1],))


def test_f65_all_devices_for_one_worker():
    devices = some("4", "5", "6", "7").devices
    assert assign(devices, 1) == (devices,)


@given(st.integers(1, 16), st.integers(0, 16))
def test_f71_w43_several_devices_in_contiguous_even_groups(workers, more):
    devices = some(*map(str, range(workers + more))).devices
    dealt = assign(devices, workers, each=-1)
    assert tuple(device for group in dealt for device in group) == devices
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 5))
def test_f71_a_number_of_devices_for_each(workers, each, more):
    devices = some(*map(str, range(workers * each + more))).devices
    dealt = assign(devices, workers, each)
    assert tuple(device for group in dealt for device in group) == devices[: workers * each]
    assert {len(group) for group in dealt} == {each}


def test_workers_share_a_device_only_where_that_is_asked_for():
    one, two = some("4", "5").devices
    assert assign((one, two), 4, sharing=2) == ((one,), (one,), (two,), (two,))
    assert assign((one, two), 3, sharing=2) == ((one,), (one,), (two,))
    with pytest.raises(DeviceError, match="give each of 5 workers a device, 2 to a device"):
        assign((one, two), 5, sharing=2)


def test_workers_cannot_share_and_have_several():
    with pytest.raises(UsageError, match="--workers-per-device 2 and --devices-per-worker all"):
        assign(some("4", "5").devices, 2, -1, 2)


@pytest.mark.parametrize(("each", "wanted"), [(0, "3 workers a device"), (1, "3 workers a device"), (2, "3 workers 2 devices")])
def test_f69_w43_more_workers_than_devices_is_an_error(each, wanted):
    with pytest.raises(DeviceError) as told:
        assign(some("4", "5").devices, 3, each)
    assert wanted in told.value.wanted
    assert "2 visible: 4,5" in told.value.seen
    assert "--workers-per-device" in told.value.todo


@pytest.mark.parametrize(
    ("devices", "each", "sharing", "workers"),
    [(8, 0, 1, 8), (8, 2, 1, 4), (9, 2, 1, 4), (1, 2, 1, 1), (8, -1, 1, 1), (8, 0, 2, 16), (0, 0, 1, 0), (0, 2, 1, 0)],
)
def test_f15_w43_the_number_of_workers_that_devices_are_for(devices, each, sharing, workers):
    assert group_count(devices, each, sharing) == workers


def notes(env=None, root="/", kind="gpu", **chosen):
    return sharing_notes(Options(Program("train.py"), **chosen), (Device(kind, 0, "0"),), env or {}, root)


def test_turns_on_a_shared_gpu_are_told_unless_mps_runs(tmp_path):
    assert "take turns" in notes(root=str(tmp_path), workers_per_device=2)[1]
    (tmp_path / "run/mps").mkdir(parents=True)
    (tmp_path / "run/mps/control").touch()
    assert len(notes({"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}, str(tmp_path), workers_per_device=2)) == 1
    assert len(notes(root=str(tmp_path), workers_per_device=2, kind="rocm")) == 1


def test_counting_from_0_is_told():
    assert "--visible virtual" in notes(devices_per_worker=2)[0]
    assert notes(devices_per_worker=2, visible="virtual") == notes() == ()


def test_workers_without_devices():
    assert assign((), 3) == ((), (), ())
