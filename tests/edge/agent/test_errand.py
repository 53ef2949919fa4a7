"""Work that a child process does for the agent's loop."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Any

from slaunch.agent.errand import Errand

from .job import wait_for


def until_told(work: Callable[[], object], limit_s: float = 20.0) -> tuple[list[Any], set[int]]:
    told: list[Any] = []
    spared: set[int] = set()
    with selectors.DefaultSelector() as selector:
        errand = Errand(work, told.append, limit_s, selector, spared)
        give_up = time.monotonic() + 30
        while not errand.over and time.monotonic() < give_up:
            for key, _ in selector.select(0.05):
                key.data()
            errand.tick(time.monotonic())
        for pid in list(spared):  # as the agent does with every orphan
            os.waitpid(pid, 0)
    return told, spared


def hang() -> None:
    signal.pause()


def fail() -> None:
    raise ValueError


def test_it_tells_what_the_work_returned_however_long() -> None:
    text = "x" * 1_000_000
    assert until_told(lambda: {"faults": [text], "doubts": []})[0] == [{"faults": [text], "doubts": []}]


def test_work_that_fails_or_dies_tells_none() -> None:
    assert until_told(fail)[0] == [None]
    assert until_told(lambda: os.kill(os.getpid(), signal.SIGKILL))[0] == [None]


def test_work_that_hangs_is_given_up() -> None:
    assert until_told(hang, 0.2)[0] == [None]


def test_the_loop_of_an_agent_that_ends_waits_for_it_no_longer_than_it_may_take() -> None:
    told: list[Any] = []
    with selectors.DefaultSelector() as selector:
        for work, limit_s in ((lambda: "done", 20.0), (hang, 0.2)):
            Errand(work, told.append, limit_s, selector, set()).finish()
    assert told == ["done", None]
    wait_for(no_child, "the children have been reaped")


def no_child() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def test_closing_tells_nobody() -> None:
    told: list[Any] = []
    spared: set[int] = set()
    with selectors.DefaultSelector() as selector:
        errand = Errand(hang, told.append, 20.0, selector, spared)
        errand.close()
        errand.close()
    for pid in spared:
        os.waitpid(pid, 0)
    assert told == []
