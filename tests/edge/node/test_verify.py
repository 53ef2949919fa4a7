"""The places of real processes against the plan."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from slaunch.node.verify import Placed, deviations, mask_of

MOVE = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print('there', flush=True); sys.stdin.read()"
BIND = "from slaunch.node.mempolicy import set_policy; set_policy('bind', (0,)); print('there', flush=True); input()"


@pytest.fixture
def start():
    """Starts a program that says when it is there, and stays."""
    running = []

    def begin(*argv):
        running.append(subprocess.Popen([sys.executable, "-c", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert running[-1].stdout.readline() == b"there\n"
        return running[-1].pid

    yield begin
    for process in running:
        process.communicate(b"\n", timeout=30)


def test_p40_a_worker_that_moved_is_told(start):
    own = tuple(sorted(os.sched_getaffinity(0)))
    moved = start(MOVE, str(own[-1]))
    assert mask_of(moved) == own[-1:]
    found = deviations([Placed(0, os.getpid(), own), Placed(1, moved, own[:1]), Placed(2, moved, own[-1:]), Placed(3, moved, ())])
    assert list(found) == [1]
    assert found[1].startswith(f"rank 1 (process {moved}) runs on CPUs {own[-1]} instead of {own[0]}")


def test_p43_a_worker_with_another_memory_policy_is_told(start):
    bound = start(BIND)
    plan = [Placed(0, bound, (), (0,), "bind"), Placed(1, bound, (), (0,), "preferred"), Placed(2, bound, ())]
    found = deviations(plan)
    assert list(found) == [1]
    assert "by the policy bind:0 instead of prefer:0" in found[1]


def test_a_worker_that_has_ended_is_passed_over(tmp_path):
    assert mask_of(1, str(tmp_path)) == ()
    assert deviations([Placed(0, 1, (0,), (0,), "bind")], str(tmp_path)) == {}
