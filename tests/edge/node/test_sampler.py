"""Samples of devices while workers run: the real process against recorded drivers."""

from __future__ import annotations

import csv
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

import pytest
from support.machines import DATA
from support.nvml import environment

from slaunch.node.devices import sampler
from slaunch.node.devices.meter_tools import read_npu_smi
from slaunch.node.devices.sampling import Sampling
from slaunch.node.values import Device

A100 = "NVIDIA A100-SXM4-80GB"
UUIDS = ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-5b2d7b3c-1d2e-6f3a-0b4c-9d8e7f6a5b4c")
GPUS = tuple(Device("gpu", at, str(at), uuid, name=A100) for at, uuid in enumerate(UUIDS))


def order_of(tmp_path, devices, **changes):
    return sampler.Order(tuple(devices), str(tmp_path / "job.gpu.log"), str(tmp_path / "devices.csv"), 0.05, **changes)


def sample(tmp_path, recording, devices, workers, root="/", rows=2, path=(), **changes):
    """Run the sampler until it has written some rows of samples; its order."""
    order = order_of(tmp_path, devices, root=root, **changes)
    env = {"PATH": ":".join((*path, os.environ["PATH"])), **(environment(recording) if recording else {})}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(order.command(), env=env, **pipes) as process:
        process.stdin.write(b"".join(b"%d %d\n" % worker for worker in workers.items()))
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline and lines_of(order.table) <= rows:
            time.sleep(0.02)
        peaks, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, b"")
    (tmp_path / "peaks").write_bytes(peaks)
    return order


def lines_of(path):
    return pathlib.Path(path).read_text().count("\n") if os.path.exists(path) else 0


def parts(path):
    return [part.splitlines() for part in pathlib.Path(path).read_text().split("\n\n")]


def test_f11_f146_f147_f148_f149_log_in_the_known_format(tmp_path):
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


def table_of(order):
    return list(csv.DictReader(pathlib.Path(order.table).read_text().splitlines()))


def test_f149_w10_the_table_has_a_row_for_each_process_and_the_starter_is_told_of_peaks(tmp_path):
    order = sample(tmp_path, "a100x4.txt", GPUS, {4194399: 5}, rows=4)
    rows = table_of(order)
    assert [(row["index"], row["rank"], row["pid"], row["process_memory_mib"]) for row in rows[:2]] == [
        ("0", "", "", ""),
        ("1", "5", "4194399", "20476"),
    ]
    assert [(row["utilization_percent"], row["power_w"], row["temperature_c"]) for row in rows[:2]] == [
        ("0", "62", "31"),
        ("97", "398", "64"),
    ]
    assert float(rows[-1]["time_s"]) > float(rows[0]["time_s"])
    assert (tmp_path / "peaks").read_text() == "5 21470642176\nnow 5 21470642176 97\n", "what does not change is told once"


def test_f148_w59_a_restart_goes_on_with_the_files_that_are_there(tmp_path):
    first = sample(tmp_path, "a100x4.txt", GPUS[:1], {})
    before = len(table_of(first))
    again = sample(tmp_path, "a100x4.txt", GPUS[:1], {4194399: 5}, append=True, rows=before + 2)
    assert len(table_of(again)) > before
    assert pathlib.Path(again.log).read_text().count("display_mode\n") == 2
    sample(tmp_path, "a100x4.txt", GPUS[:1], {}, rows=1)
    assert pathlib.Path(again.log).read_text().count("display_mode\n") == 1


