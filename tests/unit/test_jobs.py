"""Runs are found by their job's id."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from slaunch import jobs
from slaunch.frozen import replace
from slaunch.jobs import Run, find, remember


def env(place: Path) -> dict[str, str]:
    return {jobs.FOLDER_VARIABLE: str(place / "state")}


def noted(place: Path, *runs: Run) -> None:
    for run in runs:
        assert remember(run, env(place)) == ""


def ids(place: Path, wanted: str) -> list[str]:
    return [run.id for run in find(wanted, env(place), str(place))]


def test_a_run_is_found_with_all_that_was_written_down(tmp_path: Path) -> None:
    run = Run("123.0", "/scratch/logs", "123.0", "alpha", "n1", 812, 5.0, 2, 4, 16)
    noted(tmp_path, run)
    assert find("123", env(tmp_path), str(tmp_path)) == (run,)
    assert (run.job, run.report, run.journal, run.status) == (
        "123",
        "/scratch/logs/report.json",
        "/scratch/logs/agent.0.jsonl",
        "/scratch/logs/status.json",
    )


def test_only_its_user_may_read_it(tmp_path: Path) -> None:
    noted(tmp_path, Run("7.0", "/logs"))
    place = tmp_path / "state" / "jobs"
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
    assert [stat.S_IMODE(os.stat(place / name).st_mode) for name in os.listdir(place)] == [0o600]


def test_steps_arrays_and_names(tmp_path: Path) -> None:
    noted(tmp_path, Run("12.1", "/b", started_s=2), Run("12.0", "/a", started_s=1), Run("123.0", "/c", started_s=3))
    noted(tmp_path, Run("41_7.0", "/d", started_s=4), Run("41_8.0", "/e", started_s=5), Run("9.0", "/f", "my run/3", started_s=6))
    assert ids(tmp_path, "12") == ["12.0", "12.1"]
    assert ids(tmp_path, "12.1") == ["12.1"]
    assert ids(tmp_path, "41") == ["41_7.0", "41_8.0"]
    assert ids(tmp_path, "41_7") == ["41_7.0"]
    assert ids(tmp_path, "my run/3") == ["9.0"]
    assert ids(tmp_path, "4") == []
    assert len(ids(tmp_path, "")) == 6


def test_a_requeued_job_is_the_same_run_and_another_clusters_is_not(tmp_path: Path) -> None:
    first = Run("5.0", "/logs", cluster="alpha", started_s=1)
    noted(tmp_path, first, replace(first, started_s=9, restarts=1), replace(first, cluster="beta", started_s=3))
    assert [(run.cluster, run.restarts) for run in find("5", env(tmp_path), "/")] == [("beta", 0), ("alpha", 1)]


def test_without_a_home_it_is_found_where_it_was_started(tmp_path: Path) -> None:
    (tmp_path / "slaunch-logs" / "77.0").mkdir(parents=True)
    assert remember(Run("77.0", "/x"), {}) == "no home directory"
    (found,) = find("77", {}, str(tmp_path))
    assert (found.id, found.log_dir, found.host) == ("77.0", str(tmp_path / "slaunch-logs" / "77.0"), "")
    assert find("78", {}, str(tmp_path)) == ()


def test_by_the_directory_of_its_logs(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    assert find(str(logs), env(tmp_path), "/")[0].log_dir == str(logs)
    noted(tmp_path, Run("8.0", str(logs), host="n2", started_s=1))
    assert find(str(logs), env(tmp_path), "/")[0].host == "n2"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    assert "Not a directory" in remember(Run("7.0", "/logs"), env(tmp_path))
    assert find("7", env(tmp_path), "/") == ()


def test_files_of_others_are_left_out_and_fields_of_later_versions_ignored(tmp_path: Path) -> None:
    noted(tmp_path, Run("1.0", "/logs"))
    place = tmp_path / "state" / "jobs"
    (place / "broken.json").write_text("{")
    (place / "list.json").write_text("[]")
    (place / "2.0.json").write_text('{"id": "2.0", "log_dir": "/x", "of_tomorrow": 1}')
    assert sorted(ids(tmp_path, "")) == ["1.0", "2.0"]


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    place = tmp_path / "state" / "jobs"
    place.mkdir(parents=True)
    for number in range(jobs.KEPT + jobs.SURPLUS - 1):
        (place / f"{number}.0.json").write_text("{}")
        os.utime(place / f"{number}.0.json", (number, number))
    noted(tmp_path, Run("new", "/logs"))
    assert len(os.listdir(place)) == jobs.KEPT + jobs.SURPLUS
    noted(tmp_path, Run("newer", "/logs"))
    left = os.listdir(place)
    assert len(left) == jobs.KEPT
    assert {"new.json", "newer.json", f"{jobs.SURPLUS + 1}.0.json"} <= {*left}
    assert f"{jobs.SURPLUS}.0.json" not in left
