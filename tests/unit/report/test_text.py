"""The closing block."""

from __future__ import annotations

import json
from dataclasses import replace

from slaunch.agent.values import Ended, Failure, Lost, Peak, RunReport, Stopped, Stuck, Verdict
from slaunch.errors import DeviceError
from slaunch.node.values import Problem
from slaunch.report.errors import render_error
from slaunch.report.json import render_json
from slaunch.report.text import OTHERS_SHOWN, render

FIRST = Failure(
    5, 1, 2, "n2", 4242, 1, 0, 1_700_000_012.5, "error", "ValueError: bad", "/logs/workerlog.5", ("Traceback", "ValueError: bad")
)


def report(verdict: Verdict, **fields: object) -> RunReport:
    made = RunReport(verdict, verdict.code, True, "7.0", 0, 8, 4, "/logs", 1_700_000_000.0, 1_700_000_013.0)
    return replace(made, **fields)  # type: ignore[arg-type]


def test_success_is_one_line_or_nothing() -> None:
    good = report(Verdict("success", 0, ended=8))
    assert render(good) == "slaunch: 8 workers on 4 nodes ended well after 13.0 s; logs in /logs"
    assert render(good, quiet=True) == ""


def test_w10_who_held_the_most_memory() -> None:
    peaks = (Peak(0, "n1", 12 << 30, 1 << 30), Peak(1, "n1", 300 << 20, 20 << 30), Peak(2, "n2", 0))
    good = report(Verdict("success", 0, ended=8), peaks=peaks)
    line = "devices at most 20.0 GiB (rank 1 on n1), hosts at most 12.0 GiB (rank 0 on n1)"
    assert render(good).split("\n")[1:] == [f"  memory: {line}"]
    assert f"  memory: {line}" in render(report(Verdict("failure", 1, FIRST), peaks=peaks)).split("\n")
    assert render(report(Verdict("success", 0), peaks=peaks[1:2])).endswith("hosts at most 300 MiB (rank 1 on n1)")
    assert "memory" not in render(report(Verdict("success", 0), peaks=peaks[2:]))
    shown = json.loads(render_json(good))["peaks"][1]
    assert shown == {"rank": 1, "host": "n1", "host_bytes": 300 << 20, "device_bytes": 20 << 30}


def test_f118_p94_a_failed_worker() -> None:
    text = render(report(Verdict("failure", 1, FIRST)))
    head, *rest = text.split("\n")
    assert head == "slaunch: rank 5 on n2 failed with exit code 1"
    assert "  first:  rank 5 (local rank 1, pid 4242) on n2 (node 2): exit code 1" in rest
    assert any(line.startswith("  when:") and "12.5 s after the start" in line for line in rest)
    assert "  cause:  ValueError: bad" in rest
    assert "  logs:   /logs" in rest
    assert rest[-3:] == ["  last lines of rank 5, from /logs/workerlog.5:", "    | Traceback", "    | ValueError: bad"]


def test_p22_a_port_that_another_process_took() -> None:
    """Torch's words for its store, and those of a Python socket; a mere failure gets no such advice."""
    torch = "torch.distributed.DistNetworkError: The server socket has failed to listen. port: 29500, EADDRINUSE"
    for first in (replace(FIRST, detail=torch), replace(FIRST, tail=("OSError: [Errno 98] Address already in use",))):
        assert "  do:     another process holds that port" in render(report(Verdict("failure", 1, first)))
    assert "holds that port" not in render(report(Verdict("failure", 1, FIRST)))


def test_death_by_signal_has_its_name() -> None:
    text = render(report(Verdict("failure", 139, replace(FIRST, code=139, signal=11))))
    assert text.startswith("slaunch: rank 5 on n2 was killed by SIGSEGV (exit code 139)\n")


def test_p95_a_victim_is_called_one() -> None:
    assert "may be the one to look at" in render(report(Verdict("failure", 1, replace(FIRST, cause="peer"))))
    assert "may be the one to look at" not in render(report(Verdict("failure", 1, FIRST)))


def test_p95_a_culprit_that_the_stop_overtook() -> None:
    text = render(report(Verdict("failure", 9, replace(FIRST, code=143, signal=15, told=True))))
    assert text.startswith("slaunch: rank 5 on n2 failed: ValueError: bad (exit code 9)\n")
    assert "already failing when slaunch told it to stop" in text


