"""Several real agents on this machine, over the real channel."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest

from .job import Job, python, shell, wait_for

FOREVER = ["sleep", "600"]


def up(folder: Path, then: str = "exec sleep 600") -> list[str]:
    """A worker that says that it runs."""
    return shell(f"touch {folder}/up.$RANK; {then}")


def test_f117_success_on_all_nodes(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("echo $RANK")] * 2] * 3) as job:
        assert job.wait() == [0, 0, 0]
        assert [job.log(rank) for rank in range(6)] == [f"{rank}\n" for rank in range(6)]
        assert "6 workers on 3 nodes ended well" in job.text("err.0")
        assert (job.text("err.1"), job.text("err.2")) == ("", "")


def test_w3_w24_p74_all_agents_end_with_the_failing_workers_code(tmp_path: Path) -> None:
    with Job(tmp_path, [[up(tmp_path)], [up(tmp_path), shell("sleep 0.5; date +%s.%N; exit 7")], [up(tmp_path)]]) as job:
        assert job.wait() == [7, 7, 7]
        verdicts = [job.report(index)["verdict"] for index in range(3)]
        assert verdicts[0] == verdicts[1] == verdicts[2]
        assert (verdicts[0]["first"]["rank"], verdicts[0]["first"]["host"]) == (2, "n1")
        assert verdicts[0]["others"] == []
        assert max(job.report(index)["ended_s"] for index in range(3)) - float(job.log(2)) < 5
        assert "rank 2 on n1 failed with exit code 7" in job.text("err.0")
        assert (job.text("err.1"), job.text("err.2")) == ("", "")


@pytest.mark.parametrize("lost", [1, 2])
def test_w24_w27_a_killed_agent_ends_the_job_and_its_node_is_named(tmp_path: Path, lost: int) -> None:
    with Job(tmp_path, [[up(tmp_path)] * 2] * 3) as job:
        job.started(*(f"up.{rank}" for rank in range(6)))
        killed = time.time()
        job.agents[lost].kill()
        codes = job.wait()
        assert [code for index, code in enumerate(codes) if index != lost] == [75, 75]
        assert codes[lost] == -9
        assert job.report()["ended_s"] - killed < 5
        assert f"lost the agent on node {lost} (n{lost})" in job.text("err.0")
        job.nothing_left()


def test_w27_without_the_hub_the_others_stop_and_the_lowest_speaks(tmp_path: Path) -> None:
    with Job(tmp_path, [[up(tmp_path)]] * 3) as job:
        job.started("up.0", "up.1", "up.2")
        job.agents[0].kill()
        assert job.wait() == [-9, 75, 75]
        assert "lost the agent on node 0 (n0)" in job.text("err.1")
        assert job.text("err.2") == ""
        job.nothing_left()


def test_a_frozen_agent_is_noticed(tmp_path: Path) -> None:
    with Job(tmp_path, [[up(tmp_path)]] * 2) as job:
        job.started("up.0", "up.1")
        job.agents[1].send_signal(signal.SIGSTOP)
        job.agents[0].wait(30)
        assert job.report()["verdict"]["outcome"] == "lost"
        assert "silent for" in job.text("err.0")
        job.agents[1].send_signal(signal.SIGCONT)
        assert job.wait() == [75, 75]


def test_f128_a_signal_to_one_agent_stops_all(tmp_path: Path) -> None:
    with Job(tmp_path, [[up(tmp_path)]] * 3) as job:
        job.started("up.0", "up.1", "up.2")
        job.agents[2].terminate()
        assert job.wait() == [143] * 3
        assert "stopped by SIGTERM" in job.text("err.0")
        assert "arrived on n2" in job.text("err.0")


def test_p78_a_signal_to_every_agent_and_worker_is_one_stop(tmp_path: Path) -> None:
    """What a scheduler does that signals all processes of a step."""
    with Job(tmp_path, [[up(tmp_path)] * 2] * 2) as job:
        job.started("up.0", "up.1", "up.2", "up.3")
        for line in job.left():
            with contextlib.suppress(ProcessLookupError):  # the agent has stopped that one already
                os.kill(int(line.split()[0]), signal.SIGTERM)
        assert job.wait() == [143] * 2
        assert job.report()["verdict"]["outcome"] == "signal"


def test_a_node_that_cannot_write_its_logs_ends_the_job(tmp_path: Path) -> None:
    """The directory is there for node 0 only: node 1's log file is a directory."""
    (tmp_path / "logs" / "workerlog.1").mkdir(parents=True)
    with Job(tmp_path, [[FOREVER], [FOREVER]]) as job:
        assert job.wait() == [73, 73]
        text = job.text("err.0")
        assert "cannot write the workers' output on n1 (exit code 73)" in text
        assert "workerlog.1: Is a directory" in text


VICTIM = """
sys.stderr.write("RuntimeError: Connection closed by peer\\n"); sys.stderr.flush()
os._exit(1)
"""


def test_p94_first_failure_when_all_nodes_fail_nearly_together(tmp_path: Path) -> None:
    """Rank 1 fails; the others notice a moment later, as in a collective, and fail by themselves before slaunch stops them."""
    victim = f"""
import fcntl, os, sys, time
while not os.path.exists("{tmp_path}/locked"): time.sleep(0.01)
file = open("{tmp_path}/lock")
open("{tmp_path}/up." + os.environ["RANK"], "w").close()
fcntl.flock(file, fcntl.LOCK_SH)  # until the kernel takes the lock from the dead
{VICTIM}"""
    culprit = f"""
import fcntl, os, sys, time
file = open("{tmp_path}/lock", "w")
fcntl.flock(file, fcntl.LOCK_EX)
open("{tmp_path}/locked", "w").close()
while not all(os.path.exists(f"{tmp_path}/up.{{r}}") for r in (0, 2, 3)): time.sleep(0.01)
os._exit(9)
"""
    with Job(tmp_path, [[python(victim)], [python(culprit), python(victim)], [python(victim)]]) as job:
        assert job.wait() == [9, 9, 9]
        assert job.report()["verdict"]["first"]["rank"] == 1


