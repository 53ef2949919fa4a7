"""Samples of devices while workers run: the real process against recorded drivers."""

from __future__ import annotations

import csv
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from support.nvml import environment

from slaunch.node.devices import sampler
from slaunch.node.values import Device

A100 = "NVIDIA A100-SXM4-80GB"
UUIDS = ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-5b2d7b3c-1d2e-6f3a-0b4c-9d8e7f6a5b4c")
GPUS = tuple(Device("gpu", at, str(at), uuid, name=A100) for at, uuid in enumerate(UUIDS))


def sample(tmp_path, recording, devices, workers, root="/", rows=2):
    """Run the sampler until it has written some rows of samples; its two files."""
    order = sampler.Order(tuple(devices), workers, str(tmp_path / "job.gpu.log"), str(tmp_path / "devices.csv"), 0.05, root)
    env = {"PATH": os.environ["PATH"], **(environment(recording) if recording else {})}
    with subprocess.Popen(order.command(), env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline and lines_of(order.table) <= rows:
            time.sleep(0.02)
        process.stdin.close()
        code, said = process.wait(timeout=30), process.stderr.read().decode()
    assert (code, said) == (0, "")
    return order


def lines_of(path):
    return pathlib.Path(path).read_text().count("\n") if os.path.exists(path) else 0


def parts(path):
    return [part.splitlines() for part in pathlib.Path(path).read_text().split("\n\n")]


def test_f11_log_in_the_known_format(tmp_path):
    order = sample(tmp_path, "a100x4.txt", GPUS, {})
    devices, processes, samples = parts(order.log)
    assert devices == [
        "index,uuid,driver_version,name,gpu_serial,display_active,display_mode",
        f"0,{UUIDS[0]},535.161.08,{A100},1320920000000,Disabled,Enabled",
        f"1,{UUIDS[1]},535.161.08,{A100},1320920000001,Disabled,Enabled",
    ]
    assert processes == ["pid,process_name,gpu_uuid,gpu_name,used_memory", f"4194399,,{UUIDS[1]},{A100},20476"]
    assert samples[0] == "index,utilization_gpu,memory_total,memory_used,memory_free,timestamp"
    assert re.fullmatch(r"0,0,81920,4,81915,\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", samples[1])
    assert samples[2].startswith("1,97,81920,20480,61440,")


def test_table_has_a_row_for_each_process(tmp_path):
    order = sample(tmp_path, "a100x4.txt", GPUS, {4194399: 5}, rows=4)
    rows = list(csv.DictReader(pathlib.Path(order.table).read_text().splitlines()))
    assert [(row["index"], row["rank"], row["pid"], row["process_memory_mib"]) for row in rows[:2]] == [
        ("0", "", "", ""),
        ("1", "5", "4194399", "20476"),
    ]
    assert float(rows[-1]["time_s"]) > float(rows[0]["time_s"])


def test_a_worker_s_child_counts_for_its_rank():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert sampler.rank_of(child.pid, {os.getpid(): 7}) == "7"
        assert sampler.rank_of(child.pid, {child.pid: 3, os.getpid(): 7}) == "3"
        child.communicate(b"\n", timeout=30)
    assert sampler.rank_of(1, {os.getpid(): 7}) == ""


def test_an_instance_has_no_utilization(tmp_path):
    instance = Device("gpu", 0, "MIG-377e0049-554c-540b-93c6-d0976f8426cb", "MIG-377e0049-554c-540b-93c6-d0976f8426cb")
    order = sample(tmp_path, "a100-mig.txt", [instance], {}, rows=1)
    assert f"{instance.label},[N/A],19840,0,19840," in parts(order.log)[2][1]


def test_a_lost_gpu_leaves_the_others_going(tmp_path):
    order = sample(tmp_path, "lost.txt", GPUS, {}, rows=2)
    assert {line.split(",")[0] for line in parts(order.log)[2][1:]} == {"0"}


@pytest.fixture
def amd(tmp_path):
    folder = tmp_path / "root/sys/bus/pci/devices/0000:c1:00.0"
    folder.mkdir(parents=True)
    for name, value in (("mem_info_vram_total", 68702699520), ("mem_info_vram_used", 1 << 30), ("gpu_busy_percent", 42)):
        (folder / name).write_text(f"{value}\n")
    return str(tmp_path / "root")


def test_amd_s_gpus(tmp_path, amd):
    order = sample(tmp_path, "", [Device("rocm", 0, "4", "GPU-1", "0000:c1:00.0", name="aldebaran")], {}, amd, rows=1)
    assert parts(order.log)[0][1] == "4,GPU-1,,aldebaran,,,"
    assert parts(order.log)[2][1].startswith("4,42,65520,1024,64496,")


@pytest.mark.parametrize("recording", ["", "mismatch.txt"])
def test_no_driver_no_files(tmp_path, recording):
    order = sample(tmp_path, recording, GPUS, {})
    assert not os.path.exists(order.log)
    assert not os.path.exists(order.table)


def test_a_full_disk_ends_it_with_a_word(tmp_path):
    order = sampler.Order(GPUS, {}, "/dev/full", str(tmp_path / "devices.csv"), 0.05)
    env = {"PATH": os.environ["PATH"], **environment("a100x4.txt")}
    told = subprocess.run(order.command(), env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30, check=False)
    assert told.returncode == 1
    assert b"No space left on device" in told.stderr


def sampling(tmp_path, interval_s=0.05):
    order = sampler.Order(GPUS, {}, str(tmp_path / "log"), str(tmp_path / "table"), interval_s)
    return sampler.Sampling(order, {"PATH": os.environ["PATH"], **environment("a100x4.txt")})


def wait_for_rows(tmp_path, rows):
    deadline = time.monotonic() + 30
    while lines_of(tmp_path / "table") < rows and time.monotonic() < deadline:
        time.sleep(0.02)
    return lines_of(tmp_path / "table")


def test_it_goes_on_through_signals_to_the_job_and_ends_when_told(tmp_path):
    running = sampling(tmp_path)
    try:
        before = wait_for_rows(tmp_path, 3)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            os.kill(running._pid, number)
        assert wait_for_rows(tmp_path, before + 4) >= before + 4
    finally:
        running.close()


def test_it_is_killed_when_it_hangs(tmp_path):
    running = sampling(tmp_path)
    wait_for_rows(tmp_path, 3)
    os.kill(running._pid, signal.SIGSTOP)
    running.close(patience_s=1.0)
    with pytest.raises(ProcessLookupError):
        os.kill(running._pid, 0)


def test_it_ends_with_its_starter(tmp_path):
    running = sampling(tmp_path, 60.0)
    wait_for_rows(tmp_path, 3)
    running.close(patience_s=30.0)
    with pytest.raises(ProcessLookupError):
        os.kill(running._pid, 0)
