"""One real agent and its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .job import FOREVER, Job, python, shell, state_of, wait_for


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


# -- which failure was the first


def test_simultaneous_failures_in_the_order_of_the_exits(tmp_path: Path) -> None:
    """The agent is stopped while five workers fail one after the other, so it learns of all of them at once."""
    order = [3, 0, 4, 1, 2]
    code = "import os, sys, time\nwhile not os.path.exists('{folder}/go.{rank}'): time.sleep(0.01)\nsys.exit({code})"
    commands = [python(code.format(folder=tmp_path, rank=rank, code=10 + rank)) for rank in range(5)]
    with Job(tmp_path, [commands]) as job:
        wait_for(lambda: len(workers(job.agents[0].pid)) == 5, "five workers")
        pids = {rank: pid for pid, rank in workers(job.agents[0].pid).items()}
        job.agents[0].send_signal(signal.SIGSTOP)
        wait_for(lambda: state_of(job.agents[0].pid) == "T", "the agent's stop")  # else it may still take the first exits
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
