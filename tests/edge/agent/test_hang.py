"""Jobs that hang or run too long, with real workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from .job import Job, python, shell

SPIN = "while True: pass"
SLEEP = "import time; time.sleep(600)"
"""A worker that waits for the others in a collective sleeps; the odd one computes on and on."""
FAST = {"hang_timeout_s": 2.0}


def test_a_hang_is_noticed_and_the_odd_rank_named_with_its_stack(tmp_path: Path) -> None:
    odd = "def lost_in_here():\n    while True: pass\nlost_in_here()"
    with Job(tmp_path, [[python(SLEEP), python(SLEEP)], [python(SLEEP), python(odd)]], options=FAST) as job:
        assert job.wait() == [76, 76]
        verdict = job.report()["verdict"]
        assert verdict["outcome"] == "hang"
        assert [look["rank"] for look in verdict["hung"]] == [3]
        text = job.text("err.0")
        assert "hang: no worker has printed anything for 2" in text
        assert "rank 3 on n1" in text and "running" in text
        assert "last lines of rank 3" in text
        assert "in lost_in_here" in text


def test_a_stopped_worker_is_the_odd_one(tmp_path: Path) -> None:
    stopped = f"import os, signal, time; os.kill(os.getpid(), {signal.SIGSTOP:d}); time.sleep(600)"
    with Job(tmp_path, [[python(SLEEP), python(stopped), python(SLEEP)]], options={**FAST, "grace_s": 1.0}) as job:
        assert job.wait() == [76]
        assert "rank 1 on n0" in job.text("err.0") and "stopped by a signal" in job.text("err.0")


def test_one_worker_that_prints_keeps_the_job_alive(tmp_path: Path) -> None:
    talker = "import time\nfor i in range(9): print(i, flush=True); time.sleep(0.5)"
    silent = f"import os, time\nwhile not os.path.exists('{tmp_path}/end'): time.sleep(0.1)"
    with Job(tmp_path, [[python(silent)], [python(talker + f"\nopen('{tmp_path}/end', 'w').close()")]], options=FAST) as job:
        assert job.wait() == [0, 0]


def test_a_silent_node_does_no_harm_while_another_one_talks_and_counts_again_later(tmp_path: Path) -> None:
    """Node 1 falls silent first, node 0 a few seconds later: then it is a hang."""
    talker = "import time\nfor i in range(8): print(i, flush=True); time.sleep(0.5)\ntime.sleep(600)"
    with Job(tmp_path, [[python(talker)], [python(SLEEP)]], options=FAST) as job:
        assert job.wait() == [76, 76]
        assert job.log(0).startswith("".join(f"{i}\n" for i in range(8)))


def test_a_hang_leaves_no_core_files(tmp_path: Path) -> None:
    wrap = ["/bin/sh", "-c", 'ulimit -c unlimited; cd "$0"; exec "$@"', str(tmp_path)]
    with Job(tmp_path, [[python(SPIN)]], options=FAST, wrap=wrap) as job:
        assert job.wait() == [76]
    assert not [name for name in os.listdir(tmp_path) if name.startswith("core")]


def test_the_time_limit_ends_the_job(tmp_path: Path) -> None:
    polite = shell("trap 'echo saved; exit 0' TERM; while :; do sleep 0.1; done")
    with Job(tmp_path, [[polite], [polite]], options={"time_limit_s": 2.0}) as job:
        assert job.wait() == [124, 124]
        assert "the job has reached its --time-limit (exit code 124)" in job.text("err.0")
        assert "saved" in job.log(0) and "saved" in job.log(1)


def test_a_job_that_ends_in_time_does_not_feel_the_limit(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("exit 0")]], options={"time_limit_s": 30.0}) as job:
        assert job.wait() == [0]
