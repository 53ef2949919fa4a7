"""What agents do beside their duty: real agents, workers and samplers; the driver is a stand-in."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.nvml import library

from slaunch.agent.crew import Worker
from slaunch.agent.gauges import metered
from slaunch.agent.placement import Placement
from slaunch.node.values import Device
from slaunch.plan.values import WorkerSpec

from .job import Job, python, shell, wait_for

MIB = 1 << 20
UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
GPU = {"kind": "gpu", "position": 0, "label": "0", "uuid": UUID, "name": "NVIDIA A100"}
HELD = 21470642176
SAMPLER = "slaunch.node.devices.sampler"
UNTIL_TOLD = "while ! [ -e {0}/stop ]; do sleep 0.05; done"


@pytest.fixture
def driver(tmp_path: Path) -> dict[str, Any]:
    """Settings of a job on a GPU, which the worker holds that has written its process id to the file `held`."""
    recording = tmp_path / "recording"
    recording.write_text(
        f"driver 535.161.08\ngpu {UUID} 00000000:07:00.0 85899345920 {HELD} 97 0 0 NVIDIA A100\npidfile {tmp_path}/held {HELD}\n"
    )
    return {"devices": [GPU], "env": {"LD_LIBRARY_PATH": library().name, "NVML_RECORDING": str(recording)}}


def rows(job: Job, name: str = "devices.csv") -> list[dict[str, str]]:
    return list(csv.DictReader(job.text(f"logs/{name}").splitlines()))


def seen(job: Job, rank: int, name: str = "devices.csv") -> bool:
    return any(row["rank"] == str(rank) for row in rows(job, name) if row["process_memory_mib"])


# -- memory -------------------------------------------------------------------------------------------------------


def test_w10_the_most_memory_of_every_worker_is_in_the_report(tmp_path: Path) -> None:
    big, small = python("held = bytearray(200 << 20); held[::4096] = bytes(len(held[::4096]))"), shell("true")
    with Job(tmp_path, [[big, small], [small]]) as job:
        assert job.wait() == [0, 0]
        peaks = job.report()["peaks"]
        assert [(peak["rank"], peak["host"]) for peak in peaks] == [(0, "n0"), (1, "n0"), (2, "n1")]
        assert [peak["device_bytes"] for peak in peaks] == [0, 0, 0]
        assert 200 * MIB < peaks[0]["host_bytes"] < 400 * MIB
        assert 0 < peaks[2]["host_bytes"] < 100 * MIB
        assert "rank 0 on n0" in job.text("err.0").partition("memory:")[2]


def test_w10_peaks_of_a_failed_job(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("exit 3")], [shell("sleep 600")]]) as job:
        assert job.wait() == [3, 3]
        assert [peak["rank"] for peak in job.report()["peaks"]] == [0, 1]


# -- devices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [[], [GPU]], ids=["no devices", "no driver"])
def test_samples_that_were_asked_for_and_cannot_be_are_told_once(tmp_path: Path, devices: list[dict[str, Any]]) -> None:
    said = "--device-log yes: no driver of devices answers here"
    worker = [shell(UNTIL_TOLD.format(tmp_path))]
    with Job(tmp_path, [worker, worker], devices=devices, options={"device_log": "yes"}) as job:
        for node in (0, 1):
            wait_for(lambda node=node: said in job.text(f"logs/agent.{node}.jsonl"), f"the remark of node {node}")  # type: ignore[misc]
        (tmp_path / "stop").touch()
        assert job.wait() == [0, 0]
        assert job.text("err.0").count(said) == 1


def test_f11_f146_f148_w10_devices_are_sampled_and_peaks_reported(tmp_path: Path, driver: dict[str, Any]) -> None:
    with Job(tmp_path, [[shell(f"echo $$ >{tmp_path}/held; {UNTIL_TOLD.format(tmp_path)}")]], **driver) as job:
        wait_for(lambda: seen(job, 0), "a sample with the worker's memory")
        wait_for(lambda: f'"device_now_bytes":{HELD},"device_percent":97' in job.text("logs/status.json"), "the state with it")
        (tmp_path / "stop").touch()
        assert job.wait() == [0]
        assert job.report()["peaks"][0]["device_bytes"] == HELD
        assert "devices at most 20.0 GiB (rank 0 on n0)" in job.text("err.0")
        assert job.text("logs/job.gpu.log").startswith("index,uuid,driver_version")


def test_f11_w59_each_node_has_its_own_files(tmp_path: Path, driver: dict[str, Any]) -> None:
    command = shell(UNTIL_TOLD.format(tmp_path))
    with Job(tmp_path, [[command], [command]], **driver) as job:
        wait_for(lambda: rows(job, "devices.0.csv") and rows(job, "devices.1.csv"), "samples of both nodes")
        (tmp_path / "stop").touch()
        assert job.wait() == [0, 0]
        assert job.text("logs/job.0.gpu.log") and job.text("logs/job.1.gpu.log")


def test_f153_the_device_log_can_be_switched_off(tmp_path: Path, driver: dict[str, Any]) -> None:
    with Job(tmp_path, [[shell("sleep 1")]], options={"device_log": "no"}, **driver) as job:
        assert job.wait() == [0]
        assert not list((tmp_path / "logs").glob("*.gpu.log"))
        assert not list((tmp_path / "logs").glob("devices*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_sampler_ends_with_its_agent(tmp_path: Path, driver: dict[str, Any], number: signal.Signals) -> None:
    with Job(tmp_path, [[shell("sleep 600")]], **driver) as job:
        wait_for(lambda: rows(job), "samples")
        assert any(SAMPLER in line for line in job.left())
        job.agents[0].send_signal(number)
        job.wait()
        job.nothing_left()


def test_a_sampler_that_hangs_holds_up_nothing_for_long(tmp_path: Path, driver: dict[str, Any]) -> None:
    with Job(tmp_path, [[shell(UNTIL_TOLD.format(tmp_path))]], **driver) as job:
        wait_for(lambda: rows(job), "samples")
        (line,) = (line for line in job.left() if SAMPLER in line)
        os.kill(int(line.split()[0]), signal.SIGSTOP)
        (tmp_path / "stop").touch()
        assert job.wait() == [0]
        job.nothing_left()


def test_a_worker_without_a_driver_leaves_no_sampler(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("sleep 0.5")]], devices=[{**GPU, "uuid": ""}]) as job:
        assert job.wait() == [0]
        assert not list((tmp_path / "logs").glob("devices*"))


@pytest.mark.parametrize(
    ("device", "wish", "sampled"),
    [
        (Device("gpu", 0, "0", UUID), "auto", True),
        (Device("gpu", 0, "0"), "auto", False),
        (Device("gpu", 0, "0"), "yes", True),
        (Device("gpu", 0, "0", UUID), "no", False),
        (Device("rocm", 0, "0", "", "0000:c1:00.0"), "auto", True),
        (Device("npu", 0, "0"), "auto", True),
        (Device("ipu", 0, "0"), "yes", False),
    ],
)
def test_f153_what_is_sampled(device: Device, wish: str, sampled: bool) -> None:
    assert metered((device,), wish) is sampled
    assert not metered((), wish)


# -- places -------------------------------------------------------------------------------------------------------


MOVE = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
while not os.path.exists(os.environ["ENOUGH"]): time.sleep(0.02)
"""


