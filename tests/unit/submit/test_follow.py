"""What becomes of a job is told, and its end is recognised, whatever way it takes."""

from collections.abc import Sequence

import pytest

from slaunch.errors import AllocationError
from slaunch.slurm.records import Record
from slaunch.submit import follow
from slaunch.submit.follow import Follower, Way, code_of, next_pause_s, step

Look = Sequence[Record]


def lives(*looks: Look) -> tuple[list[str], bool]:
    """What was told of a job over several looks, and whether the last one ends it; none before may."""
    known: dict[str, Record] = {}
    told: list[str] = []
    for number, now in enumerate(looks):
        found = step(known, now)
        told += found.told
        known = {record.id: record for record in now}
        assert not found.done or number == len(looks) - 1, now
    return told, found.done


def test_a_job_that_waits_and_runs() -> None:
    waits = Record("7", "PENDING", "Priority")
    runs = Record("7", "RUNNING", "None", nodes="n[1-2]")
    assert lives([waits], [waits], [runs], [runs], [Record("7", "COMPLETED", "None")]) == (
        ["job 7 waits in the queue (Priority)", "job 7 runs on n[1-2]", "job 7 has ended: COMPLETED, exit code 0"],
        True,
    )


def test_a_requeue_is_not_the_end() -> None:
    told, done = lives(
        [Record("7", "RUNNING", nodes="n1")],
        [Record("7", "PENDING", "BeginTime", restarts=1)],
        [Record("7", "RUNNING", nodes="n2", restarts=1)],
        [Record("7", "FAILED", "NonZeroExitCode", restarts=1, exit=4)],
    )
    assert done
    assert told[1:] == [
        "job 7 is back in the queue (BeginTime)",
        "job 7 runs on n2, start 2",
        "job 7 has ended: FAILED, exit code 4, start 2",
    ]


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL"])
def test_p86_a_job_that_slurm_took_its_nodes_from_may_come_back(state: str) -> None:
    gone = Record("7", state)
    assert lives([Record("7", "RUNNING")], [gone], [Record("7", "PENDING", restarts=1)])[1] is False
    assert lives([Record("7", "RUNNING")], [gone], [gone])[1] is True


def test_an_array_ends_with_its_last_task_and_the_highest_code() -> None:
    end = [Record("7_0", "COMPLETED"), Record("7_1", "FAILED", exit=3), Record("7_2", "TIMEOUT")]
    before = [Record("7_[0-2]", "PENDING")], [end[0], Record("7_[1-2]", "PENDING")], [*end[:2], Record("7_2", "RUNNING")]
    assert lives(*before, end)[1]
    assert code_of(end) == 124


def test_the_script_of_a_heterogeneous_job_decides_its_code() -> None:
    assert code_of([Record("7+0", "COMPLETED"), Record("7+1", "FAILED", exit=9)]) == 0


def test_slurm_is_asked_seldom() -> None:
    pause, passed, asked = 0.0, 0.0, 0
    while passed < 3600:
        pause = next_pause_s(pause, False, 30.0)
        passed, asked = passed + pause, asked + 1
    assert asked < 130  # once in 30 s, and a few times more often at first
    assert next_pause_s(30.0, True, 30.0) == 1.0
    assert next_pause_s(0.0, False, 0.5) == 0.5


def following(answers: Sequence[Look | Exception], poll_s: float = 0.01) -> tuple[Follower, list[str]]:
    rest = list(answers)
    said: list[str] = []

    def look(job: str, cluster: str) -> tuple[Record, ...]:
        answer = rest.pop(0) if len(rest) > 1 else rest[0]
        if isinstance(answer, Exception):
            raise answer
        return tuple(answer)

    return Follower("7", "", Way(False, poll_s, said.append, look)), said


def test_a_job_that_can_never_start_is_an_error() -> None:
    follower, _ = following([[Record("7", "PENDING", "Dependency")], [Record("7", "PENDING", follow.NEVER)]])
    with pytest.raises(AllocationError) as caught:
        follower.run()
    assert "slaunch cancel 7" in caught.value.todo


def test_a_controller_that_is_away_for_a_while_does_not_end_the_waiting() -> None:
    away = AllocationError("run", "no answer within 10 s", "")
    follower, said = following([[Record("7", "RUNNING")], away, [Record("7", "COMPLETED")]])
    assert [record.state for record in follower.run()] == ["COMPLETED"]
    assert "Slurm does not answer: no answer within 10 s" in said


def test_a_job_that_the_controller_has_forgotten_is_left_as_last_seen() -> None:
    follower, _ = following([[Record("7", "RUNNING")], []])
    assert [record.state for record in follower.run()] == ["RUNNING"]
    assert following([[]])[0].run() == ()