def test_a_worker_s_child_counts_for_its_rank():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert sampler.rank_of(child.pid, {os.getpid(): 7}) == 7
        assert sampler.rank_of(child.pid, {child.pid: 3, os.getpid(): 7}) == 3
        child.communicate(b"\n", timeout=30)
    assert sampler.rank_of(1, {os.getpid(): 7}) == sampler.STRANGER


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
    (folder / "hwmon/hwmon3").mkdir(parents=True)
    (folder / "hwmon/hwmon3/power1_average").write_text("305000000\n")
    (folder / "hwmon/hwmon3/temp1_input").write_text("47000\n")
    kfd = tmp_path / "root/sys/class/kfd/kfd"
    (kfd / "topology/nodes/4").mkdir(parents=True)
    (kfd / "topology/nodes/4/properties").write_text("simd_count 440\nlocation_id 49408\ndomain 0\n")
    (kfd / "topology/nodes/4/gpu_id").write_text("51140\n")
    (kfd / "proc/4194399").mkdir(parents=True)
    (kfd / "proc/4194399/vram_51140").write_text(f"{1 << 29}\n")
    return str(tmp_path / "root")


MI250X = Device("rocm", 0, "4", "GPU-1", "0000:c1:00.0", name="aldebaran")


def test_f150_w59_amd_s_gpus_with_their_real_memory_and_processes(tmp_path, amd):
    order = sample(tmp_path, "", [MI250X], {4194399: 2}, amd, rows=1)
    assert parts(order.log)[0][1] == "4,GPU-1,,aldebaran,,,"
    assert parts(order.log)[1][1:] == ["4194399,,GPU-1,aldebaran,512"]
    assert parts(order.log)[2][1].startswith("4,42,65520,1024,64496,")
    row = table_of(order)[0]
    assert (row["power_w"], row["temperature_c"], row["rank"], row["process_memory_mib"]) == ("305", "47", "2", "512")
    assert (tmp_path / "peaks").read_text() == f"2 {1 << 29}\nnow 2 {1 << 29} 42\n"


