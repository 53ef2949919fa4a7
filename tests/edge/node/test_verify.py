"""The masks of real processes against the plan."""

from __future__ import annotations

import os
import subprocess
import sys

from slaunch.node.verify import deviations, mask_of

WAIT = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print('there', flush=True); sys.stdin.read()"


def test_p40_a_worker_that_moved_is_told():
    own = tuple(sorted(os.sched_getaffinity(0)))
    with subprocess.Popen([sys.executable, "-c", WAIT, str(own[-1])], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as moved:
        assert moved.stdout.readline() == b"there\n"
        assert mask_of(moved.pid) == own[-1:]
        plan = [(0, os.getpid(), own), (1, moved.pid, own[:1]), (2, moved.pid, own[-1:]), (3, moved.pid, ())]
        told = deviations(plan)
        moved.stdin.close()
        moved.wait(timeout=30)
    assert len(told) == 1
    assert told[0].startswith(f"rank 1 (process {moved.pid}) runs on CPUs {own[-1]} instead of {own[0]}")


def test_a_worker_that_has_ended_is_passed_over(tmp_path):
    assert mask_of(1, str(tmp_path)) == ()
    assert deviations([(0, 1, (0,))], str(tmp_path)) == ()
