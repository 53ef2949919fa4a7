"""Jobs whose first agent goes away, with it the hub: real agents and workers on this machine, over the real channel."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from .job import Job, python, shell, state_of, wait_for


def options(**given: Any) -> dict[str, Any]:
    return {"options": given}


def again(folder: Path, then: str = "exit 0") -> list[str]:
    """A worker that says that it runs, and what it is told; it stays in the first attempt and then does as told."""
    return shell(
        "echo attempt ${ATTEMPT:-0} rank $RANK of $WORLD before $SLAUNCH_PREVIOUS_RANK;"
        f" echo $$ > {folder}/up.${{ATTEMPT:-0}}.$RANK;"
        f" [ -n \"$ATTEMPT\" ] && {then}; exec sleep 600"
    )


def turning(job: Job, *indices: int) -> None:
    """These agents' loops have turned, and so have told their guardians that they are well."""
    for index in indices:
        wait_for(lambda index=index: '"started"' in job.text(f"logs/agent.{index}.jsonl"), f"agent {index}")  # type: ignore[misc]


def test_f124_survivors_of_the_first_node_go_on(tmp_path: Path) -> None:
    with Job(tmp_path, [[again(tmp_path)] * 2] * 4, **options(nnodes=[3, 4])) as job:
        job.started(*(f"up.0.{rank}" for rank in range(8)))
        job.agents[0].kill()
        assert job.wait() == [-9, 0, 0, 0], job.text("err.1")
        report = job.report(1)
        assert (report["attempt"], report["world"], report["nodes"]) == (1, 6, 3)
        assert [lost["node"] for lost in report["earlier"][0]["verdict"]["lost"]] == [0]
        said = "".join(job.log(rank) for rank in range(8))
        assert "attempt 1 rank 0 of 6 before 2" in said, "ranks close up"
        assert "attempt 1 rank 5 of 6 before 7" in said
        assert "lost node 0 (n0); attempt 1 starts" in job.text("err.1")
        assert report["verdict"]["outcome"] == "success"
        assert not job.text("err.2") + job.text("err.3")


def test_where_all_nodes_are_needed_the_next_agent_tells_it(tmp_path: Path) -> None:
    with Job(tmp_path, [[again(tmp_path)]] * 3, **options(max_restarts=3)) as job:
        job.started("up.0.0", "up.0.1", "up.0.2")
        job.agents[0].kill()
        assert job.wait() == [-9, 75, 75]
        said = job.text("err.1")
        assert "lost the agent on node 0 (n0)" in said
        assert job.report(1)["verdict"]["final"] == "no restart: a node is lost"
        assert job.report(2)["verdict"] == job.report(1)["verdict"], "one verdict for all"
        assert not job.text("err.2")


def test_hub_after_hub(tmp_path: Path) -> None:
    """Two hubs are killed, one in each attempt; the last world is node 2 and node 3."""
    with Job(tmp_path, [[again(tmp_path, "[ $ATTEMPT = 2 ] && exit 0")]] * 4, **options(nnodes=[2, 4])) as job:
        for attempt in range(2):
            job.started(*(f"up.{attempt}.{rank}" for rank in range(4 - attempt)))
            job.agents[attempt].kill()
        assert job.wait() == [-9, -9, 0, 0], job.text("err.2")
        report = job.report(2)
        assert (report["attempt"], report["world"]) == (2, 2)
        assert [[lost["node"] for lost in each["verdict"]["lost"]] for each in report["earlier"]] == [[0], [1]]


def test_one_of_two_goes_on_if_the_other_is_certainly_dead(tmp_path: Path) -> None:
    with Job(tmp_path, [[again(tmp_path)]] * 2, **options(nnodes=[1, 2])) as job:
        job.started("up.0.0", "up.0.1")
        job.agents[0].kill()
        assert job.wait() == [-9, 0], job.text("err.1")
        assert (job.report(1)["attempt"], job.report(1)["world"]) == (1, 1)


def test_w20_a_hub_that_stands_still_is_left_and_its_guardian_ends_its_workers(tmp_path: Path) -> None:
    """Two of three go on; the old hub finds that they are gone, and does not go on itself though one node would be enough."""
    stay = f"{{ until [ -e {tmp_path}/end ]; do sleep 0.1; done; exit 0; }}"
    with Job(tmp_path, [[again(tmp_path, stay)]] * 3, **options(nnodes=[1, 3])) as job:
        job.started("up.0.0", "up.0.1", "up.0.2")
        turning(job, 0)
        job.agents[0].send_signal(signal.SIGSTOP)
        job.started("up.1.0", "up.1.1")
        wait_for(lambda: state_of(int(job.text("up.0.0"))) in ("", "Z"), "the end of its workers")
        assert state_of(job.agents[0].pid) == "T"
        job.agents[0].send_signal(signal.SIGCONT)
        assert job.agents[0].wait(60) == 75
        assert job.report(0)["verdict"]["final"].startswith("no restart: 1 of 3 nodes are here")
        assert "the agent on n0 stood still for" in job.text("err.0")
        assert "attempt 1" not in job.log(2)
        (tmp_path / "end").touch()
        assert [agent.wait(30) for agent in job.agents[1:]] == [0, 0]


