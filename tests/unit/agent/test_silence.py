"""Silence of workers, by real files and this very process."""

from __future__ import annotations

import os
from pathlib import Path

from slaunch.agent.silence import Silence, Watched


def worker(folder: Path, rank: int) -> Watched:
    path = folder / f"workerlog.{rank}"
    path.touch()
    return Watched(rank, os.getpid(), str(path))


def test_silent_after_the_whole_time_out(tmp_path: Path) -> None:
    silence, one = Silence(10.0, 2, "n2"), worker(tmp_path, 5)
    assert silence.look([one], 100.0) is None
    assert silence.look([one], 109.9) is None
    looks = silence.look([one], 110.0)
    assert looks is not None
    assert (looks[0].rank, looks[0].node, looks[0].host, looks[0].silent_s) == (5, 2, "n2", 10.0)
    assert looks[0].state in "RS"


def test_one_that_speaks_is_enough(tmp_path: Path) -> None:
    silence, both = Silence(10.0, 0, "n0"), [worker(tmp_path, 0), worker(tmp_path, 1)]
    silence.look(both, 100.0)
    Path(both[1].log).write_text("hello")
    assert silence.look(both, 109.0) is None
    assert silence.look(both, 118.0) is None
    looks = silence.look(both, 119.0)
    assert looks is not None
    assert [look.silent_s for look in looks] == [19.0, 10.0]


def test_the_end_of_a_worker_is_a_sign_of_life(tmp_path: Path) -> None:
    silence, both = Silence(10.0, 0, "n0"), [worker(tmp_path, 0), worker(tmp_path, 1)]
    silence.look(both, 100.0)
    assert silence.look(both[:1], 120.0) is None
    assert silence.look(both[:1], 129.0) is None
    assert silence.look(both[:1], 130.0) is not None


def test_without_workers_to_watch_there_is_nothing_to_wait_for() -> None:
    assert Silence(10.0, 0, "n0").look([], 100.0) == ()


def test_looks_are_a_tenth_of_the_time_out_apart_within_limits() -> None:
    for timeout_s, apart in ((0.5, 0.1), (10.0, 1.0), (3600.0, 10.0)):
        silence = Silence(timeout_s, 0, "n0")
        silence.look([], 100.0)
        assert silence.due == 100.0 + apart
    assert Silence(0.0, 0, "n0").due == float("inf")


def test_a_worker_that_is_gone_is_described_all_the_same(tmp_path: Path) -> None:
    silence = Silence(1.0, 0, "n0")
    gone = Watched(0, 1 << 30, str(tmp_path / "none"))
    silence.look([gone], 100.0)
    looks = silence.look([gone], 102.0)
    assert looks is not None
    assert (looks[0].state, looks[0].wchan, looks[0].cpu) == ("", "", 0.0)
