"""The report as a file, which two parts of a job that has fallen apart may write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slaunch.agent.values import RunReport, Verdict
from slaunch.report.json import write_json


def report(folder: Path, outcome: str, attempt: int, began: float, ended: float) -> RunReport:
    verdict = Verdict("lost", 75, parted=True) if outcome == "lost" else Verdict("success", 0)
    return RunReport(verdict, verdict.code, True, "7.0", attempt, 8, 4, str(folder), began, ended)


def written(folder: Path) -> tuple[str, int]:
    found = json.loads((folder / "report.json").read_text())
    return found["verdict"]["outcome"], found["attempt"]


def test_a_part_that_was_cut_off_leaves_the_report_of_those_who_went_on(tmp_path: Path) -> None:
    assert write_json(report(tmp_path, "lost", 3, 100.0, 150.0)) == "", "the first to end cannot know whether others go on"
    assert write_json(report(tmp_path, "success", 4, 100.0, 160.0)) == ""
    assert "the report of attempt 4" in write_json(report(tmp_path, "lost", 3, 100.0, 161.0))
    assert written(tmp_path) == ("success", 4)


@pytest.mark.parametrize("there", ["an earlier run of this job", "none", "something else", "[]"])
def test_a_lost_job_is_told(tmp_path: Path, there: str) -> None:
    """The job may have been put back into the queue; then its logs are in the same directory."""
    if there == "an earlier run of this job":
        write_json(report(tmp_path, "success", 4, 10.0, 99.0))
    elif there != "none":
        (tmp_path / "report.json").write_text(there)
    assert write_json(report(tmp_path, "lost", 3, 100.0, 161.0)) == ""
    assert written(tmp_path) == ("lost", 3)
