"""What is left when the agent itself is killed: the guardian's work."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from .job import FOREVER, Job, shell, state_of, wait_for


def test_w27_kill_9_of_the_agent_leaves_nothing(tmp_path: Path) -> None:
    family = f"""
        setsid sh -c 'trap "" TERM; echo $$ > {tmp_path}/session; sleep 600' &
        trap '' TERM; touch {tmp_path}/up; exec sleep 600 & wait; sleep 600
    """
    with Job(tmp_path, [[shell(family), FOREVER]]) as job:
        job.started("up", "session")
        wait_for(lambda: (tmp_path / "session").read_text(), "the session's pid")
        pid = int((tmp_path / "session").read_text())
        job.agents[0].kill()
        assert job.wait() == [-9]
        job.nothing_left()
        assert state_of(pid) == ""


def test_f312_the_guardian_harms_no_stranger(tmp_path: Path) -> None:
    """A process with another agent's mark, or none, lives on."""
    strangers = [
        subprocess.Popen(["sleep", "600"], env={"SLAUNCH_MARK": "another.1234"}),
        subprocess.Popen(["sleep", "600"], env={}),
    ]
    try:
        with Job(tmp_path, [[shell(f"touch {tmp_path}/up; exec sleep 600")]]) as job:
            job.started("up")
            job.agents[0].kill()
            job.wait()
            job.nothing_left()
        assert [stranger.poll() for stranger in strangers] == [None, None]
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()


def test_a_killed_guardian_does_not_matter(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(f"touch {tmp_path}/up; while ! [ -e {tmp_path}/go ]; do sleep 0.02; done; exit 4")]]) as job:
        job.started("up")
        os.kill(guardian(job.agents[0].pid), signal.SIGKILL)
        (tmp_path / "go").touch()
        assert job.wait() == [4]


def test_the_guardian_ignores_what_a_scheduler_sends_to_all(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(f"touch {tmp_path}/up; exec sleep 600")]]) as job:
        job.started("up")
        pid = guardian(job.agents[0].pid)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT):
            os.kill(pid, number)
        job.agents[0].kill()
        job.wait()
        job.nothing_left()


def guardian(agent: int) -> int:
    """The guardian's process id."""
    with open(f"/proc/{agent}/task/{agent}/children") as file:
        for pid in map(int, file.read().split()):
            with open(f"/proc/{pid}/comm") as comm:
                if comm.read().strip() == "slaunch-guard":
                    return pid
    raise AssertionError("no guardian")


def test_nobody_waits_for_the_guardian(tmp_path: Path) -> None:
    """The guardian holds none of the agent's descriptors: the end of its output is seen as soon as the agent is gone."""
    read, write = os.pipe()
    with Job(tmp_path, [[shell(f"touch {tmp_path}/up; exec sleep 600")]], stdout=write) as job:
        os.close(write)
        job.started("up")
        pid = guardian(job.agents[0].pid)
        held: dict[str, Any] = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        assert sorted(value.split(":")[0] for value in held.values()) == ["/dev/null"] * 3 + ["pipe"]
        job.agents[0].terminate()
        assert job.wait() == [143]
        assert os.read(read, 10) == b""
    os.close(read)
