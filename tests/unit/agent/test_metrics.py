"""The state of a job, for `slaunch status` and for Prometheus."""

from __future__ import annotations

import re

from slaunch.agent.board import Board, Heard
from slaunch.agent.metrics import render
from slaunch.agent.seen import Sight

SAMPLE = re.compile(r'^[a-z_]+\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\} -?[0-9.e+]+$')


def board() -> Board:
    made = Board('my "job"\\', "12.0", lambda: ("n1", "n2"), 3, 5.0, 1000.0)
    made.hear(0, Heard(10.0, 0, (Sight(0, 0, "worker", 77, "running", 1.5, 3 << 30, 0, -1, -1, 100, -1, 2.0, "step 1"),)))
    return made


def test_a_state_has_all_nodes_and_how_long_each_is_silent() -> None:
    state = board().state(12.5, 0, 60.0)
    assert (state["state"], state["left_s"], state["world"], state["id"]) == ("running", 60.0, 3, "12.0")
    assert [(node["host"], node["heard_s"], len(node["workers"])) for node in state["nodes"]] == [("n1", 2.5, 1), ("n2", None, 0)]
    assert state["nodes"][0]["workers"][0]["last"] == "step 1"


def test_what_was_seen_in_an_earlier_attempt_does_not_count() -> None:
    assert board().state(12.5, 1, None)["nodes"][0]["workers"] == []


def test_how_it_ended() -> None:
    state = board().state(12.5, 0, None, outcome="failure", code=3)
    assert (state["state"], state["outcome"], state["code"]) == ("ended", "failure", 3)
    assert 'slaunch_up{job="my \\"job\\"\\\\"} 0' in render(state)


def test_figures_have_the_form_that_prometheus_reads() -> None:
    text = render(board().state(12.5, 2, 60.5))
    lines = text.splitlines()
    for line in lines:
        assert line.startswith(("# HELP slaunch_", "# TYPE slaunch_")) or SAMPLE.match(line), line
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)), "a family stands in one place"
    assert text.endswith("\n")


def test_figures_of_workers_leave_out_what_is_not_known() -> None:
    text = render(board().state(12.5, 0, None))
    assert 'slaunch_worker_memory_bytes{job="my \\"job\\"\\\\",node="0",host="n1",rank="0"} 3221225472' in text
    assert "lines_total" not in text
    assert "device_memory" not in text
    assert "time_left" not in text
    assert 'state="running"} 1' in text