def test_p94_one_that_takes_long_to_leave_the_kernel_is_no_victim(tmp_path: Path) -> None:
    """Rank 0 has a GiB to free; rank 1 sees it die and is gone before it."""
    culprit = f"""
import mmap, os, time
memory = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
with open("{tmp_path}/pid.part", "w") as file: file.write(str(os.getpid()))
os.rename("{tmp_path}/pid.part", "{tmp_path}/pid")
while not os.path.exists("{tmp_path}/up.1"): time.sleep(0.01)
os._exit(9)
"""
    victim = f"""
import os, sys, time
while not os.path.exists("{tmp_path}/pid"): time.sleep(0.01)
stat = "/proc/" + open("{tmp_path}/pid").read() + "/stat"
open("{tmp_path}/up.1", "w").close()
while os.path.exists(stat) and not int(open(stat).read().rpartition(")")[2].split()[6]) & 4: pass
{VICTIM}"""
    with Job(tmp_path, [[python(culprit), python(victim)]]) as job:
        assert job.wait() == [9]
        assert job.report()["verdict"]["first"]["rank"] == 0


def test_f322_w28_grace_is_common_to_all_nodes(tmp_path: Path) -> None:
    stubborn = up(tmp_path, "trap '' TERM; while :; do sleep 1; done")
    with Job(tmp_path, [[stubborn] * 2] * 3, options={"grace_s": 1.5}) as job:
        job.started(*(f"up.{rank}" for rank in range(6)))
        began = time.time()
        job.agents[1].terminate()
        assert job.wait() == [143] * 3
        assert 1.0 <= job.report()["ended_s"] - began < 10


def test_failpoint_an_agent_that_dies_while_it_stops_its_workers_leaves_nothing(tmp_path: Path) -> None:
    with Job(tmp_path, [[up(tmp_path), FOREVER]], env={"SLAUNCH_FAILPOINTS": "agent.stopping=kill"}) as job:
        job.started("up.0")
        job.agents[0].terminate()
        assert job.wait() == [-9]
        job.nothing_left()


@pytest.mark.parametrize("action", ["kill", "raise", "exit:5"])
def test_failpoint_an_agent_that_dies_between_two_starts_leaves_nothing(tmp_path: Path, action: str) -> None:
    env = {"SLAUNCH_FAILPOINTS": f"agent.after_spawn={action}"}
    with Job(tmp_path, [[FOREVER, FOREVER]], env=env) as job:
        assert job.wait()[0] != 0
        job.nothing_left()


def test_failpoint_a_hub_that_dies_before_it_tells_its_verdict(tmp_path: Path) -> None:
    """The next hub gives its own; no one hangs."""
    with Job(tmp_path, [[shell("sleep 0.3; exit 3")], [FOREVER]], failpoints={"0": "agent.hub_decides=kill"}) as job:
        assert job.wait() == [-9, 75]
        job.nothing_left()


def test_a_job_at_rest_costs_next_to_nothing(tmp_path: Path) -> None:
    with Job(tmp_path, [[up(tmp_path)]] * 2) as job:
        job.started("up.0", "up.1")
        time.sleep(1.0)
        before = [cpu_ticks(agent.pid) for agent in job.agents]
        time.sleep(4.0)
        used = [cpu_ticks(agent.pid) - then for agent, then in zip(job.agents, before, strict=True)]
        assert max(used) <= 8, "80 ms of CPU time in 4 s"
        job.agents[0].terminate()
        job.wait()


def cpu_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_w24_workers_hear_of_the_stop_within_half_a_second(tmp_path: Path) -> None:
    """On an idle machine it is a few milliseconds; here with a wide margin."""
    told = f"trap 'date +%s.%N > {tmp_path}/told.$RANK; exit 0' TERM; touch {tmp_path}/up.$RANK; while :; do sleep 0.01; done"
    culprit = f"while [ $(ls {tmp_path} | grep -c up) -lt 3 ]; do sleep 0.05; done; date +%s.%N; exit 3"
    with Job(tmp_path, [[shell(told)], [shell(told)], [shell(told)], [shell(culprit)]]) as job:
        assert job.wait() == [3] * 4
        failed = float(job.log(3))
        for rank in range(3):
            wait_for(lambda rank=rank: (tmp_path / f"told.{rank}").exists(), "the stop")  # type: ignore[misc]
            assert float((tmp_path / f"told.{rank}").read_text()) - failed < 2.0


def test_each_agent_keeps_a_journal_without_secrets(tmp_path: Path) -> None:
    env = {"MY_TOKEN": "do-not-show"}
    with Job(tmp_path, [[shell("exit 3")], [FOREVER]], env=env) as job:
        assert job.wait() == [3, 3]
        for node in range(2):
            text = job.text(f"logs/agent.{node}.jsonl")
            entries = [json.loads(line) for line in text.splitlines()]
            assert entries[0]["kind"] == "begin"
            assert [e["rank"] for e in entries if e["kind"] == "started"] == [node]
            assert entries[-1]["what"] == "Finish"
            assert [e["mono_s"] for e in entries] == sorted(e["mono_s"] for e in entries)
            assert "do-not-show" not in text
