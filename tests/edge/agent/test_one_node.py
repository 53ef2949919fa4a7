"""One real agent and its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .job import Job, python, shell, state_of, wait_for

FOREVER = ["sleep", "600"]


def test_success(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("echo one"), shell("echo two")]]) as job:
        assert job.wait() == [0]
        assert (job.log(0), job.log(1)) == ("one\n", "two\n")
        assert job.text("out.0") == "one\n"
        assert job.report()["verdict"]["outcome"] == "success"
        assert "2 workers ended well" in job.text("err.0")


def test_f130_w3_exit_code_is_the_failing_workers_own(tmp_path: Path) -> None:
    with Job(tmp_path, [[FOREVER, shell("sleep 0.3; echo the reason; exit 3"), FOREVER]]) as job:
        assert job.wait() == [3]
        first = job.report()["verdict"]["first"]
        assert (first["rank"], first["code"], first["signal"], first["host"]) == (1, 3, 0, "n0")
        assert first["tail"] == ["the reason"]
        assert job.report()["verdict"]["others"] == []


def test_f118_f143_the_report_shows_the_failed_workers_last_lines(tmp_path: Path) -> None:
    code = "print('before'); raise ValueError('no such thing')"
    with Job(tmp_path, [[FOREVER, python(code)]]) as job:
        assert job.wait() == [1]
        text = job.text("err.0")
        assert "rank 1 on n0 failed with exit code 1" in text
        assert "cause:  ValueError: no such thing" in text
        assert "| before" in text and "Traceback" in text
        assert f"{job.log_dir}/workerlog.1" in text


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM])
def test_f131_death_by_signal(tmp_path: Path, number: signal.Signals) -> None:
    with Job(tmp_path, [[python(f"import os; os.kill(os.getpid(), {number:d})"), FOREVER]]) as job:
        assert job.wait() == [128 + number]
        assert job.report()["verdict"]["first"]["signal"] == number
        assert f"rank 0 on n0 was killed by {number.name}" in job.text("err.0")


def test_a_program_that_is_not_there_is_127_and_one_that_cannot_run_is_126(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    with Job(tmp_path, [[["/no/such/program"]]]) as job:
        assert job.wait() == [127]
        assert "cannot start /no/such/program: not found" in job.text("err.0")
    with Job(tmp_path, [[[str(tmp_path / "data")]]]) as job:
        assert job.wait() == [126]
        assert "Permission denied" in job.text("err.0")


def test_f95_the_worker_gets_a_clean_process(tmp_path: Path) -> None:
    """Own session, default signals, empty input, chosen CPUs, no descriptor but 0, 1, 2."""
    code = """
import json, os, signal, sys
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
ignored = [n for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN and n not in (13, 25)]
with open("/proc/self/status") as f: status = dict(line.split(":", 1) for line in f)
print(json.dumps(dict(sid=os.getsid(0), pid=os.getpid(), stdin=sys.stdin.read(), cpus=sorted(os.sched_getaffinity(0)),
    blocked=len(blocked), sigign=int(status["SigIgn"], 16), fds=sorted(int(f) for f in os.listdir("/proc/self/fd")),
    rank=os.environ["RANK"], dropped="DROP_ME" not in os.environ, kept="PATH" in os.environ)))
"""
    with Job(tmp_path, [[[sys.executable, "-S", "-E", "-c", code]]], cpus=[0]) as job:
        assert job.wait() == [0]
        seen = json.loads(job.log(0))
    assert seen["sid"] == seen["pid"]
    assert (seen["stdin"], seen["cpus"], seen["blocked"], seen["rank"]) == ("", [0], 0, "0")
    assert seen["dropped"] and seen["kept"]
    python_ignores = {signal.SIGPIPE, signal.SIGXFSZ}
    assert seen["sigign"] == sum(1 << (number - 1) for number in python_ignores)
    assert seen["fds"][:3] == [0, 1, 2] and len(seen["fds"]) == 4  # the listing's own


def test_a_worker_finds_sigpipe_at_its_default(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("grep SigIgn /proc/self/status")]]) as job:
        assert job.wait() == [0]
        assert int(job.log(0).split()[1], 16) == 0


# -- stopping


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


def test_simultaneous_failures_in_the_order_of_the_exits(tmp_path: Path) -> None:
    """The agent is stopped while five workers fail one after the other, so it learns of all of them at once."""
    order = [3, 0, 4, 1, 2]
    code = "import os, sys, time\nwhile not os.path.exists('{folder}/go.{rank}'): time.sleep(0.01)\nsys.exit({code})"
    commands = [python(code.format(folder=tmp_path, rank=rank, code=10 + rank)) for rank in range(5)]
    with Job(tmp_path, [commands]) as job:
        wait_for(lambda: len(workers(job.agents[0].pid)) == 5, "five workers")
        pids = {rank: pid for pid, rank in workers(job.agents[0].pid).items()}
        job.agents[0].send_signal(signal.SIGSTOP)
        for rank in order:
            (tmp_path / f"go.{rank}").touch()
            wait_for(lambda rank=rank: state_of(pids[rank]) == "Z", f"end of rank {rank}")  # type: ignore[misc]
        job.agents[0].send_signal(signal.SIGCONT)
        assert job.wait() == [13]
        verdict = job.report()["verdict"]
        assert [verdict["first"]["rank"]] + [other["rank"] for other in verdict["others"]] == order


def workers(agent: int) -> dict[int, int]:
    """Process ids of an agent's workers and their ranks."""
    found = {}
    with open(f"/proc/{agent}/task/{agent}/children") as file:
        for pid in map(int, file.read().split()):
            with open(f"/proc/{pid}/environ", "rb") as environ:
                for entry in environ.read().split(b"\0"):
                    if entry.startswith(b"RANK="):
                        found[pid] = int(entry[5:])
    return found


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


