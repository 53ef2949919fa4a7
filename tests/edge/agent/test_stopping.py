"""How a real agent ends its workers, and what it does with signals."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from .job import FOREVER, Job, python, shell, state_of, wait_for


def test_f322_w27_p96_grandchildren_that_ignore_sigterm_are_killed(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo $$ > {file}; while :; do sleep 600; done"
    family = f"""
        sh -c "{stubborn.format(file=tmp_path / 'child')}" &
        setsid sh -c "{stubborn.format(file=tmp_path / 'session')}" &
        (setsid sh -c "{stubborn.format(file=tmp_path / 'daemon')}" &) &
        wait; sleep 600
    """.replace("$$", "\\$\\$")
    ready = f"while ! [ -s {tmp_path}/child -a -s {tmp_path}/session -a -s {tmp_path}/daemon ]; do sleep 0.02; done; exit 5"
    with Job(tmp_path, [[shell(family), shell(ready)]], options={"grace_s": 1.0}) as job:
        assert job.wait() == [5]
        pids = [int((tmp_path / name).read_text()) for name in ("child", "session", "daemon")]
        assert [state_of(pid) for pid in pids] == ["", "", ""]


def test_p96_a_daemon_without_environment_is_killed_as_well(tmp_path: Path) -> None:
    """Double-forked, in its own session, holding the log: only the agent's place as the nearest subreaper finds it."""
    daemon = f"(env -i setsid sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/daemon; sleep 600' &) ; sleep 600"
    ready = f"while ! [ -s {tmp_path}/daemon ]; do sleep 0.02; done; exit 5"
    with Job(tmp_path, [[shell(daemon), shell(ready)]], options={"grace_s": 1.0}) as job:
        assert job.wait() == [5]
        assert state_of(int((tmp_path / "daemon").read_text())) == ""


def test_p76_what_outlives_a_good_end_is_ended(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(f"setsid sleep 600 & echo $! > {tmp_path}/daemon; exit 0")]], options={"grace_s": 2.0}) as job:
        assert job.wait() == [0]
        assert state_of(int((tmp_path / "daemon").read_text())) == ""


def test_f127_grace_then_kill(tmp_path: Path) -> None:
    stubborn = shell(f"trap '' TERM; touch {tmp_path}/up; while :; do sleep 1; done")
    ready = shell(f"while ! [ -e {tmp_path}/up ]; do sleep 0.02; done; date +%s.%N; exit 2")
    with Job(tmp_path, [[stubborn, ready]], options={"grace_s": 1.5}) as job:
        assert job.wait() == [2]
        took = job.report()["ended_s"] - float(job.log(1))
        assert 1.5 <= took < 10


def test_a_worker_may_use_its_grace(tmp_path: Path) -> None:
    polite = f"trap 'sleep 0.5; echo saved; exit 0' TERM; touch {tmp_path}/up; while :; do sleep 0.05; done"
    ready = f"while ! [ -e {tmp_path}/up ]; do sleep 0.02; done; exit 2"
    with Job(tmp_path, [[shell(polite), shell(ready)]]) as job:
        assert job.wait() == [2]
        assert job.log(0).endswith("saved\n")


def test_w28_32_workers_stop_together(tmp_path: Path) -> None:
    """Each takes half a second to stop: one after the other would be 16 s."""
    slow = f"trap 'sleep 0.5; exit 0' TERM; touch {tmp_path}/up.$RANK; while :; do sleep 0.2; done"
    ready = f"while [ $(ls {tmp_path} | grep -c up) -lt 31 ]; do sleep 0.1; done; date +%s.%N; exit 2"
    with Job(tmp_path, [[shell(slow)] * 31 + [shell(ready)]]) as job:
        assert job.wait(60) == [2]
        assert job.report()["ended_s"] - float(job.log(31)) < 10


# -- signals to the agent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT, signal.SIGQUIT])
def test_f128_a_signal_stops_the_job(tmp_path: Path, number: signal.Signals) -> None:
    with Job(tmp_path, [[shell(f"touch {tmp_path}/up; exec sleep 600"), FOREVER]]) as job:
        job.started("up")
        job.agents[0].send_signal(number)
        assert job.wait() == [128 + number]
        text = job.text("err.0")
        assert f"stopped by {number.name}" in text
        assert f"sent by pid {os.getpid()} " in text


