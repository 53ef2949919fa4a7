"""Searches that end early, or are looked at while they run, and go on where they were."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .searches import SIZES, TUNED, command, history, journal, tune


def test_f185_f256_f257_f328_w53_a_search_goes_on_where_it_was(tmp_path: Path) -> None:
    keys = {**SIZES, "task_limit": 2, "run_best": False}
    tune(tmp_path, keys)
    done = tune(tmp_path, {**keys, "task_limit": 4})
    assert done.stderr.count("from journal") == 2
    assert [event["number"] for event in journal(tmp_path, "start")] == [1, 2, 3, 4]
    again = tune(tmp_path, {**keys, "task_limit": 4}, TUNED, "--steps", "5")
    assert "from journal" not in again.stderr
    assert [event["number"] for event in journal(tmp_path, "start")][4:] == [5, 6, 7, 8]
    fresh = tune(tmp_path, {**keys, "task_limit": 4, "resume": "never"})
    assert "from journal" not in fresh.stderr
    (tmp_path / "other").mkdir()
    warm = tune(tmp_path / "other", {**keys, "task_limit": 4, "resume_csv_file_path": str(tmp_path / "tuner_history.csv")})
    assert warm.stderr.count(f"from {tmp_path}/tuner_history.csv") == 4
    assert journal(tmp_path / "other", "start") == []
    assert (tmp_path / "other" / "tuner_history_copy.csv").read_text() == (tmp_path / "tuner_history.csv").read_text()


def test_f326_a_search_that_is_asked_to_stop_keeps_what_it_has(tmp_path: Path) -> None:
    words = command(tmp_path, SIZES, [TUNED, "--when", "micro_batch_size=4:hang"], 2)
    tuner = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("Job3_*/workerlog.0")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        tuner.send_signal(signal.SIGTERM)
        _, said = tuner.communicate(timeout=60)
    finally:
        tuner.kill()
        tuner.wait()
    assert tuner.returncode == 128 + signal.SIGTERM, said
    assert "asked to stop by SIGTERM" in said
    assert [event["status"] for event in journal(tmp_path, "trial")] == ["ok", "ok", "cancelled"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", ["study", "start1", "trial1", "start2", "trial2", "end"])
def test_w58_a_killed_search_loses_no_trial_and_runs_none_twice(tmp_path: Path, when: str, point: str) -> None:
    """Killed at any write of the journal and started again, it ends with every setting tried once."""
    keys = {**SIZES, "micro_batch_size": [1, 2], "run_best": False}
    tune(tmp_path, keys, code=-signal.SIGKILL, SLAUNCH_FAILPOINTS=f"tune.{when}.{point}=kill")
    done = tune(tmp_path, keys)
    assert [event["setting"]["micro_batch_size"] for event in journal(tmp_path, "trial")] == [1, 2]
    assert len(history(tmp_path)) == 2
    known = {"study": 0, "start1": 0, "trial1": int(when == "after"), "start2": 1, "trial2": 1 + int(when == "after"), "end": 2}
    assert done.stderr.count("from journal") == known[point]


def test_a_person_who_looks_on_gets_a_table(tmp_path: Path) -> None:
    words = command(tmp_path, {**SIZES, "run_best": False}, [TUNED, "--when", "micro_batch_size=8:oom"], 2)
    screen, terminal = os.openpty()
    try:
        tuner = subprocess.Popen(words, cwd=tmp_path, stderr=terminal, env={**os.environ, "COLUMNS": "200", "TERM": "xterm"})
        os.close(terminal)
        said = b""
        try:
            while part := os.read(screen, 65536):
                said += part
        except OSError:  # the terminal's other end is closed: the tuner has ended
            pass
        assert tuner.wait(timeout=60) == 0
    finally:
        os.close(screen)
    tables = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", said.decode()).split("the best of ")
    rows = [[re.sub(r"\s+", "", line).split("│")[1:3] for line in text.splitlines() if "│" in line] for text in tables]
    assert rows[-1] == [["3", "833.343"], ["2", "714.296"], ["1", "666.677"], ["4", "oom"]]
    assert [["2", "atwork"], ["1", "666.677"]] in rows, "it is renewed while the search goes on"
    assert "3/4 settings done" in said.decode()