# -- the agent is killed


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


def test_f118_the_exception_that_a_pytorch_program_records(tmp_path: Path) -> None:
    """As torch's `record` writes it; the log ends with something else. An earlier run's file does not count."""
    path = tmp_path / "error.json"
    path.write_text('{"message": "an old story"}')
    record = json.dumps({"message": {"message": "ValueError: from the\nfile", "extraInfo": {"timestamp": "1796042700"}}})
    code = f"""
import os, sys
assert not os.path.exists({str(path)!r})
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file: file.write({record!r})
print("tidying up"); sys.exit(1)
"""
    with Job(tmp_path, [[python(code)]], worker_env={"TORCHELASTIC_ERROR_FILE": str(path)}) as job:
        assert job.wait() == [1]
        assert "cause:  ValueError: from the" in job.text("err.0")


def test_p95_a_culprit_that_takes_its_time_to_end_is_named(tmp_path: Path) -> None:
    """Its traceback is out, its peers have noticed and failed, it still tidies up: then the stop comes."""
    gone = tmp_path / "gone"
    culprit = f"""
import atexit, sys, time
atexit.register(lambda: (sys.stderr.flush(), open({str(gone)!r}, "w").close(), time.sleep(600)))
raise ValueError("the real reason")
"""
    victim = f"""
import os, time
while not os.path.exists({str(gone)!r}): time.sleep(0.01)
raise ConnectionResetError("Connection reset by peer")
"""
    with Job(tmp_path, [[python(victim), python(culprit)]]) as job:
        assert job.wait() == [1]
        assert "rank 1 on n0 failed: ValueError: the real reason (exit code 1)" in job.text("err.0")


# -- limits of the system


def test_no_descriptors_left(tmp_path: Path) -> None:
    """Two descriptors a worker are needed while it starts, one while it runs."""
    wrap = ["/bin/sh", "-c", 'ulimit -n 40; exec "$@"', "sh"]
    with Job(tmp_path, [[FOREVER] * 60], wrap=wrap) as job:
        assert job.wait()[0] in (1, 73)  # whatever needed the first descriptor too many
        text = job.text("err.0")
        assert "slaunch: cannot " in text and " on n0 (exit code " in text
        assert "Too many open files" in text


def test_no_processes_left(tmp_path: Path) -> None:
    """A control group that allows twelve; the agent and its guardian are two of them."""
    group = f"/sys/fs/cgroup/pids/slaunch-test-{os.getpid()}"
    os.mkdir(group)
    try:
        (Path(group) / "pids.max").write_text("12")
        wrap = ["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
        with Job(tmp_path, [[FOREVER] * 30], wrap=wrap) as job:
            assert job.wait() == [1]
            text = job.text("err.0")
            assert "cannot start the workers on n0" in text
            assert "Resource temporarily unavailable on n0 after 10 of 30 workers" in text
    finally:
        wait_for(lambda: not (Path(group) / "cgroup.procs").read_text(), "an empty group")
        os.rmdir(group)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_standard_descriptors_that_are_closed(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """The numbers 0 to 2 must not become those of slaunch's own pipes, which would then get the workers' output."""
    wrap = ["/bin/sh", "-c", f'exec {" ".join(f"{number}>&-" for number in closed)}; exec "$@"', "sh"]
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho hello\nexit 3\n")
    program.chmod(0o755)
    command = [*wrap, sys.executable, "-m", "slaunch", "--log-dir", str(tmp_path / "logs"), str(program)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "logs" / "workerlog.0").read_text() == "hello\n"
    assert ("hello\n" in done.stdout) == (1 not in closed)


def test_a_process_that_cannot_be_killed_is_named_and_not_waited_for(tmp_path: Path) -> None:
    """A frozen process is in state D and takes SIGKILL only once it is thawed, like one that waits for a dead file server."""
    group = Path(f"/sys/fs/cgroup/freezer/slaunch-test-{os.getpid()}")
    group.mkdir()
    frozen = shell(f"echo $$ > {group}/cgroup.procs; touch {tmp_path}/up; exec sleep 600")
    try:
        with Job(tmp_path, [[frozen]], options={"grace_s": 0.5}) as job:
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
