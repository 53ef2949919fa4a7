"""Looks that hang, crash, print or leave children, and the real ones on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Any

import pytest

from slaunch.doctor.bounded import run_all
from slaunch.doctor.checks import CHECKS, storage
from slaunch.doctor.looks import look_at_all
from slaunch.doctor.values import Outcome, Request

LONG_S = 60.0


def hang() -> dict[str, Any]:
    time.sleep(600)
    return {}


def hang_deafly() -> dict[str, Any]:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    return hang()


def crash() -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def leave() -> dict[str, Any]:
    os._exit(3)


def fail() -> dict[str, Any]:
    raise ValueError("no such thing")


def chatter() -> dict[str, Any]:
    os.write(1, b"noise")
    subprocess.run(["echo", "more noise"], check=True)
    return {"big": "x" * 300_000, "input": os.read(0, 9).decode()}


def test_each_look_ends_in_its_own_way() -> None:
    looks = {
        "chatter": (chatter, LONG_S),
        "hang": (hang, 0.3),
        "deaf": (hang_deafly, 0.3),
        "crash": (crash, LONG_S),
        "leave": (leave, LONG_S),
        "fail": (fail, LONG_S),
    }
    found = run_all(looks)
    assert list(found) == list(looks)
    assert found["chatter"].facts == {"big": "x" * 300_000, "input": ""} and not found["chatter"].fault
    faults = {name: outcome.fault for name, outcome in found.items() if name != "chatter"}
    assert faults == {
        "hang": "it did not end within 0.3 s",
        "deaf": "it did not end within 0.3 s",
        "crash": f"it was ended by signal {int(signal.SIGKILL)}",
        "leave": "it ended without a word",
        "fail": "ValueError: no such thing",
    }


@pytest.mark.parametrize("width", [1, 2, 8])
def test_more_looks_than_may_run_at_once(width: int) -> None:
    found = run_all({f"look {number}": ((lambda number=number: {"n": number}), LONG_S) for number in range(5)}, width)
    assert [outcome.facts["n"] for outcome in found.values()] == list(range(5))


def test_what_a_late_look_has_started_ends_with_it(tmp_path: Any) -> None:
    note = tmp_path / "pid"

    def start_and_hang() -> dict[str, Any]:
        child = subprocess.Popen(["sleep", "600"])
        note.write_text(str(child.pid))
        return hang()

    assert run_all({"look": (start_and_hang, 1.0)})["look"].fault
    if note.exists():  # else the look was ended before it came to start anything
        until = time.monotonic() + 30
        while os.path.exists(f"/proc/{note.read_text()}") and time.monotonic() < until:
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{note.read_text()}")


def test_all_checks_of_this_machine(tmp_path: Any) -> None:
    (tmp_path / "train.py").write_text("print()\n")
    request = Request(scratch=(str(tmp_path),), program=str(tmp_path / "train.py"))
    found = look_at_all(request, dict(os.environ))
    assert set(found) == {check.name for check in CHECKS}
    assert {name: outcome.fault for name, outcome in found.items() if outcome.fault} == {}
    for check in CHECKS:
        check.judge(found[check.name].facts, {"config": {}, "job": "1", "jobs": []})
        assert len({trait.label for trait in check.traits(found[check.name].facts)}) == len(check.traits(found[check.name].facts))
    assert found["scratch"].facts["folders"][-1]["path"] == str(tmp_path)
    assert os.listdir(tmp_path) == ["train.py"]  # nothing is left of the attempt to write


def test_a_quick_look_leaves_out_what_takes_seconds() -> None:
    found = look_at_all(Request(quick=True), {"PATH": os.environ["PATH"]})
    assert {check.name for check in CHECKS} - set(found) == {"imports", "containers"}
    assert found["mpi"].facts["loaded"] == "" and found["script"] == Outcome({}, "", found["script"].took_s)


def test_a_folder_that_may_not_be_written_to(tmp_path: Any) -> None:
    assert storage.try_to_write(str(tmp_path)) == ""
    assert storage.try_to_write("/proc") != ""
