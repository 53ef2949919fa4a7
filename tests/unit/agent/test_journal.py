"""The agent's own log."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from slaunch.agent.events import SignalWorkers, Tell, WorkerExited
from slaunch.agent.journal import Journal, since_start_s
from slaunch.agent.messages import WorkerFailed
from slaunch.agent.values import Failure

FAILURE = Failure(3, 1, 0, "n0", 77, 9, 0, 1.5, tail=("a\nb", "caf\u00e9"))


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_json_object_a_line_for_the_user_only(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), 2)
    journal.note("begin", job="7.0")
    journal.value("event", WorkerExited(3, FAILURE))
    journal.value("action", Tell(0, WorkerFailed(FAILURE)))
    journal.value("action", SignalWorkers(15))
    journal.close()
    path = tmp_path / "agent.2.jsonl"
    begin, event, action, signal = lines(path)
    assert (begin["kind"], begin["job"]) == ("begin", "7.0")
    assert (event["what"], event["rank"]) == ("WorkerExited", 3)
    assert (action["what"], action["says"], action["to"]) == ("Tell", "WorkerFailed", 0)
    assert (signal["what"], signal["number"]) == ("SignalWorkers", 15)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_later_runs_append(tmp_path: Path) -> None:
    for run in range(2):
        journal = Journal(str(tmp_path), 0)
        journal.note("begin", run=run)
        journal.close()
    assert [line["run"] for line in lines(tmp_path / "agent.0.jsonl")] == [0, 1]


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "gone"), 0)
    for _ in range(3):
        journal.note("x")
        journal.flush()
    journal.close()
    assert os.listdir(tmp_path) == []


def test_no_directory_no_file() -> None:
    journal = Journal("", 0)
    journal.note("x")
    journal.close()


def test_time_since_the_start_of_this_process() -> None:
    assert 0.0 < since_start_s() < 100_000