def test_p40_a_worker_that_moves_is_told_once_on_the_hub_s_console(tmp_path: Path) -> None:
    own = sorted(os.sched_getaffinity(0))
    enough = tmp_path / "enough"
    wait = f"until [ -e {enough} ]; do sleep 0.02; done"
    with Job(tmp_path, [[shell(wait)], [python(MOVE)]], cpus=own, worker_env={"ENOUGH": str(enough)}) as job:
        wait_for(lambda: "note:" in job.text("err.0"), "a note")
        enough.touch()
        assert job.wait(60) == [0, 0]
        told = [line for line in job.text("err.0").splitlines() if "note:" in line]
        assert len(told) == 1
        assert told[0].startswith("slaunch: note: n1: rank 1 (process ")
        assert f"runs on CPUs {own[0]} instead of {own[0]}-{own[-1]}" in told[0]
        assert '"kind":"remark"' in job.text("logs/agent.1.jsonl")


def worker(rank: int, pid: int, cpus: tuple[int, ...]) -> Worker:
    spec = WorkerSpec(rank, rank, 0, (), {}, (), cpus, (), "log")
    return Worker(spec, pid, -1, "", 0)


def test_p40_each_worker_is_told_once_and_several_in_one_line() -> None:
    own = tuple(sorted(os.sched_getaffinity(0)))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        moved = [worker(rank, child.pid, (*own, 4095)) for rank in range(3)]
        workers, said = [*moved[:2], worker(9, child.pid, own)], list[str]()
        placement = Placement(lambda: workers, said.append, (0.0, 0.0))
        placement.tick(placement.due)
        assert len(said) == 1
        assert said[0].startswith("rank 0 ")
        assert said[0].endswith("; 1 more workers of this node are not in their place")
        placement.tick(placement.due)
        assert len(said) == 1
        workers.append(moved[2])
        placement.tick(placement.due)
        assert len(said) == 2
        assert said[1].startswith("rank 2 ")
        placement.start()
        placement.tick(placement.due)
        assert said[2].endswith("; 2 more workers of this node are not in their place")
        moved[0].ended = True
        child.communicate(b"\n", timeout=30)
