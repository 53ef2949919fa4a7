"""NVIDIA GPUs through the real pynvml, against a library that answers as recorded."""

from __future__ import annotations

import pytest
from support.nvml import look

A0 = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
A1 = "GPU-5b2d7b3c-1d2e-6f3a-0b4c-9d8e7f6a5b4c"
MIG_A, MIG_B = "MIG-377e0049-554c-540b-93c6-d0976f8426cb", "MIG-8e4a8a9c-0f2b-5a6c-9d3e-1b7f5c2d4e6f"
MIG_GPU = "GPU-e91edf3b-b297-37c1-a2a7-7601c3238fa2"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    for bus, node in (("07", 3), ("0f", 3), ("47", 1), ("4e", -1)):
        device = tmp_path / f"sys/bus/pci/devices/0000:{bus}:00.0"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{node}\n")
    return str(tmp_path)


def labels(found):
    return [each["label"] for each in found["devices"]]


def seen(found):
    return " ".join(each["seen"] for each in found["problems"])


def test_f57_all_gpus_with_what_the_driver_knows(root):
    found = look("a100x4.txt", {}, root)
    assert found["kind"] == "gpu"
    assert found["variable"] == ""
    assert labels(found) == ["0", "1", "2", "3"]
    assert found["devices"][0] == {
        "kind": "gpu",
        "position": 0,
        "label": "0",
        "uuid": A0,
        "pci": "0000:07:00.0",
        "numa": 3,
        "memory_bytes": 85899345920,
        "name": "NVIDIA A100-SXM4-80GB",
    }
    assert [each["numa"] for each in found["devices"]] == [3, 3, 1, -1]
    assert found["problems"] == []


def test_f57_p41_the_visible_list_gives_order_and_position(root):
    found = look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": "2,0"}, root)
    assert found["variable"] == "CUDA_VISIBLE_DEVICES"
    assert [(each["position"], each["label"], each["numa"]) for each in found["devices"]] == [(0, "2", 1), (1, "0", 3)]


@pytest.mark.parametrize("label", [A0, A0[:20], "GPU-893"])
def test_p49_uuids_whole_and_abbreviated(root, label):
    found = look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": f"{label},1"}, root)
    assert labels(found) == [label, "1"]
    assert found["devices"][0]["uuid"] == A0


@pytest.mark.parametrize("text", ["GPU-89", "GPU-7", "0,4", "0,abc", MIG_A])
def test_p49_names_of_no_gpu_or_of_two_are_told_with_those_that_are(root, text):
    found = look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": text}, root)
    assert f"names {text.split(',')[-1]}; the driver shows" in seen(found)
    assert A0 in seen(found)
    assert found["problems"][0]["code"] == 66


@pytest.mark.parametrize("text", ["", "-1", "NoDevFiles", "none", "void", "-1,0"])
def test_p49_w15_lists_of_nothing_are_a_cpu_job(root, text):
    found = look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": text}, root)
    assert found["devices"] == []
    assert found["problems"] == []


def test_p49_the_list_ends_at_minus_one(root):
    assert labels(look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": "1,-1,2"}, root)) == ["1"]


def test_f62_all_is_every_gpu(root):
    found = look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": "all"}, root)
    assert labels(found) == ["0", "1", "2", "3"]
    assert found["variable"] == ""


def test_p49_mig_instances_by_both_names(root):
    text = f"{MIG_A},MIG-{MIG_GPU}/5/0"
    found = look("a100-mig.txt", {"CUDA_VISIBLE_DEVICES": text}, root)
    assert labels(found) == text.split(",")
    assert [each["uuid"] for each in found["devices"]] == [MIG_A, MIG_B]
    assert [each["memory_bytes"] for each in found["devices"]] == [20803747840, 5100273664]
    assert found["devices"][0]["numa"] == 3
    assert "--visible virtual" in found["notes"][0]


def test_p49_without_a_list_every_instance_of_a_cut_gpu_is_a_device(root):
    found = look("a100-mig.txt", {}, root)
    assert labels(found) == [MIG_A, MIG_B, "1"]


def test_p49_an_instance_of_another_job_is_not_shown(root):
    found = look("a100-mig.txt", {"CUDA_VISIBLE_DEVICES": f"MIG-{MIG_GPU}/13/0"}, root)
    assert f"names MIG-{MIG_GPU}/13/0" in seen(found)


def test_a_lost_gpu_is_named(root):
    found = look("lost.txt", {}, root)
    assert labels(found) == ["0"]
    assert "GPU 1: GPU is lost" in seen(found)


def test_a_lost_gpu_that_is_not_in_the_list_does_no_harm(root):
    found = look("lost.txt", {"CUDA_VISIBLE_DEVICES": "0"}, root)
    assert labels(found) == ["0"]
    assert found["problems"] == []


def test_a_lost_gpu_in_the_list_is_named(root):
    assert "1: GPU is lost" in seen(look("lost.txt", {"CUDA_VISIBLE_DEVICES": "1"}, root))


def test_a_driver_that_does_not_answer_stops_the_launch(root):
    found = look("mismatch.txt", {}, root)
    assert "version mismatch" in seen(found)
    assert "nvidia-smi" in found["problems"][0]["todo"]


def test_a_driver_that_does_not_answer_is_not_asked_for_a_cpu_job(root):
    assert look("mismatch.txt", {"CUDA_VISIBLE_DEVICES": ""}, root)["problems"] == []


def test_f57_w15_without_driver_library_the_list_is_believed_and_that_is_told(tmp_path):
    found = look("", {"CUDA_VISIBLE_DEVICES": "0,1"}, str(tmp_path))
    assert labels(found) == ["0", "1"]
    assert "unverified" in found["notes"][0]


def test_unequal_gpus_are_told_unless_numbered_by_pci(root):
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in look("mixed.txt", {}, root)["notes"][0]
    assert look("mixed.txt", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, root)["notes"] == []


def test_w15_slurm_gave_fewer_than_the_list_names(root):
    given = {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "SLURM_GPUS_ON_NODE": "2", "SLURM_STEP_GPUS": "0,3"}
    found = look("a100x4.txt", given, root)
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3; but Slurm gave 2" in seen(found)
    assert "set it to 0,3" in found["problems"][0]["todo"]


def test_w15_slurm_gave_fewer_than_the_driver_shows(root):
    found = look("a100x4.txt", {"SLURM_GPUS_ON_NODE": "2"}, root)
    assert "no CUDA_VISIBLE_DEVICES, and the driver shows 0,1,2,3; but Slurm gave 2" in seen(found)


def test_p47_p48_one_gpu_of_four_is_no_contradiction(root):
    found = look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": "0", "SLURM_GPUS_ON_NODE": "4", "SLURM_STEP_GPUS": "0,1,2,3"}, root)
    assert labels(found) == ["0"]
    assert found["problems"] == []


@pytest.mark.parametrize(("listed", "label"), [({}, "1"), ({"CUDA_VISIBLE_DEVICES": A1[:12]}, A1[:12])])
def test_p96_processes_that_are_on_a_gpu_already_are_told(root, listed, label):
    assert f"GPUs are in use already: {label} by process 4194399 (19 GiB)" in look("a100x4.txt", listed, root)["notes"]
    assert look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": "0,2"}, root)["notes"] == []


def test_a_gpu_named_twice_is_none_for_cuda(root):
    assert "names 1 twice" in seen(look("a100x4.txt", {"CUDA_VISIBLE_DEVICES": "1,1"}, root))