def tool(tmp_path, name, output, code=0):
    """A vendor's tool that prints a recorded text."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).write_text(f"#!/bin/sh\ncat {DATA}/smi/{output}\nexit {code}\n")
    (tmp_path / "bin" / name).chmod(0o755)
    return [str(tmp_path / "bin")]


def test_f151_ascend_s_npus(tmp_path):
    npus = [Device("npu", at, str(at)) for at in (0, 1)]
    order = sample(tmp_path, "", npus, {33776: 0, 33777: 1}, path=tool(tmp_path, "npu-smi", "npu-smi.txt"), rows=3)
    assert [line.rpartition(",")[0] for line in parts(order.log)[2][1:3]] == ["0,6,65536,35738,29798", "1,11,65536,35761,29775"]
    columns = ("index", "power_w", "temperature_c", "rank", "process_memory_mib")
    seen = [tuple(row[column] for column in columns) for row in table_of(order)]
    assert seen[:3] == [("0", "118", "47", "", "617"), ("0", "118", "47", "0", "31747"), ("1", "143", "49", "1", "31747")]


def test_f151_ascend_s_chips_without_hbm():
    with open(f"{DATA}/smi/npu-smi-310.txt") as file:
        table = read_npu_smi(file.read())
    seen = [(name, each.used >> 20, each.total >> 20, each.watts, each.celsius, each.percent) for name, each in table.items()]
    assert seen == [("0", 1853, 21527, -1, 44, 0), ("1", 1540, 21527, -1, 43, 3)]


def test_f152_kunlun_s_xpus(tmp_path):
    xpus = [Device("xpu", at, str(at)) for at in (0, 1)]
    order = sample(tmp_path, "", xpus, {}, path=tool(tmp_path, "xpu-smi", "xpu-smi.txt"), rows=2)
    assert [line.rpartition(",")[0] for line in parts(order.log)[2][1:3]] == ["0,64,98304,12034,86270", "1,0,98304,4,98300"]
    assert [(row["power_w"], row["temperature_c"]) for row in table_of(order)[:2]] == [("92", "38"), ("88", "36")]


def test_w59_a_tool_that_fails_is_asked_less_often(tmp_path):
    calls = tmp_path / "calls"
    path = tool(tmp_path, "npu-smi", "npu-smi.txt", code=1)
    script = tmp_path / "bin/npu-smi"
    script.write_text(script.read_text().replace("cat", f"echo >>{calls}; cat"))
    order = order_of(tmp_path, [Device("npu", 0, "0")])
    env = {"PATH": f"{path[0]}:{os.environ['PATH']}"}
    with subprocess.Popen(order.command(), env=env, stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        while lines_of(calls) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.communicate(timeout=30)
    assert lines_of(calls) == 2
    assert len(parts(order.log)[2]) == 1


def test_a_kind_without_meter_leaves_no_files(tmp_path):
    for kind in ("ipu", "cpu"):
        order = sample(tmp_path, "", [Device(kind, 0, "0")], {})
        assert not os.path.exists(order.log)


def test_intel_s_xpus_have_no_meter(tmp_path):
    path = tool(tmp_path, "xpu-smi", "xpu-smi.txt")
    order = sample(tmp_path, "", [Device("xpu", 0, "0", pci="0000:3a:00.0")], {}, path=path)
    assert not os.path.exists(order.log)


@pytest.mark.parametrize("recording", ["", "mismatch.txt"])
def test_no_driver_no_files(tmp_path, recording):
    order = sample(tmp_path, recording, GPUS, {})
    assert not os.path.exists(order.log)
    assert not os.path.exists(order.table)


def test_a_full_disk_ends_it_with_a_word(tmp_path):
    order = sampler.Order(GPUS, "/dev/full", str(tmp_path / "devices.csv"), 0.05)
    env = {"PATH": os.environ["PATH"], **environment("a100x4.txt")}
    told = subprocess.run(order.command(), env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30, check=False)
    assert told.returncode == 1
    assert b"No space left on device" in told.stderr


def sampling(tmp_path, interval_s=0.05):
    order = sampler.Order(GPUS, str(tmp_path / "log"), str(tmp_path / "table"), interval_s)
    return Sampling(order, {"PATH": os.environ["PATH"], **environment("a100x4.txt")})


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
            os.kill(running.pid, number)
        assert wait_for_rows(tmp_path, before + 4) >= before + 4
    finally:
        running.close()


def test_w10_w59_workers_of_any_attempt_are_told_and_their_peaks_read(tmp_path):
    running = sampling(tmp_path)
    try:
        wait_for_rows(tmp_path, 3)
        assert running.read()
        assert running.peaks == {}
        running.started(4194399, 6)
        deadline = time.monotonic() + 30
        while not running.peaks and time.monotonic() < deadline:
            select.select([running.descriptor], [], [], 1)
            running.read()
        assert running.peaks == {6: 21470642176}
        while not running.now and time.monotonic() < deadline:
            select.select([running.descriptor], [], [], 1)
            running.read()
        assert running.now == {6: (21470642176, 97)}
    finally:
        running.close()


def test_one_that_has_ended_is_noticed_and_does_no_harm(tmp_path):
    order = sampler.Order((Device("ipu", 0, "0"),), str(tmp_path / "log"), str(tmp_path / "table"))
    running = Sampling(order, {"PATH": os.environ["PATH"]})
    try:
        while running.read():  # that no driver answers, then its end
            assert select.select([running.descriptor], [], [], 30)[0]
        assert not running.answered
        running.started(1, 1)
    finally:
        running.close()


def test_files_in_the_working_directory_are_no_modules_of_ours(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    running = sampling(tmp_path)
    try:
        assert wait_for_rows(tmp_path, 3) >= 3
    finally:
        running.close()


def test_it_is_killed_when_it_hangs(tmp_path):
    running = sampling(tmp_path)
    wait_for_rows(tmp_path, 3)
    os.kill(running.pid, signal.SIGSTOP)
    running.close(patience_s=1.0)
    with pytest.raises(ProcessLookupError):
        os.kill(running.pid, 0)


def test_it_ends_with_its_starter(tmp_path):
    running = sampling(tmp_path, 60.0)
    wait_for_rows(tmp_path, 3)
    running.close(patience_s=30.0)
    with pytest.raises(ProcessLookupError):
        os.kill(running.pid, 0)
