"""The device log of whole jobs: `slaunch` as users start it, on GPUs of a stand-in driver."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

from support.nvml import library

UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
HELD = 3 << 30
PROGRAM = """
import csv, os, sys, time
folder, table, patience_s = sys.argv[1:]
with open(f"{folder}/held.part", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{folder}/held.part", f"{folder}/held")
give_up = time.monotonic() + float(patience_s)
seen = False
while not seen and time.monotonic() < give_up:
    time.sleep(0.05)
    if os.path.exists(table):
        with open(table) as file:
            seen = any(row["rank"] == "0" for row in csv.DictReader(file))
"""
"""Holds memory of the GPU, and waits until that has been sampled."""


def start(tmp_path: Path, patience_s: float, *options: str) -> subprocess.CompletedProcess[str]:
    """A job of one worker on one GPU."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "recording").write_text(
        f"driver 535.161.08\ngpu {UUID} 00000000:07:00.0 85899345920 {HELD} 42 0 0 NVIDIA A100\n"
        f"sensors 62118 31\npidfile {tmp_path}/held {HELD}\n"
    )
    stand_in = {"LD_LIBRARY_PATH": library().name, "NVML_RECORDING": str(tmp_path / "recording"), "CUDA_VISIBLE_DEVICES": "0"}
    logs = f"{tmp_path}/logs"
    words = (*options, "--log_dir", logs, f"{tmp_path}/train.py", str(tmp_path), f"{logs}/devices.csv", str(patience_s))
    return subprocess.run(
        [sys.executable, "-m", "slaunch", *words],
        env={**os.environ, **stand_in},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_f11_f149_w10_samples_and_peak_of_a_job(tmp_path: Path) -> None:
    done = start(tmp_path, 30, "--job-id", "j")
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "logs/devices.csv") as file:
        row = next(row for row in csv.DictReader(file) if row["rank"] == "0")
    assert (row["uuid"], row["utilization_percent"], row["power_w"], row["process_memory_mib"]) == (UUID, "42", "62", "3072")
    assert f"0,{UUID},535.161.08,NVIDIA A100," in (tmp_path / "logs/j.gpu.log").read_text()
    report = json.loads((tmp_path / "logs/report.json").read_text())
    assert [(peak["rank"], peak["device_bytes"]) for peak in report["peaks"]] == [(0, HELD)]
    assert "devices at most 3.0 GiB (rank 0 on" in done.stderr


def test_f153_switched_off(tmp_path: Path) -> None:
    done = start(tmp_path, 2, "--device-log", "no")
    assert done.returncode == 0, done.stderr
    assert not [path for path in (tmp_path / "logs").iterdir() if path.name.endswith((".csv", ".gpu.log"))]
    assert json.loads((tmp_path / "logs/report.json").read_text())["peaks"][0]["device_bytes"] == 0
