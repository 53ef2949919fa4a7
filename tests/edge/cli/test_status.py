"""`slaunch status` beside a job on this machine, and what the agent's log tells of the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SLAUNCH = os.path.join(os.path.dirname(sys.executable), "slaunch")
PATIENCE_S = 60.0
WORKER = """
import os, sys, time
print("step 1", flush=True)
while not os.path.exists("go"): time.sleep(0.02)
sys.exit(int(os.environ["RANK"]) * 3)
"""


def wait_for(what: Callable[[], Any], name: str) -> Any:
    give_up = time.monotonic() + PATIENCE_S
    while not (seen := what()):
        assert time.monotonic() < give_up, f"{name}: not within {PATIENCE_S} s"
        time.sleep(0.05)
    return seen


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "CUDA_VISIBLE_DEVICES": ""}


def call(env: dict[str, str], place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command, in a folder that knows nothing of the job."""
    return subprocess.run([SLAUNCH, *words], env=env, cwd=place, capture_output=True, text=True, timeout=60)


def shows(env: dict[str, str], place: Path, text: str) -> int:
    """How often the status of the job has a text."""
    return call(env, place, "status", "mine").stdout.count(text)


def test_a_job_from_its_start_to_its_end(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "x.py").write_text(WORKER)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    options = ["--nproc-per-node", "2", "--job-id", "mine", "--status-interval", "0.1"]
    command = [SLAUNCH, *options, "--log-name", "{host}/{rank:02d}.{stream}", "x.py"]
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        try:
            wait_for(lambda: job.poll() is not None or shows(env, elsewhere, "step 1") == 2, "both workers' lines")
            assert job.poll() is None, job.communicate(timeout=60)
            text = call(env, elsewhere, "status").stdout
            assert text.startswith("job mine: running for ")
            assert f"2 workers on 1 node; logs in {tmp_path}/slaunch-logs/mine" in text
            found = json.loads(call(env, elsewhere, "status", "mine", "--json").stdout)
            assert (found["state"], found["run"]["pid"], found["status"]["world"]) == ("running", job.pid, 2)
        finally:
            (tmp_path / "go").touch()
            job.communicate(timeout=60)
    assert job.returncode == 3
    done = call(env, elsewhere, "status", "mine")
    assert done.stdout.startswith("job mine: ended at ")
    assert "failure, exit code 3" in done.stdout
    (logs,) = [path for path in (tmp_path / "slaunch-logs" / "mine").iterdir() if path.is_dir()]
    assert sorted(path.name for path in logs.iterdir()) == ["00.err", "00.out", "01.err", "01.out"]
    phases_are_told(tmp_path / "slaunch-logs" / "mine" / "agent.0.jsonl")


def phases_are_told(journal: Path) -> None:
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    phases = [entry for entry in entries if entry["kind"] == "phase"]
    assert [phase["name"] for phase in phases] == [
        *("interpreter", "allocation", "node", "rendezvous", "plan", "agreement", "spawn", "first output"),
    ]
    ends = [phase["ended_s"] for phase in phases[:-1]]
    assert ends == sorted(ends)
    assert abs(sum(phase["took_s"] for phase in phases[:-1]) - ends[-1]) < 0.01
    assert all(phase["took_s"] >= 0 for phase in phases)


def test_a_job_that_nobody_knows(tmp_path: Path, env: dict[str, str]) -> None:
    done = call(env, tmp_path, "status", "4711")
    assert done.returncode == 65
    assert "cannot find job 4711" in done.stderr
    assert call(env, tmp_path, "status", "1", "2").returncode == 2
    assert "usage: slaunch status" in call(env, tmp_path, "status", "--help").stdout