def test_a_job_that_is_suspended_as_a_whole_goes_on(tmp_path: Path) -> None:
    """As by `scontrol suspend`: agents, guardians and workers all stand still for longer than nodes are waited for."""
    up, end = f'"{tmp_path}/up." + os.environ["RANK"]', f'"{tmp_path}/end"'
    code = f"import os, time\nopen({up}, 'w').close()\nwhile not os.path.exists({end}): time.sleep(0.1)"
    with Job(tmp_path, [[python(code)]] * 2, **options(nnodes=[1, 2])) as job:
        job.started("up.0", "up.1")
        turning(job, 0, 1)
        own = [int(line.split()[0]) for line in job.left()]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in own:
                os.kill(pid, number)
            time.sleep(9.0)
        (tmp_path / "end").touch()
        assert job.wait() == [0, 0], job.text("err.0")
        assert job.report()["attempt"] == 0
        assert "stood still for" in job.text("err.0")
        assert "were ended" not in job.text("err.0")


@pytest.mark.parametrize("point", ["agent.preparing", "agent.starting_anew", "agent.hub_decides"])
def test_the_hub_killed_at_each_step_towards_another_attempt(tmp_path: Path, point: str) -> None:
    arm = tmp_path / "arm"
    crash = f'[ "${{ATTEMPT:-0}}" -ge 1 ] && exit 0; until [ -e {arm} ]; do sleep 0.02; done; exit 3'
    stay = '[ -n "$ATTEMPT" ] && exit 0; exec sleep 600'
    up = f"touch {tmp_path}/up.${{ATTEMPT:-0}}.$RANK; "
    commands = [[shell(up + stay)], [shell(up + crash)], [shell(up + stay)]]
    with Job(tmp_path, commands, failpoints={"0": f"{point}=kill"}, **options(max_restarts=5, nnodes=[2, 3])) as job:
        job.started("up.0.0", "up.0.1", "up.0.2")
        arm.touch()
        assert job.wait() == [-9, 0, 0], job.text("err.1")
        report = job.report(1)
        assert report["world"] == (2 if point != "agent.hub_decides" else report["world"])


def test_an_heir_killed_as_it_takes_over(tmp_path: Path) -> None:
    with Job(tmp_path, [[again(tmp_path)]] * 4, failpoints={"1": "agent.succeeding=kill"}, **options(nnodes=[2, 4])) as job:
        job.started(*(f"up.0.{rank}" for rank in range(4)))
        job.agents[0].kill()
        assert job.wait() == [-9, -9, 0, 0], job.text("err.2")
        assert job.report(2)["world"] == 2


def test_a_request_to_stop_while_a_hub_is_looked_for_is_not_lost(tmp_path: Path) -> None:
    commands = [[again(tmp_path)]] * 3
    with Job(tmp_path, commands, failpoints={"1": "agent.succeeding=sleep:1"}, **options(nnodes=[2, 3])) as job:
        job.started("up.0.0", "up.0.1", "up.0.2")
        job.agents[0].kill()
        wait_for(lambda: "AgentGone" in job.text("logs/agent.2.jsonl"), "the loss")
        job.agents[2].send_signal(signal.SIGTERM)
        assert set(job.wait()[1:]) <= {75, 143}
        assert not any(os.path.exists(f"{tmp_path}/up.1.{rank}") for rank in range(3))


def test_a_spare_takes_the_place_of_the_lost_node_also_of_the_first(tmp_path: Path) -> None:
    """Two spares, and two losses: the world stays, and who lives keeps its rank."""
    code = again(tmp_path, "[ $ATTEMPT = 2 ] && exit 0")
    with Job(tmp_path, [[code]] * 5, **options(spares=2)) as job:
        job.started("up.0.0", "up.0.1", "up.0.2")
        job.agents[1].kill()
        job.started("up.1.0", "up.1.1", "up.1.2")
        assert "attempt 1 rank 1 of 3 before" in job.log(1)
        job.agents[0].kill()
        assert job.wait() == [-9, -9, 0, 0, 0], job.text("err.0") + job.text("err.2")
        report = job.report(2)
        assert (report["attempt"], report["world"], report["nodes"]) == (2, 3, 3)
        said = "".join(job.log(rank) for rank in range(3))
        assert "attempt 2 rank 2 of 3 before 2" in said
        assert "attempt 2 rank 1 of 3 before 1" in said
        assert "rank 3" not in said


def test_spares_end_with_the_job_and_are_not_missed(tmp_path: Path) -> None:
    """One is killed while it waits, one lives on to the end."""
    code = shell(f"touch {tmp_path}/up.$RANK; until [ -e {tmp_path}/end ]; do sleep 0.05; done; [ $RANK = 1 ] && exit 3; exit 0")
    with Job(tmp_path, [[code]] * 4, **options(spares=2)) as job:
        job.started("up.0", "up.1")
        job.agents[3].kill()
        (tmp_path / "end").touch()
        assert job.wait() == [3, 3, 3, -9]
        assert job.report()["verdict"]["lost"] == []
        assert job.report()["world"] == 2