def test_a_server_is_called_one() -> None:
    assert "rank 5 (server) on n2 failed with" in render(report(Verdict("failure", 1, replace(FIRST, role="server"))))


def test_others_are_few_lines_however_many() -> None:
    others = tuple(replace(FIRST, rank=10 + i) for i in range(16))
    text = render(report(Verdict("failure", 1, FIRST, others, failed=1001)))
    assert "rank 10 on n2: exit code 1" in text
    assert f"{1000 - OTHERS_SHOWN} more workers failed by themselves" in text
    assert text.count("\n") < 25
    assert "failed by themselves" not in render(report(Verdict("failure", 1, FIRST, others[:2], failed=3)))


def test_many_lost_agents_are_counted() -> None:
    lost = tuple(Lost(i, f"n{i}", "silent for 6.0 s", 1_700_000_012.0) for i in range(64))
    text = render(report(Verdict("lost", 75, lost=lost, gone=9000)))
    assert "node 4 (n4) and 8995 more: silent for 6.0 s" in text
    assert text.count("\n") < 10


def test_stopped_by_a_signal() -> None:
    stopped = Stopped(15, 1, "n1", "pid 812 (slurmstepd) of user 0", 1_700_000_010.0)
    text = render(report(Verdict("signal", 143, stopped=stopped)))
    assert text.startswith("slaunch: stopped by SIGTERM (exit code 143)\n")
    assert "arrived on n1" in text and "sent by pid 812 (slurmstepd) of user 0" in text


def test_a_lost_agent() -> None:
    lost = (Lost(2, "n2", "silent for 6.0 s", 1_700_000_012.0), Lost(3, "n3", "silent for 6.1 s", 1_700_000_012.1))
    text = render(report(Verdict("lost", 75, lost=lost)))
    assert text.startswith("slaunch: lost the agent on node 2 (n2), node 3 (n3): silent for 6.0 s (exit code 75)\n")


def test_a_node_that_cannot_start() -> None:
    problem = Problem(73, "write the workers' output", "/logs: No space left on device", "choose another place with --log_dir")
    text = render(report(Verdict("start", 73, problem=problem, problem_host="n2")))
    assert text.split("\n")[:3] == [
        "slaunch: cannot write the workers' output on n2 (exit code 73)",
        "  seen:   /logs: No space left on device",
        "  do:     choose another place with --log_dir",
    ]


def test_processes_that_cannot_be_killed_are_named() -> None:
    verdict = Verdict("failure", 1, FIRST, stuck=(Stuck(2, "n2", 99, "python", "D"),))
    assert "process 99 (python, state D) on n2 cannot be killed" in render(report(verdict))


def test_colour_only_when_asked_for() -> None:
    made = report(Verdict("failure", 1, FIRST))
    assert "\033" not in render(made)
    coloured = render(made, colour=True)
    assert coloured.startswith("\033[31m")
    assert coloured.count("\033[0m") >= 3


def test_json_has_everything() -> None:
    data = json.loads(render_json(report(Verdict("failure", 1, FIRST))))
    assert data["format"] == 1
    assert data["verdict"]["first"]["rank"] == 5
    assert data["code"] == 1


def test_errors_in_three_parts() -> None:
    error = DeviceError("use the devices", "no device 7\nvisible: 0, 1", "take one of those")
    shown = "slaunch: cannot use the devices\n  seen: no device 7\n        visible: 0, 1\n  do:   take one of those"
    assert render_error(error) == shown
    assert render_error(error, colour=True).startswith("\033[31m")


def test_f126_how_each_attempt_ended() -> None:
    earlier = tuple(Ended(n, Verdict("failure", 1, FIRST), 8, 4, 100.0 * n, 100.0 * n + 50) for n in range(12))
    end = replace(Verdict("failure", 1, FIRST), final="no restart: all 12 are used up")
    lines = render(report(end, earlier=earlier, attempt=12)).split("\n")
    assert "  before: 2 more attempts" in lines
    assert "  before: attempt 2, over after 50.0 s: rank 5 on n2 failed with exit code 1 (ValueError: bad)" in lines
    assert "  final:  attempt 12: no restart: all 12 are used up" in lines
    good = render(report(Verdict("success", 0), earlier=earlier[:1], attempt=1)).split("\n")
    assert good[0] == "slaunch: 8 workers on 4 nodes ended well after 13.0 s, at attempt 1; logs in /logs"
    assert good[1].startswith("  before: attempt 0, over after 50.0 s: rank 5")
