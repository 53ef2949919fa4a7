"""Restarts of real workers by real agents on this machine, over the real channel."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from .job import Job, python, shell, wait_for

CRASH = 'echo attempt ${ATTEMPT:-0}; if [ "${ATTEMPT:-0}" -lt %d ]; then exit 3; fi'
STAY = "echo attempt ${ATTEMPT:-0}; if [ ${ATTEMPT:-0} = %d ]; then exit 0; fi; exec sleep 600"


def options(**given: Any) -> dict[str, Any]:
    return {"options": given}


def attempts(log: str) -> list[str]:
    return [line.split()[1] for line in log.splitlines() if line.startswith("attempt")]


@pytest.mark.parametrize("nodes", [1, 3])
def test_w22_f126_f324_real_workers_are_restarted_exactly_so_often(tmp_path: Path, nodes: int) -> None:
    """Rank 0 crashes each time that all run."""
    up = f"echo attempt ${{ATTEMPT:-0}}; touch {tmp_path}/up.${{ATTEMPT:-0}}.$RANK; "
    all_up = f"until [ $(ls {tmp_path} | grep -c up.${{ATTEMPT:-0}}.) = {2 * nodes} ]; do sleep 0.02; done; exit 3"
    stay = shell(up + "exec sleep 600")
    commands = [[shell(up + all_up), stay], *[[stay] * 2] * (nodes - 1)]
    with Job(tmp_path, commands, **options(max_restarts=2)) as job:
        assert job.wait() == [3] * nodes
        assert [attempts(job.log(rank)) for rank in range(2 * nodes)] == [["0", "1", "2"]] * (2 * nodes)
        report = job.report()
        assert (report["attempt"], [each["attempt"] for each in report["earlier"]]) == (2, [0, 1])
        assert [each["verdict"]["first"]["rank"] for each in report["earlier"]] == [0, 0]
        assert report["verdict"]["final"] == "no restart: all 2 are used up"
        assert [job.report(index)["verdict"] for index in range(nodes)] == [report["verdict"]] * nodes
        said = job.text("err.0")
        assert said.count("rank 0 on n0 failed with exit code 3; attempt") == 2
        assert "before: attempt 0, over after" in said
        assert "final:  attempt 2: no restart: all 2 are used up" in said


@pytest.mark.parametrize("nodes", [1, 3])
def test_f122_a_job_that_ends_well_at_the_second_attempt(tmp_path: Path, nodes: int) -> None:
    commands = [[shell(CRASH % 1)], *[[shell(STAY % 1)]] * (nodes - 1)]
    with Job(tmp_path, commands, **options(max_restarts=3)) as job:
        assert job.wait() == [0] * nodes
        assert job.report()["verdict"]["outcome"] == "success"
        assert "at attempt 1" in job.text("err.0")


def test_ports_are_new_at_each_attempt(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("echo port $PORT; exit 1")], [shell("exec sleep 600")]], **options(max_restarts=3)) as job:
        job.wait()
        ports = [line.split()[1] for line in job.log(0).splitlines() if line.startswith("port") and len(line.split()) > 1]
        assert len(set(ports)) == 3


def test_log_files_go_on_with_a_mark_even_where_they_are_to_start_anew(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/workerlog.0").write_text("of an earlier run\n")
    with Job(tmp_path, [[shell(CRASH % 2)]], **options(max_restarts=2, log_overwrite=True)) as job:
        assert job.wait() == [0]
        lines = job.log(0).splitlines()
        assert [line.split(",")[0] for line in lines] == [
            "attempt 0",
            "---- slaunch: attempt 1",
            "attempt 1",
            "---- slaunch: attempt 2",
            "attempt 2",
        ]


def test_the_console_shows_each_attempt_once(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(CRASH % 3)]], **options(max_restarts=3)) as job:
        assert job.wait() == [0]
        assert job.text("out.0") == "attempt 0\nattempt 1\nattempt 2\nattempt 3\n"


def test_p96_what_an_attempt_leaves_behind_is_gone_before_the_next(tmp_path: Path) -> None:
    """A helper in a session of its own that ignores SIGTERM: it is noted whether it still lives when the next attempt starts."""
    helper = f"setsid sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/helper; exec sleep 600' &"
    first = f"[ -e {tmp_path}/helper ] && kill -0 $(cat {tmp_path}/helper) && touch {tmp_path}/lives"
    wait = f"until [ -s {tmp_path}/helper ]; do sleep 0.01; done"
    code = f"{first}; if [ \"${{ATTEMPT:-0}}\" = 0 ]; then {helper} {wait}; exit 1; fi"
    with Job(tmp_path, [[shell(code)]], **options(max_restarts=1)) as job:
        assert job.wait() == [0]
        assert not (tmp_path / "lives").exists()


@pytest.mark.parametrize("node", [0, 1])
def test_a_request_to_stop_during_the_wait_ends_the_job(tmp_path: Path, node: int) -> None:
    with Job(tmp_path, [[shell("exit 3")], [shell("exec sleep 600")]], **options(max_restarts=5, restart_delay_s=60.0)) as job:
        wait_for(lambda: "attempt 1 starts in 60 s" in job.text("err.0"), "the announcement")
        asked = time.monotonic()
        job.agents[node].send_signal(signal.SIGTERM)
        assert job.wait() == [143, 143]
        assert time.monotonic() - asked < 10
        assert "attempt 1" not in job.log(0)


def test_no_restart_after_codes_that_the_user_names(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell("exit 42")]], **options(max_restarts=5, no_restart_codes=[3, 42])) as job:
        assert job.wait() == [42]
        assert "no restart after exit code 42, as asked for" in job.text("err.0")


def test_no_restart_of_a_program_that_cannot_be_executed(tmp_path: Path) -> None:
    with Job(tmp_path, [[["/no/such/program"]]], **options(max_restarts=5)) as job:
        assert job.wait() == [127]
        assert job.report()["earlier"] == []


def test_restarts_without_progress_end(tmp_path: Path) -> None:
    """Steps 10, 20, 20, 20: the third attempt is the first one without progress."""
    code = (
        "import os, sys\nfrom slaunch import worker\nattempt = int(os.environ.get('ATTEMPT', 0))\n"
        "worker.progress(3)\nworker.progress(min(20, 10 + 10 * attempt))\nsys.exit(5)"
    )
    with Job(tmp_path, [[python(code)], [shell("exec sleep 600")]], **options(max_restarts=9, max_no_progress=2)) as job:
        assert job.wait() == [5, 5]
        assert job.report()["attempt"] == 3
        assert "no restart: no progress in 2 attempts" in job.text("err.0")


def test_a_shell_can_tell_its_progress_too(tmp_path: Path) -> None:
    code = 'echo $((5 + ${ATTEMPT:-0})) > "$SLAUNCH_PROGRESS_FILE"; exit 5'
    with Job(tmp_path, [[shell(code)]], **options(max_restarts=3, max_no_progress=1)) as job:
        assert job.wait() == [5]
        assert job.report()["verdict"]["final"] == "no restart: all 3 are used up"


def test_the_agent_does_not_grow_with_its_attempts(tmp_path: Path) -> None:
    """Descriptors of the agent at the 2nd and at the 12th attempt, counted by its worker."""
    code = "ls /proc/$PPID/fd | wc -l; exit 1"
    files = [["LIST", "list", "content"]]
    with Job(tmp_path, [[shell(code)]], files=files, **options(max_restarts=11, tee=[-1])) as job:
        assert job.wait() == [1]
        counts = [int(line) for line in job.log(0).splitlines() if line.isdigit()]
        assert len(counts) == 12
        assert counts[11] <= counts[1] + 1


def test_f124_survivors_go_on_without_a_lost_node(tmp_path: Path) -> None:
    code = (
        f"touch {tmp_path}/up.${{ATTEMPT:-0}}.$RANK; echo rank $RANK of $WORLD before $SLAUNCH_PREVIOUS_RANK"
        f" of $SLAUNCH_PREVIOUS_WORLD_SIZE; [ -n \"$ATTEMPT\" ] && exit 0; exec sleep 600"
    )
    with Job(tmp_path, [[shell(code)] * 2] * 4, **options(nnodes=[3, 4])) as job:
        job.started(*(f"up.0.{rank}" for rank in range(8)))
        lost_at = time.time()
        job.agents[1].kill()
        codes = job.wait()
        assert codes == [0, -9, 0, 0]
        report = job.report()
        assert (report["attempt"], report["world"], report["nodes"]) == (1, 6, 3)
        assert [lost["node"] for lost in report["earlier"][0]["verdict"]["lost"]] == [1]
        assert report["started_s"] <= report["earlier"][0]["ended_s"] <= lost_at + 10
        said = "".join(job.log(rank) for rank in range(8))
        assert "rank 2 of 6 before 4 of 8" in said, "node order is kept, ranks close up"
        assert "rank 5 of 6 before 7 of 8" in said
        assert "rank 0 of 6 before 0 of 8" in said
        assert "lost node 1 (n1); attempt 1 starts" in job.text("err.0")


def test_too_few_survivors_end_the_job(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(f"touch {tmp_path}/up.$RANK; exec sleep 600")]] * 3, **options(nnodes=[3, 4])) as job:
        job.started("up.0", "up.1", "up.2")
        job.agents[2].kill()
        assert job.wait()[:2] == [75, 75]
        assert "2 nodes are left, and at least 3 are wanted" in job.text("err.0")


def test_an_agent_killed_while_an_attempt_is_prepared(tmp_path: Path) -> None:
    """Where all nodes are needed the job ends, and names the node."""
    commands = [[shell("exit 3")], [shell("exec sleep 600")], [shell("exec sleep 600")]]
    with Job(tmp_path, commands, **options(max_restarts=5, restart_delay_s=60.0)) as job:
        wait_for(lambda: "attempt 1 starts" in job.text("err.0"), "the announcement")
        job.agents[2].kill()
        assert job.wait()[:2] == [75, 75]
        assert "lost the agent on node 2 (n2)" in job.text("err.0")


def test_the_journal_tells_of_each_attempt(tmp_path: Path) -> None:
    with Job(tmp_path, [[shell(CRASH % 1)]], **options(max_restarts=1)) as job:
        job.wait()
        entries = [json.loads(line) for line in job.text("logs/agent.0.jsonl").splitlines()]
        assert [e["attempt"] for e in entries if e["kind"] == "begin"] == [0, 1]
        assert os.path.getsize(tmp_path / "logs/agent.0.jsonl") < 100_000


@pytest.mark.parametrize("point", ["agent.preparing", "agent.planning", "agent.starting_anew"])
@pytest.mark.parametrize("nnodes", [[0, 0], [2, 3]])
def test_an_agent_killed_at_each_step_towards_another_attempt(tmp_path: Path, point: str, nnodes: list[int]) -> None:
    """Where all nodes are needed the job ends with 75; where two of three are enough these go on, and end well."""
    arm = f"{tmp_path}/arm"
    code = f"touch {tmp_path}/up.${{ATTEMPT:-0}}.$RANK; "
    crash = shell(code + f'[ -n "$ATTEMPT" ] && exit 0; until [ -e {arm} ]; do sleep 0.02; done; exit 3')
    stay = shell(code + '[ -n "$ATTEMPT" ] && exit 0; exec sleep 600')
    given = options(max_restarts=5, nnodes=nnodes)
    with Job(tmp_path, [[crash], [stay], [stay]], failpoints={"1": f"{point}=kill"}, **given) as job:
        job.started("up.0.0", "up.0.1", "up.0.2")
        open(arm, "w").close()
        codes = job.wait()
        assert codes[1] == -9
        assert [codes[0], codes[2]] == ([0, 0] if nnodes[0] else [75, 75]), job.text("err.0")
        if nnodes[0]:
            report = job.report()
            assert (report["attempt"], report["world"]) == (2, 2)
            assert [each["verdict"]["outcome"] for each in report["earlier"]] == ["failure", "lost"]


def test_an_agent_that_hangs_while_an_attempt_is_prepared(tmp_path: Path) -> None:
    """Its heartbeat fails, too, as it has one thread: it counts as lost."""
    again, stay = '[ -n "$ATTEMPT" ] && exit 0; ', "exec sleep 600"
    commands = [[shell(again + then)] for then in ("exit 3", stay, stay)]
    given = options(max_restarts=5, nnodes=[2, 3])
    with Job(tmp_path, commands, failpoints={"2": "agent.planning=stop"}, **given) as job:
        assert [agent.wait(30) for agent in job.agents[:2]] == [0, 0]
        assert job.report()["world"] == 2
        job.agents[2].send_signal(signal.SIGCONT)
        assert job.agents[2].wait(30) == 75


def test_a_hang_is_followed_by_a_restart(tmp_path: Path) -> None:
    code = '[ -n "$ATTEMPT" ] && exit 0; exec sleep 600'
    with Job(tmp_path, [[shell(code)], [shell(code)]], **options(max_restarts=1, hang_timeout_s=1.0)) as job:
        assert job.wait() == [0, 0]
        assert [each["verdict"]["outcome"] for each in job.report()["earlier"]] == ["hang"]
        assert "no worker has printed anything for too long; attempt 1 starts" in job.text("err.0")
