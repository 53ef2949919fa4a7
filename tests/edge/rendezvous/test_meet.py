"""Meetings over real sockets on this machine: agreement, absence, deadlines, strangers."""

import os
import socket
import time

import pytest
from support.meetings import Job
from support.stars import LOCAL, wait_for_one

from slaunch.channel import secret
from slaunch.channel.listen import close_all, listen
from slaunch.channel.star import Message, Solo
from slaunch.errors import AgreementError, RendezvousError, ScriptMissingError
from slaunch.frozen import replace
from slaunch.node.values import Problem
from slaunch.rendezvous.meet import meet
from slaunch.rendezvous.ports import candidate_ports
from slaunch.rendezvous.slurm import meeting_identity


@pytest.fixture
def impatient(monkeypatch):
    """Who finds nobody does not wait for a hub's last word, too."""
    monkeypatch.setattr("slaunch.rendezvous.assemble.HUB_LEAD_S", 0.5)


def quick(job, seconds=1.5):
    job.options = replace(job.options, rendezvous_timeout_s=seconds)
    return job


def ports_of(job):
    return candidate_ports(meeting_identity(job.task(0).allocation, job.env))


@pytest.mark.parametrize("size", [2, 5, 16])
def test_everybody_learns_everybodys_facts(size):
    job = Job(size)
    tasks = job.run(lambda meeting: meeting.membership)
    memberships = [task.result for task in tasks]
    assert [each.rank for each in memberships] == list(range(size))
    assert {tuple(replace(facts, control_port=0) for facts in each.facts) for each in memberships} == {
        tuple(job.facts(rank) for rank in range(size))
    }
    assert len({facts.control_port for each in memberships for facts in each.facts} - {0}) == size
    assert {(each.way, each.epoch, len(each.secret)) for each in memberships} == {("slurm", 0, 32)}
    assert len({each.secret for each in memberships}) == 1
    assert tasks[0].said == [f"met {size} tasks by slurm: --rendezvous slurm"]


def test_one_task_meets_nobody():
    job = Job(1)
    with meet(job.task(0), job.facts(0), job.options, {}, print) as meeting:
        assert meeting.membership.way == "none"
        assert meeting.membership.facts == (job.facts(0),)
        meeting.agree("x")
        assert isinstance(meeting.star(), Solo)


def test_one_task_has_its_own_errors():
    job = Job(1, change={0: {"problems": (Problem(127, "start x", "none", "check"),)}})
    with pytest.raises(ScriptMissingError):
        meet(job.task(0), job.facts(0), job.options, {}, print)


def test_equal_plans_agree_and_the_star_stays():
    def use(meeting):
        meeting.agree("digest")
        star = meeting.star()
        try:
            if star.is_hub:
                star.broadcast({"go": 1})
                return star.flush(10.0)
            return wait_for_one(star)
        finally:
            star.close()

    tasks = Job(4).run(use)
    assert [task.error for task in tasks] == [None] * 4
    assert [task.result for task in tasks] == [True] + [Message(0, {"go": 1})] * 3


def test_different_plans_are_told_by_all():
    tasks = Job(3).run(lambda meeting: meeting.agree("x" if meeting.membership.rank == 2 else "y"))
    assert {type(task.error) for task in tasks} == {AgreementError}
    assert {task.error.seen for task in tasks} == {"node00002 (task 2) made another plan than the 2 others, from the same facts"}
    assert not any(task.error.local for task in tasks)  # so it is printed once


def test_a_script_that_differs_is_told_by_all_before_anything_starts():
    tasks = Job(3, change={1: {"program_digest": "old"}}).run()
    assert {type(task.error) for task in tasks} == {AgreementError}
    assert "differs on node00001 (task 1)" in tasks[0].error.seen


def test_a_local_error_is_told_by_all():
    problem = Problem(127, "start train.py", "no such file", "check the path")
    tasks = Job(3, change={2: {"problems": (problem,)}}).run()
    assert {type(task.error) for task in tasks} == {ScriptMissingError}
    assert tasks[0].error.seen == "node00002: no such file"


def test_f103_f132_w16_missing_tasks_are_named_at_the_deadline_and_to_all_who_are_here():
    job = quick(Job(4))
    start = time.monotonic()
    tasks = job.run(ranks=(0, 2))
    assert time.monotonic() - start < 30
    assert {task.error.seen for task in tasks} == {"2 of 4 tasks are here, but not tasks 1, 3; by node: localhost (2 of 4 here)"}
    assert not any(task.error.local for task in tasks)


def test_w16_a_task_that_was_early_hears_the_verdict_too():
    """Its own deadline passes before the hub's."""
    job = quick(Job(3), 2.0)
    early = job.start(1)
    time.sleep(1.5)
    tasks = [job.start(0), early]
    for task in tasks:
        task.join()
    assert tasks[0].error.seen == tasks[1].error.seen == "2 of 3 tasks are here, but not task 2; by node: localhost (2 of 3 here)"


