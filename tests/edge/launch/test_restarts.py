"""Restarts by the command itself, on one machine without a scheduler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLEAN = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
SLAUNCH = (sys.executable, "-m", "slaunch", "--log-dir", "logs")


def launch(folder: Path, script: str, *args: str, words: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(script)
    call = [*SLAUNCH, *words, *args, "train.py"]
    return subprocess.run(call, cwd=folder, env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)


def lines(folder: Path, log: str) -> list[str]:
    return [line for line in (folder / "logs" / log).read_text().splitlines() if not line.startswith("----")]


TWICE = """
import os, sys, time
names = "SLAUNCH_ATTEMPT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "MASTER_PORT", "PADDLE_CURRENT_ENDPOINT"
print(*(os.environ[name] for name in names), flush=True)
open(f"up.{os.environ['SLAUNCH_ATTEMPT']}.{os.environ['RANK']}", "w").close()
while not os.path.exists(f"up.{os.environ['SLAUNCH_ATTEMPT']}.{1 - int(os.environ['RANK'])}"): time.sleep(0.01)
if os.environ["SLAUNCH_ATTEMPT"] == "0":
    time.sleep(0 if os.environ["RANK"] == "1" else 600)
    sys.exit(4)
"""


@pytest.mark.parametrize(
    "words",
    [
        ("--nproc-per-node", "2", "--max-restarts", "2"),
        ("torchrun", "--nproc-per-node", "2", "--max-restarts", "2", "--log-dir", "logs"),
        ("paddle", "--nproc_per_node", "2", "--max_restart", "2", "--elastic_level", "1", "--log_dir", "logs"),
    ],
)
def test_f324_attempts_are_told_and_ports_are_new(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = launch(tmp_path, TWICE, *words)
    assert done.returncode == 0, done.stderr
    seen = [[line.split() for line in lines(tmp_path, f"workerlog.{rank}")] for rank in (0, 1)]
    assert [[line[:3] for line in log] for log in seen] == [[["0", "0", "2"], ["1", "1", "2"]]] * 2
    assert seen[0][0][3] != seen[0][1][3]
    assert seen[1][0][4] != seen[1][1][4]


def test_ports_that_the_user_fixes_stay(tmp_path: Path) -> None:
    done = launch(tmp_path, TWICE, "--nproc-per-node", "2", "--max-restarts", "1", "--start-port", "17120")
    assert done.returncode == 0, done.stderr
    assert [line.split()[4] for line in lines(tmp_path, "workerlog.1")] == ["127.0.0.1:17121"] * 2


SERVER = """
import os, sys, time
attempt, role = int(os.environ["SLAUNCH_ATTEMPT"]), os.environ["TRAINING_ROLE"]
print(attempt, flush=True)
open(f"up.{attempt}.{os.environ['SLAUNCH_RANK']}", "w").close()
while len([name for name in os.listdir() if name.startswith(f"up.{attempt}.")]) < 3: time.sleep(0.01)
if attempt == 0 and role == "PSERVER": sys.exit(3)
time.sleep(600 if role == "PSERVER" or attempt == 0 else 0)
"""


def test_f126_servers_start_anew_with_the_job(tmp_path: Path) -> None:
    """And end with their trainers, in the second attempt as well."""
    done = launch(tmp_path, SERVER, "--mode", "ps", "--server-num", "1", "--trainer-num", "2", "--max-restarts", "1")
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path, "serverlog.0") == ["0", "1"]
    assert [lines(tmp_path, f"workerlog.{n}") for n in (0, 1)] == [["0", "1"]] * 2


def test_progress_without_slaunch_is_told_to_nobody(tmp_path: Path) -> None:
    told = "worker.attempt(), worker.previous_rank(), worker.previous_world_size()"
    code = f"from slaunch import worker; worker.progress(3); print({told})"
    done = subprocess.run([sys.executable, "-c", code], env=CLEAN, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0 0 1\n"
