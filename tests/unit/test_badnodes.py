"""The list of bad nodes: how long each is left alone, and the file that concurrent jobs share."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch import badnodes
from slaunch.agent.blame import Book
from slaunch.badnodes import FIRST_S, FOR_GOOD, MEMORY_S, Fault, add, out, read, until_s
from slaunch.errors import OutputError

NOW = 1_764_000_000.0


def test_p100_the_cooldown_doubles_and_the_fifth_fault_is_for_good() -> None:
    times = [NOW + 100.0 * n for n in range(FOR_GOOD)]
    untils = [until_s(times[: n + 1], NOW + 1000.0) for n in range(FOR_GOOD)]
    assert [until - times[n] for n, until in enumerate(untils[:-1])] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert untils[-1] == inf
    assert until_s((), NOW) == -inf


def test_faults_of_last_week_are_forgotten() -> None:
    times = [NOW - 100.0 * n for n in range(FOR_GOOD)]
    assert until_s(times, NOW + MEMORY_S + 1) == -inf


@given(st.lists(st.floats(0, 10 * MEMORY_S)), st.floats(0, 11 * MEMORY_S))
def test_more_faults_never_shorten_the_time(times: list[float], now: float) -> None:
    assert until_s([*times, now], now) >= until_s(times, now)


def test_the_file_is_what_sbatch_takes(tmp_path: Path) -> None:
    path = str(tmp_path / "bad")
    assert add(path, [Fault(f"n{n}", NOW, "lost", "7") for n in (3, 4, 5, 11)], NOW) == ("n11", "n3", "n4", "n5")
    assert (tmp_path / "bad").read_text() == "n[3-5,11]\n"
    add(path, [Fault("n4", NOW + FIRST_S, "lost again", "8")], NOW + FIRST_S + 1)
    assert (tmp_path / "bad").read_text() == "n4\n", "the others may be used again"
    assert [fault.node for fault in read(path)] == ["n3", "n4", "n5", "n11", "n4"]
    add(path, [], NOW + 9 * MEMORY_S)
    assert (tmp_path / "bad").read_text() == ""


def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    path = str(tmp_path / "bad")
    add(path, [Fault("n3", NOW, "lost")], NOW)
    with open(f"{path}.jsonl", "a") as file:
        file.write('{"node": "n9", "ti\n[1]\n')
    assert [fault.node for fault in read(path)] == ["n3"]


def test_jobs_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "bad")
    code = (
        "import sys; from slaunch.badnodes import Fault, add\n"
        f"for n in range(30): add({path!r}, [Fault(f'{{sys.argv[1]}}x{{n}}', {NOW} + n, 'w' * 5000)], {NOW} + n)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("a", "b", "c")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert {fault.node for fault in read(path)} == {f"{name}x{n}" for name in "abc" for n in range(30)}
    assert out(read(path), NOW + 40) == tuple(sorted(f"{name}x{n}" for name in "abc" for n in range(30)))
    assert (tmp_path / "bad").read_text().count("x[0-29]") == 3


def test_another_job_holds_it_for_a_while(tmp_path: Path) -> None:
    path = str(tmp_path / "bad")
    with open(f"{path}.jsonl", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = threading.Thread(target=add, args=(path, [Fault("n3", NOW, "lost")], NOW))
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        fcntl.flock(file, fcntl.LOCK_UN)
        waiting.join(10)
    assert [fault.node for fault in read(path)] == ["n3"]


def test_another_job_that_never_lets_go_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(badnodes, "LOCK_S", 0.1)
    path = str(tmp_path / "bad")
    with open(f"{path}.jsonl", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OutputError, match="another job holds it"):
            add(path, [Fault("n3", NOW, "lost")], NOW)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"No such file or directory.*missing"):
        add(str(tmp_path / "missing" / "bad"), [Fault("n3", NOW, "lost")], NOW)
    assert read(str(tmp_path / "none")) == ()
    os.mkdir(tmp_path / "folder.jsonl")
    with pytest.raises(OutputError, match="Is a directory"):
        read(str(tmp_path / "folder"))


def test_the_list_has_slurms_names_of_machines_that_have_longer_ones() -> None:
    """`sbatch --exclude` refuses names that are not in Slurm's configuration."""
    book = Book("bad", "7", ("n1", "n2", "x.org"))
    hosts = ("n1", "n2.cluster.org", "x.org", "n3.cluster.org")
    assert [book.name_of(host) for host in hosts] == ["n1", "n2", "x.org", "n3.cluster.org"]
    assert Book("bad", "7").name_of("n1.cluster.org") == "n1.cluster.org"
