"""`slaunch status`: what is known of a run, from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slaunch.frozen import replace
from slaunch.jobs import Run
from slaunch.report.status import as_json, as_text, look


def run_in(folder: Path, state: dict[str, Any] | None = None, report: dict[str, Any] | None = None) -> Run:
    if state is not None:
        (folder / "status.json").write_text(json.dumps(state))
    if report is not None:
        (folder / "report.json").write_text(json.dumps(report))
    return Run("12.0", str(folder), "12.0", started_s=1000.0, nodes=2, world=2)


def state(**changes: Any) -> dict[str, Any]:
    worker = {
        "rank": 0, "state": "running", "cpus": 3.95, "host_bytes": 2 << 30, "out_bytes": 5,
        "device_bytes": 40 << 30, "device_now_bytes": 20 << 30, "device_percent": 97,
        "silent_s": 0.5, "last": "loss 1.5\x1b[2J",
    }  # fmt: skip
    return {
        "world": 2, "interval_s": 5.0, "started_s": 1001.0, "state": "running", "now_s": 1100.0, "attempt": 1, "left_s": 3600.0,
        "nodes": [
            {"node": 0, "host": "n1", "heard_s": 0.0, "workers": [worker, {**worker, "rank": 1, "state": "stopped"}]},
            {"node": 1, "host": "n2", "heard_s": 50.0, "workers": []},
        ],
        **changes,
    }  # fmt: skip


def test_a_running_job(tmp_path: Path) -> None:
    text = as_text(look(run_in(tmp_path, state()), 1103.0))
    first, second, *rest = text.splitlines()
    assert first == "job 12.0: running for 99.0 s, attempt 1, 60 min 0 s left (as of 3.00 s ago)" or "1 h" in first
    assert second == f"2 workers on 1 node; logs in {tmp_path}", "after a restart, those that are there"
    assert "1 running, 1 stopped" in rest
    assert "nothing heard of n2" in rest
    assert "n1       0  running   4.0  2.0 GiB  20.0 GiB 97 %     5 B  0.50 s  loss 1.5·[2J" in text


def test_a_job_that_was_killed_or_whose_disk_hangs(tmp_path: Path) -> None:
    found = look(run_in(tmp_path, state()), 1200.0)
    assert found.word == "silent"
    assert "not heard of for 100.0 s" in as_text(found) or "1 min 40 s" in as_text(found)


def test_a_job_that_has_ended(tmp_path: Path) -> None:
    run = run_in(tmp_path, state(), {"ended_s": 1150.0, "verdict": {"outcome": "failure", "code": 7}})
    found = look(run, 9000.0)
    assert found.word == "ended"
    assert "failure, exit code 7; `slaunch report 12.0` tells more" in as_text(found)


@pytest.mark.parametrize("state_of", [None, state(now_s=900.0)])
def test_files_of_a_former_run_do_not_count(tmp_path: Path, state_of: dict[str, Any] | None) -> None:
    """A job that was requeued has not written anything yet."""
    run = run_in(tmp_path, state_of, {"ended_s": 990.0, "verdict": {"outcome": "success", "code": 0}})
    found = look(run, 1010.0)
    assert found.word == "unknown"
    assert as_text(found).splitlines()[0] == "job 12.0: nothing is known of its workers (yet)"


def test_files_of_another_run_in_the_same_folder_do_not_count(tmp_path: Path) -> None:
    run = replace(run_in(tmp_path, state(id="13.0"), {"ended_s": 2000.0, "job": "13.0"}), host="n1")
    assert look(run, 1103.0).word == "unknown"
    assert look(replace(run, id="13.0"), 1103.0).word == "ended"


def test_files_that_are_no_json_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("{")
    (tmp_path / "report.json").write_text("[]")
    assert look(run_in(tmp_path), 1010.0).word == "unknown"


def test_for_programs(tmp_path: Path) -> None:
    found = json.loads(as_json(look(run_in(tmp_path, state()), 1103.0)))
    assert (found["state"], found["run"]["id"], found["age_s"], found["report"]) == ("running", "12.0", 3.0, None)
    assert found["status"]["nodes"][0]["workers"][0]["cpus"] == 3.95


def test_many_workers(tmp_path: Path) -> None:
    text = as_text(look(run_in(tmp_path, state()), 1103.0), most=1)
    assert text.splitlines()[-1] == "… and 1 more worker"