def test_f129_a_second_interrupt_is_faster(tmp_path: Path) -> None:
    stubborn = shell(f"trap '' INT TERM; touch {tmp_path}/up; while :; do sleep 1; done")
    with Job(tmp_path, [[stubborn]], options={"grace_s": 60.0}) as job:
        job.started("up")
        job.agents[0].send_signal(signal.SIGINT)
        time.sleep(0.8)
        job.agents[0].send_signal(signal.SIGINT)
        assert job.wait(20) == [130]


def test_sigint_reaches_the_worker_as_sigint(tmp_path: Path) -> None:
    code = f"""
import time
open({str(tmp_path / 'up')!r}, "w").close()
try: time.sleep(600)
except KeyboardInterrupt: print("interrupted", flush=True)
"""
    with Job(tmp_path, [[python(code)]]) as job:
        job.started("up")
        job.agents[0].send_signal(signal.SIGINT)
        assert job.wait() == [130]
        assert job.log(0) == "interrupted\n"


def test_p80_user_signals_reach_the_workers_and_the_agent_lives(tmp_path: Path) -> None:
    code = f"""
import signal, sys, time
got = []
for n in (signal.SIGUSR1, signal.SIGUSR2): signal.signal(n, lambda n, f: (got.append(n), print("got", int(n), flush=True)))
open({str(tmp_path)!r} + "/up." + __import__("os").environ["RANK"], "w").close()
while len(got) < 2: time.sleep(0.01)
time.sleep(0.2); print(len(got))
"""
    with Job(tmp_path, [[python(code)] * 2]) as job:
        job.started("up.0", "up.1")
        job.agents[0].send_signal(signal.SIGUSR1)
        wait_for(lambda: "got 10" in job.log(0) and "got 10" in job.log(1), "SIGUSR1 in both workers")
        job.agents[0].send_signal(signal.SIGUSR2)
        assert job.wait() == [0]
        assert job.log(0) == job.log(1) == "got 10\ngot 12\n2\n"


def test_sigcont_and_a_stopped_agent_do_no_harm(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(f"touch {tmp_path}/up; while ! [ -e {tmp_path}/go ]; do sleep 0.02; done")]]) as job:
        job.started("up")
        job.agents[0].send_signal(signal.SIGSTOP)
        job.agents[0].send_signal(signal.SIGCONT)
        (tmp_path / "go").touch()
        assert job.wait() == [0]


def test_a_job_under_nohup_survives_a_hangup(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        job = Job(tmp_path, [[shell(f"touch {tmp_path}/up; while ! [ -e {tmp_path}/go ]; do sleep 0.02; done")]])
    finally:
        signal.signal(signal.SIGHUP, before)
    with job:
        job.started("up")
        job.agents[0].send_signal(signal.SIGHUP)
        (tmp_path / "go").touch()
        assert job.wait() == [0]


def test_a_process_that_cannot_be_killed_is_named_and_not_waited_for(tmp_path: Path) -> None:
    """A frozen process is in state D and takes SIGKILL only once it is thawed, like one that waits for a dead file server."""
    group = Path(f"/sys/fs/cgroup/freezer/slaunch-test-{os.getpid()}")
    group.mkdir()
    frozen = shell(f"echo $$ > {group}/cgroup.procs; touch {tmp_path}/up; exec sleep 600")
    try:
        with Job(tmp_path, [[frozen]], options={"grace_s": 0.5}, limits={"node_side.KILL_S": 2.0}) as job:
            job.started("up")
            wait_for(lambda: (group / "cgroup.procs").read_text(), "the worker in the group")
            (group / "freezer.state").write_text("FROZEN")
            job.agents[0].terminate()
            assert job.wait() == [143]
            (stuck,) = job.report()["verdict"]["stuck"]
            assert stuck["state"] == "D"
            assert f"process {stuck['pid']} (" in job.text("err.0")
            assert "cannot be killed" in job.text("err.0")
            (group / "freezer.state").write_text("THAWED")
    finally:
        (group / "freezer.state").write_text("THAWED")
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "an empty group")
        group.rmdir()


def test_p82_a_repeated_sigterm_does_not_cut_the_report_off(tmp_path: Path) -> None:
    """Schedulers signal job and step, several times; here until the agent is gone."""
    with Job(tmp_path, [[shell(f"touch {tmp_path}/up; exec sleep 600")]]) as job:
        job.started("up")
        while job.agents[0].poll() is None:
            job.agents[0].send_signal(signal.SIGTERM)
        assert job.wait() == [143]
        assert "stopped by SIGTERM (exit code 143)" in job.text("err.0")
