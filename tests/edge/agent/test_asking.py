"""Requests to save and to end, as real workers see them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from .job import Job, python, shell, state_of, wait_for

SAVES = """
import os, signal, sys, time
from slaunch import worker
got = []
signal.signal(signal.SIGUSR2, lambda n, f: got.append(n))
assert not worker.should_stop() and worker.stop_reason() == ""
open(f"{os.environ['PLACE']}/up.{os.environ['RANK']}", "w").close()
while not worker.should_stop(): time.sleep(0.01)
time.sleep(0.3)
print("asked by", worker.stop_reason(), "signals", got, "left", worker.seconds_left() > 1000, flush=True)
"""


def test_p80_p81_workers_read_the_request_and_get_the_signal_once(tmp_path: Path) -> None:
    """One gets no signal, as it catches none: it would die of it."""
    deaf = python(SAVES.replace("signal.signal(", "(lambda *_: None)("))
    with Job(tmp_path, [[python(SAVES), deaf], [python(SAVES)]], env={"PLACE": str(tmp_path)}) as job:
        job.started("up.0", "up.1", "up.2")
        job.agents[1].send_signal(signal.SIGUSR2)
        assert job.wait() == [0, 0]
        assert [job.log(rank).strip() for rank in range(3)] == [
            "asked by SIGUSR2 signals [12] left True",
            "asked by SIGUSR2 signals [] left True",
            "asked by SIGUSR2 signals [12] left True",
        ]
        assert job.report()["verdict"]["asked"]["signal"] == 12
        assert "asked:  to save by SIGUSR2" in job.text("err.0")


def test_p80_the_signal_finds_the_program_inside_a_script_and_nothing_below_it(tmp_path: Path) -> None:
    program = f"""
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda n, f: (print("program", flush=True), os.kill(child, 9), sys.exit(0)))
child = os.fork()
if child == 0:
    signal.signal(signal.SIGUSR1, lambda n, f: print("child of the program", flush=True))
    while True: time.sleep(1)
open("{tmp_path}/up", "w").close()
while True: time.sleep(1)
"""
    (tmp_path / "program.py").write_text(program)
    script = f"{' '.join(python('x')[:1])} -u {tmp_path}/program.py; echo script goes on"
    with Job(tmp_path, [[shell(script)]]) as job:
        job.started("up")
        job.agents[0].send_signal(signal.SIGUSR1)
        assert job.wait() == [0]
        assert job.log(0).split("\n") == ["program", "script goes on", ""]


def test_a_shell_script_can_read_the_request(tmp_path: Path) -> None:
    script = f'touch {tmp_path}/up; while ! [ -s "$SLAUNCH_STOP_FILE" ]; do sleep 0.02; done; cat "$SLAUNCH_STOP_FILE"'
    with Job(tmp_path, [[shell(script)]]) as job:
        job.started("up")
        job.agents[0].send_signal(signal.SIGUSR1)
        assert job.wait() == [0]
        assert job.log(0) == "SIGUSR1\n"


def test_workers_are_warned_before_the_time_limit_and_end_in_time(tmp_path: Path) -> None:
    options = {"time_limit_s": 100.0, "warn_before_end_s": 99.5}
    with Job(tmp_path, [[python(SAVES)]], env={"PLACE": str(tmp_path)}, options=options) as job:
        assert job.wait() == [0]
        assert "asked by time" in job.log(0)
        assert "asked:  to save as the job's time ran out" in job.text("err.0")


def test_the_end_of_the_job_s_time_is_known_from_slurm_s_variable_where_there_is_one(tmp_path: Path) -> None:
    wait = "import time\nfrom slaunch.worker import seconds_left as left\nwhile left() > 900: time.sleep(0.01)\nprint(left() > 0)"
    env = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(int(time.time()) + 800)}
    with Job(tmp_path, [[python(wait)], [python(wait)]], env=env) as job:
        assert job.wait() == [0, 0]
        assert [job.log(rank) for rank in range(2)] == ["True\n"] * 2


def test_p85_where_slurm_cannot_be_asked_no_end_is_known_and_nothing_is_wrong(tmp_path: Path) -> None:
    look = "import time\nfrom slaunch import worker\ntime.sleep(1.5); print(worker.seconds_left())"
    with Job(tmp_path, [[python(look)]], env={"SLURM_JOB_ID": "7", "SLURM_CONF": "/nowhere"}) as job:
        assert job.wait() == [0]
        assert job.log(0) == "inf\n"


def test_p82_p83_with_stop_signal_none_workers_end_by_themselves(tmp_path: Path) -> None:
    with Job(tmp_path, [[python(SAVES)], [python(SAVES)]], env={"PLACE": str(tmp_path)}, options={"stop_signal": 0}) as job:
        job.started("up.0", "up.1")
        job.agents[0].send_signal(signal.SIGTERM)
        assert job.wait() == [143, 143]
        assert ["asked by stop" in job.log(rank) for rank in range(2)] == [True, True]


def test_a_stopped_worker_is_named_and_can_still_save_when_the_job_is_stopped(tmp_path: Path) -> None:
    saves = f"""
import signal, sys, time, os
signal.signal(signal.SIGTERM, lambda n, f: (print("saved", flush=True), sys.exit(0)))
with open("{tmp_path}/part", "w") as file: file.write(str(os.getpid()))
os.rename("{tmp_path}/part", "{tmp_path}/up")
while True: time.sleep(1)
"""
    with Job(tmp_path, [[python(saves)]], options={"grace_s": 25.0}) as job:
        job.started("up")
        pid = int((tmp_path / "up").read_text())
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: "has been stopped by a signal" in job.text("err.0"), "a word on the stopped worker")
        assert f"n0: rank 0 (pid {pid}) has been stopped" in job.text("err.0")
        job.agents[0].send_signal(signal.SIGTERM)
        assert job.wait() == [143]
        assert job.log(0) == "saved\n"


def test_ctrl_z_stops_the_workers_too_and_fg_lets_them_go_on(tmp_path: Path) -> None:
    script = f"echo $$ >{tmp_path}/pid; touch {tmp_path}/up; while ! [ -e {tmp_path}/go ]; do sleep 0.02; done"
    with Job(tmp_path, [[shell(script)]], options={"hang_timeout_s": 30.0}) as job:
        job.started("up")
        pid, agent = int((tmp_path / "pid").read_text()), job.agents[0].pid
        job.agents[0].send_signal(signal.SIGTSTP)
        wait_for(lambda: state_of(agent) == "T" and state_of(pid) == "T", "a stopped job")
        (tmp_path / "go").touch()
        job.agents[0].send_signal(signal.SIGCONT)
        assert job.wait() == [0]
