"""How long each phase of the start took."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from slaunch.agent.journal import Journal
from slaunch.agent.phases import BEGAN, Phases, began, step_s


def entries(phases: Phases, place: Path) -> list[dict[str, object]]:
    journal = Journal(str(place), 0)
    phases.spawned(journal)
    journal.close()
    return [json.loads(line) for line in (place / "agent.0.jsonl").read_text().splitlines()]


def test_each_phase_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    phases = Phases({})
    phases.mark("node")
    found = entries(phases, tmp_path)
    assert [entry["name"] for entry in found] == ["interpreter", "node", "spawn"]
    assert all(entry["kind"] == "phase" for entry in found)
    ends = [float(str(entry["ended_s"])) for entry in found]
    assert ends == sorted(ends)
    assert sum(float(str(entry["took_s"])) for entry in found) == pytest.approx(ends[-1], abs=0.001)


def test_where_a_command_started_the_step_it_comes_first(tmp_path: Path) -> None:
    first = entries(Phases(began({})), tmp_path)[0]
    assert (first["name"], first["ended_s"]) == ("step", 0.0)
    assert float(str(first["took_s"])) < 1.0, "the command was this process itself"


def test_the_first_command_counts_and_no_clock_goes_backwards() -> None:
    assert began({BEGAN: "5.000"}) == {BEGAN: "5.000"}
    assert float(began({})[BEGAN]) <= time.time()
    assert step_s("100.0", 103.5) == 3.5
    assert step_s("100.0", 99.0) == 0.0
    assert step_s("", 99.0) is None
    assert step_s("soon", 99.0) is None
