"""Whether a machine is fit: folders, network, cards; and NVIDIA's GPUs by a stand-in for its driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.nvml import environment

from slaunch.node.devices.values import Found
from slaunch.node.health import Health, Subject, card_state, cards, device_faults, folders, look, network, scratch
from slaunch.node.netlink import raw_addresses
from slaunch.node.values import Address, Device, Nic, Problem


def test_a_folder_is_made_and_left_as_it_was(tmp_path: Path) -> None:
    assert list(folders([str(tmp_path / "logs"), str(tmp_path)])) == []
    assert os.listdir(tmp_path / "logs") == []
    assert os.listdir(tmp_path) == ["logs"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert list(folders([str(tmp_path / "file"), str(tmp_path)])) == [f"cannot write to {tmp_path}/file: File exists"]
    assert next(folders(["/proc/slaunch"])).startswith("cannot write to /proc/slaunch: ")
    assert next(folders(["/sys"])).startswith("cannot write to /sys: ")


def test_the_folders_that_programs_count_on_are_looked_at(tmp_path: Path) -> None:
    assert scratch("/logs", {"TMPDIR": "/scratch/me"}) == ("/logs", "/scratch/me", "/dev/shm")
    assert scratch("", {}, str(tmp_path)) == ("/tmp",)


def test_an_address_that_has_gone_is_a_fault() -> None:
    here = [raw for raw in raw_addresses() if raw.wide]
    known = [Address(raw.ip, raw.interface, raw.prefix) for raw in here]
    assert list(network(known)) == []
    gone = Address("203.0.113.77", "eth9", 24)
    assert list(network([gone])) == ["address 203.0.113.77 on eth9 is not usable any more: the interface is down, or has lost it"]
    assert list(network([*known[:1], gone])) in ([], list(network([gone]))), "a second network may go"
    assert list(network([Address("127.0.0.1", "lo", 8)])) == []


def test_cards_that_were_active(tmp_path: Path) -> None:
    ports = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    ports.mkdir(parents=True)
    (ports / "state").write_text("4: ACTIVE\n")
    hsn = tmp_path / "sys/class/net/hsn0"
    hsn.mkdir(parents=True)
    (hsn / "operstate").write_text("up\n")
    nics = (Nic("mlx5_0:1", "infiniband", 0, 400_000), Nic("hsn0", "slingshot", 0, 200_000))
    assert list(cards(nics, str(tmp_path))) == []
    (ports / "state").write_text("1: DOWN\n")
    (hsn / "operstate").unlink()
    assert list(cards(nics, str(tmp_path))) == ["network card mlx5_0:1 is DOWN", "network card hsn0 is gone"]
    assert card_state(nics[0], str(tmp_path)) == "DOWN"


def test_devices_that_were_there() -> None:
    gpus = tuple(Device("gpu", n, str(n), f"GPU-{n}") for n in range(3))
    assert device_faults(gpus, Found("gpu", gpus)) == ()
    assert device_faults(gpus, Found("gpu", gpus[1:])) == ("gpu 0: not there any more",)
    lost = Found("gpu", gpus[1:], problems=(Problem(66, "use", "GPU 0: GPU is lost", "tell"),))
    assert device_faults(gpus, lost) == ("GPU 0: GPU is lost",)


def test_a_machine_without_devices(tmp_path: Path) -> None:
    assert look(Subject((), (), (), (str(tmp_path),)), {}) == Health()


LOOK = """
import dataclasses, json, sys
from slaunch.node import health
from slaunch.node.devices.table import find
from slaunch.node.devices.values import View
health.FREE_S = 0.3
devices = health.Device(**json.loads(sys.argv[1])),
held = tuple(tuple(pair) for pair in json.loads(sys.argv[2]))
print(json.dumps(dataclasses.asdict(health.look(health.Subject(devices, (), (), (), held), {"CUDA_VISIBLE_DEVICES": "0"}))))
"""
GPU = "gpu GPU-aa 00000000:07:00.0 85899345920 0 0 0 %d NVIDIA A100"


def gpu_health(tmp_path: Path, *lines: str, error: int = 0, held: object = ()) -> Any:
    recording = tmp_path / "recording"
    recording.write_text("\n".join(["driver 570.1", GPU % error, *lines, ""]))
    device = {"kind": "gpu", "position": 0, "label": "0", "uuid": "GPU-aa"}
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK, json.dumps(device), json.dumps(held)],
        env={"PATH": os.environ["PATH"], **environment("lost.txt"), "NVML_RECORDING": str(recording)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    return found["faults"], found["doubts"]


def test_a_healthy_gpu(tmp_path: Path) -> None:
    assert gpu_health(tmp_path, "ecc 0", "rows 0 0", "recovery 0") == ([], [])


def test_gpus_that_must_not_be_used(tmp_path: Path) -> None:
    faults, _ = gpu_health(tmp_path, error=15)
    assert faults == ["0: GPU is lost"]
    assert gpu_health(tmp_path, "recovery 1") == (["GPU-aa: its driver asks for a reset of the GPU"], [])
    assert gpu_health(tmp_path, "recovery 99") == (["GPU-aa: its driver asks for recovery action 99"], [])
    assert gpu_health(tmp_path, "rows 0 1") == (["GPU-aa: a bad row of its memory could not be replaced"], [])


def test_gpus_that_one_does_better_without(tmp_path: Path) -> None:
    faults, doubts = gpu_health(tmp_path, "ecc 3", "rows 1 0")
    assert faults == []
    assert doubts == [
        "GPU-aa: 3 uncorrectable ECC errors since its driver was loaded",
        "GPU-aa: a bad row of its memory waits for a reset to be replaced",
    ]


def test_a_gpu_on_which_others_compute_is_not_free(tmp_path: Path) -> None:
    assert gpu_health(tmp_path, "process 4194399 1024") == (["GPU-aa: process 4194399 computes on it"], [])
    assert gpu_health(tmp_path, "process 4194399 1024", held=[["GPU-aa", 4194399]]) == ([], [])