def test_w16_a_missing_first_task_is_named_by_those_who_look_for_it(impatient):
    (task,) = quick(Job(2), 0.5).run(ranks=(1,))
    assert task.error.seen.startswith("no task 0 on localhost: ")
    assert "connection refused" in task.error.seen
    assert task.error.local  # nobody else can tell


def test_a_task_that_comes_late_is_waited_for():
    job = Job(3)
    early = [job.start(rank) for rank in (0, 1)]
    time.sleep(1.0)
    late = job.start(2)
    for task in (*early, late):
        task.join()
        assert task.error is None


def test_p99_who_is_missing_is_said_while_waiting(monkeypatch):
    monkeypatch.setattr("slaunch.rendezvous.assemble.TELL_S", 0.3)
    (task,) = quick(Job(2), 1.5).run(ranks=(0,))
    assert "waiting for task 1; by node: localhost (1 of 2 here)" in task.said


def test_f318_a_wrong_secret_does_not_meet_and_both_sides_say_why(impatient):
    job = quick(Job(2))
    first = job.start(0)
    other = replace_env(job, {secret.VARIABLE: secret.fresh_text()}).start(1)
    for task in (first, other):
        task.join()
    assert "turned away 127.0.0.1:" in first.error.seen
    assert "does not know the job's secret" in other.error.seen


def replace_env(job, env):
    return Job(job.size, job.job, env, job.options, job.change)


def test_p28_two_steps_meet_beside_each_other():
    jobs = [Job(3) for _ in range(4)]
    tasks = [job.start(rank, lambda meeting: meeting.agree("x")) for rank in range(3) for job in jobs]
    for task in tasks:
        task.join()
        assert task.error is None


@pytest.mark.parametrize("taken", [1, 5])
def test_p30_p31_w26_taken_ports_are_passed_by(taken):
    job = Job(2)
    others = [sock for port in ports_of(job)[:taken] for sock in listen([LOCAL], port)]
    tasks = job.run(lambda meeting: meeting.agree("x"))
    close_all(others)
    assert [task.error for task in tasks] == [None, None]


def test_all_ports_taken_is_an_error_with_their_numbers():
    job = quick(Job(2), 0.5)
    others = [sock for port in ports_of(job) for sock in listen([LOCAL], port)]
    (task,) = job.run(ranks=(0,))
    close_all(others)
    assert f"none of the ports {ports_of(job)[0]}, " in task.error.seen
    assert isinstance(task.error, RendezvousError)


def test_w17_a_stale_task_of_an_earlier_attempt_does_not_disturb(impatient):
    """It looks at the same ports only by accident; if it does, it is turned away by its identity."""
    job = Job(2)
    stale = quick(Job(2, "another job", job.env), 0.5)
    tasks = [job.start(0), stale.start(1), job.start(1)]
    for task in tasks:
        task.join()
    assert [tasks[0].error, tasks[2].error] == [None, None]
    assert tasks[1].error.local


def test_w46_nothing_listens_after_the_meeting():
    job = Job(2)

    def use(meeting):
        meeting.agree("x")
        for port in ports_of(job):
            with socket.socket() as probe:
                assert probe.connect_ex((LOCAL, port)) != 0
        return True

    assert [task.result for task in job.run(use)] == [True, True]


def test_p57_the_agent_never_imports_mpi4py():
    """Neither to decide nor to meet."""
    import subprocess
    import sys

    code = "import sys, slaunch.rendezvous.meet, slaunch.rendezvous.mpi, slaunch.rendezvous.slurm, slaunch.rendezvous.agents;"
    code += "from slaunch.rendezvous.library import find_library; import os; find_library(dict(os.environ));"
    code += "sys.exit('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_the_secret_file_serves_where_nothing_else_does(monkeypatch, tmp_path):
    from slaunch.channel import munge

    monkeypatch.setattr(munge, "LIBRARY", "libmunge-is-not-here.so")
    tasks = Job(3, env={secret.FOLDER_VARIABLE: str(tmp_path / "s")}).run()
    assert [task.error for task in tasks] == [None] * 3
    assert os.listdir(tmp_path / "s") == []


def test_another_network_than_the_names_lead_to_gets_a_star_of_its_own():
    job = Job(3)
    job.options = replace(job.options, network="lo")

    def use(meeting):
        meeting.agree("x")
        star = meeting.star()
        try:
            port = meeting.membership.facts[0].control_port
            assert port and port not in ports_of(job)
            if star.is_hub:
                star.broadcast({"go": 1})
                return star.flush(10.0)
            return wait_for_one(star)
        finally:
            star.close()

    tasks = job.run(use)
    assert [task.result for task in tasks] == [True] + [Message(0, {"go": 1})] * 2


def test_a_task_that_leaves_in_the_middle_is_named():
    job = Job(3)

    def use(meeting):
        if meeting.membership.rank == 1:
            return  # its thread closes the meeting and ends
        meeting.agree("x")

    tasks = job.run(use)
    assert tasks[1].error is None
    assert tasks[0].error.seen == "task 1 left: it closed the connection"
    assert tasks[2].error.seen == tasks[0].error.seen
