"""Restarts, played through in virtual time."""

from __future__ import annotations

import signal
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from slaunch.agent.messages import Begin, NewAttempt, PlanMade, Ports, Ready, pack, unpack
from slaunch.agent.policy import Policy, Record, refusal, wait_s, with_end
from slaunch.agent.renewal import PREPARE_S
from slaunch.agent.values import Failure, Lost, Stuck, Verdict

from .test_lives import LIVES, Life, inflict, survivors
from .world import PATIENCE_S, World, look, verdict

BOTH = pytest.mark.parametrize("nodes", [1, 3])


def restarts(world: World) -> list[int]:
    """Numbers of the attempts that some node has started, after the first one."""
    return sorted({attempt for _, _, attempt, _ in world.begun})


@BOTH
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_w22_f126_f324_exactly_so_many_restarts(nodes: int, limit: int) -> None:
    """Something fails every 10 s."""
    world = World(nodes, 2, policy=Policy(limit))
    for turn in range(6):
        world.exit(turn % (2 * nodes), 10 + turn, 10.0 * (turn + 1))
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("failure", 10 + limit)
    assert restarts(world) == list(range(1, limit + 1))
    assert [each.code for each in world.ended] == list(range(10, 10 + limit))
    assert result.final == (f"no restart: all {limit} are used up" if limit else "")
    assert {agent.attempt for agent in world.agents} == {limit}


@BOTH
def test_f122_a_restarted_job_may_end_well(nodes: int) -> None:
    world = World(nodes, 2, policy=Policy(3), life_s=50.0)
    world.exit(0, 1, 5.0)
    world.run()
    assert verdict(world) == Verdict("success", 0, ended=2 * nodes)
    assert restarts(world) == [1]


def test_f306_p98_the_same_ranks_on_the_same_nodes() -> None:
    world = World(4, 2, policy=Policy(1), life_s=50.0)
    world.exit(5, 1, 5.0)
    world.run()
    assert [sorted(agent.workers) for agent in world.agents] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_all_nodes_start_anew_within_half_a_second_of_a_failure() -> None:
    world = World(8, 2, policy=Policy(1), life_s=50.0)
    world.exit(5, 1, 5.0)
    world.run()
    assert len(world.begun) == 8
    assert max(time for time, *_ in world.begun) < 5.5


@BOTH
def test_new_ports_each_time(nodes: int) -> None:
    world = World(nodes, 1, policy=Policy(2))
    for time_s in (1.0, 10.0, 20.0):
        world.exit(0, 1, time_s)
    world.run()
    assert world.shared == {n: tuple((1000 * n + i,) for i in range(nodes)) for n in (1, 2)}


def test_the_wait_before_a_restart_doubles() -> None:
    world = World(2, 1, policy=Policy(3, delay_s=2.0))
    for time_s in (100.0, 200.0, 300.0):
        world.exit(1, 1, time_s)
    world.run(400.0)
    waits = [max(t for t, _, attempt, _ in world.begun if attempt == n) - 100.0 * n for n in (1, 2, 3)]
    assert all(wished <= wait <= wished + 0.5 for wished, wait in zip((2.0, 4.0, 8.0), waits, strict=True))


@BOTH
@pytest.mark.parametrize("after_s", [-0.5, 0.0, 0.05, 1.0, 1.95, 2.0, 5.0])
def test_no_restart_after_a_request_to_stop(nodes: int, after_s: float) -> None:
    """Before the failure, while workers end, during the wait, and afterwards."""
    world = World(nodes, 2, policy=Policy(9, delay_s=2.0))
    world.exit(0, 1, 5.0)
    world.signal(nodes - 1, signal.SIGTERM, 5.0 + after_s)
    world.run()
    assert all(agent.verdict is not None for agent in world.agents)
    assert all(time <= 5.5 + after_s for time, *_ in world.begun)
    assert max(agent.finished_at for agent in world.agents) <= 5.5 + max(0.0, after_s)
    if after_s >= 0.1:
        assert (verdict(world).outcome, verdict(world).code) == ("signal", 143)


@BOTH
@pytest.mark.parametrize("kind", ["start", "time", "code", "program"])
def test_no_restart_after_what_would_happen_again(nodes: int, kind: str) -> None:
    world = World(nodes, 1, policy=Policy(9, final_codes=frozenset({42})), limit_at=100.0)
    if kind == "start":
        world.cannot_start(0, 1.0)
    elif kind == "code":
        world.exit(0, 42, 1.0)
    elif kind == "program":
        world.exit(0, 127, 1.0, cause="start")
    world.run()
    assert verdict(world).outcome == {"code": "failure", "program": "failure"}.get(kind, kind)
    assert verdict(world).final
    assert world.begun == []


def test_the_time_limit_is_for_all_attempts_together() -> None:
    world = World(2, 1, policy=Policy(9), limit_at=100.0)
    for time_s in (30.0, 60.0, 90.0):
        world.exit(1, 1, time_s)
    world.run()
    assert (verdict(world).outcome, restarts(world)) == ("time", [1, 2, 3])
    assert 100.0 <= max(agent.finished_at for agent in world.agents) <= 101.0


def test_no_restart_where_a_process_cannot_be_killed() -> None:
    world = World(2, 2, policy=Policy(9))
    world.worker(3).unkillable, world.worker(3).stop_s = True, None
    world.exit(0, 3, 1.0)
    world.run()
    assert verdict(world).final == "no restart: a process cannot be killed"
    assert world.begun == []


def test_what_is_left_of_an_attempt_is_gone_before_the_next_one() -> None:
    """The world itself fails where workers of two attempts run at the same time."""
    world = World(3, 2, policy=Policy(2), life_s=100.0)
    world.worker(0).leftovers, world.worker(0).stubborn = 2, True
    world.worker(3).stop_s = None
    world.exit(1, 1, 1.0)
    world.exit(1, 1, 50.0)
    world.run()
    assert verdict(world).outcome == "success"
    assert restarts(world) == [1, 2]


def test_nodes_that_make_another_plan_are_told_of_before_a_worker_starts() -> None:
    world = World(3, 1, policy=Policy(1))
    world.odd_plans = {2}
    world.exit(0, 1, 1.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("start", 70)
    assert result.problem is not None and "node 2 (n2)" in result.problem.seen
    assert world.begun == []


def test_a_node_without_ports_ends_the_job() -> None:
    world = World(3, 1, policy=Policy(5))
    world.portless = {1}
    world.exit(0, 1, 1.0)
    world.run()
    assert (verdict(world).outcome, verdict(world).problem_host) == ("start", "n1")
    assert world.begun == []


def test_a_node_that_never_gets_ready_is_named() -> None:
    world = World(3, 1, policy=Policy(5))
    world.mute = {1}
    world.exit(0, 1, 1.0)
    world.run()
    result = verdict(world)
    assert result.outcome == "start"
    assert result.problem is not None and "node 1 (n1)" in result.problem.seen
    assert max(agent.finished_at for agent in world.agents) <= 1.0 + PREPARE_S + 1.0


# -- nodes that are lost


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("limit", [0, 3])
def test_f124_survivors_go_on_without_a_lost_node(silent: bool, limit: int) -> None:
    world = World(4, 2, policy=Policy(limit, least=3), life_s=50.0)
    world.kill_agent(2, 5.0, silent)
    world.exit(1, 1, 5.1, cause="peer")
    world.run()
    assert verdict(world) == Verdict("success", 0, ended=6)
    assert {(agent, attempt, members) for _, agent, attempt, members in world.begun} == {
        (agent, 1, (0, 1, 3)) for agent in (0, 1, 3)
    }
    assert sorted(world.agents[3].workers) == [4, 5]
    assert max(time for time, *_ in world.begun) <= 5.0 + PATIENCE_S * silent + 2.5
    assert [gone.node for gone in world.ended[0].lost] == [2]


def test_too_few_survivors_end_the_job() -> None:
    world = World(4, 2, policy=Policy(5, least=3), life_s=50.0)
    world.kill_agent(2, 5.0)
    world.kill_agent(1, 20.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("lost", 75)
    assert result.final == "no restart: 2 nodes are left, and at least 3 are wanted"
    assert restarts(world) == [1]


def test_a_node_lost_while_another_attempt_is_prepared() -> None:
    world = World(4, 1, policy=Policy(5, delay_s=3.0, least=2), life_s=50.0)
    world.exit(0, 1, 5.0)
    world.kill_agent(2, 6.0)
    world.run()
    assert verdict(world).outcome == "success"
    assert {members for *_, members in world.begun} == {(0, 1, 3)}


def test_f125_the_loss_of_a_node_that_has_ended_well_is_no_reason_to_start_anew() -> None:
    world = World(3, 1, policy=Policy(5, least=2))
    world.exit(2, 0, 1.0)
    world.kill_agent(2, 2.0)
    for rank in (0, 1):
        world.exit(rank, 0, 30.0)
    world.run()
    assert verdict(world).outcome == "success"
    assert restarts(world) == []


def test_a_node_that_has_ended_and_is_lost_is_not_counted_on() -> None:
    world = World(3, 1, policy=Policy(5))
    world.exit(2, 0, 1.0)
    world.kill_agent(2, 2.0)
    world.exit(0, 3, 5.0)
    world.run()
    assert (verdict(world).code, verdict(world).final) == (3, "no restart: a node is lost")
    world = World(3, 1, policy=Policy(5, least=2), life_s=10.0)
    world.exit(2, 0, 1.0)
    world.kill_agent(2, 2.0)
    world.exit(0, 3, 5.0)
    world.run()
    assert verdict(world).outcome == "success"
    assert {members for *_, members in world.begun} == {(0, 1)}


def test_where_others_may_go_on_without_it_a_node_kills_its_workers_at_once() -> None:
    world = World(3, 1, grace_s=60.0, policy=Policy(least=2))
    for rank in range(3):
        world.worker(rank).stop_s = None
    world.kill_agent(0, 5.0)
    world.run()
    assert max(agent.finished_at for agent in world.agents[1:]) <= 5.5


# -- the rules by themselves


def failed(code: int = 1, **more: object) -> Verdict:
    first = Failure(0, 0, 0, "n0", 1, code, 0, 0.0)
    return Verdict("failure", code, first, **more)  # type: ignore[arg-type]


def test_only_restarts_of_the_last_while_count() -> None:
    policy = Policy(2, window_s=100.0)
    record = Record((10.0, 50.0))
    assert refusal(policy, record, failed(), 1, 0, 60.0) == "no restart: all 2 are used up"
    assert refusal(policy, record, failed(), 1, 0, 115.0) == ""


def test_no_restart_after_attempts_without_progress() -> None:
    policy = Policy(99, max_idle=2)
    record = Record()
    said = []
    for progress in (5, 7, 7, 3):
        record = with_end(record, progress)
        said.append(refusal(policy, record, failed(), 1, 0, 0.0))
    assert said == ["", "", "", "no restart: no progress in 2 attempts"]
    assert with_end(record, 8) == Record((), 8, 0)


def test_a_program_that_tells_no_progress_makes_none() -> None:
    assert with_end(with_end(Record(), -1), -1).idle == 2


def test_a_failure_where_only_lost_nodes_are_gone_on_from() -> None:
    assert refusal(Policy(0, least=2), Record(), failed(), 3, 0, 0.0) == "no restart: none is asked for"
    assert refusal(Policy(0, least=2), Record(), failed(), 2, 1, 0.0) == "no restart: none is asked for"
    assert refusal(Policy(0, least=2), Record(), Verdict("lost", 75), 2, 1, 0.0) == ""


def test_waits() -> None:
    policy = Policy(99, delay_s=10.0, least=1, fence_s=2.0)
    assert [wait_s(policy, Record((0.0,) * n), 0) for n in (0, 1, 2, 3, 50)] == [0.0, 10.0, 20.0, 40.0, 600.0]
    assert wait_s(policy, Record(), 1) == 2.0


@pytest.mark.parametrize("outcome", ["success", "signal", "start", "time"])
def test_ends_after_which_there_is_none(outcome: str) -> None:
    assert refusal(Policy(9), Record(), Verdict(outcome, 0), 1, 0, 0.0).startswith("no restart after")


def test_the_words_survive_the_wire() -> None:
    ended = failed(lost=(Lost(1, "n1", "gone", 0.0),), stuck=(Stuck(0, "n0", 1, "x", "D"),), final="because")
    ready = Ready((1, 2), ("no disk",), ("late",))
    words = (NewAttempt(3, (0, 2), 1.5, ended), ready, Ports(((1, 2), (3,)), (0, 2)), PlanMade("abc"), Begin())
    assert all(unpack(pack(message)) == message for message in words)


# -- many lives

POLICIES = st.builds(
    Policy,
    st.integers(0, 3),
    st.sampled_from([0.0, 0.0, 1.0]),
    st.just(inf),
    st.sampled_from([frozenset(), frozenset({3, 42})]),
    st.just(0),
    st.sampled_from([0, 0, 1, 2]),
)


def play(life: Life, policy: Policy) -> World:
    world = World(life.nodes, life.per_node, life.grace_s, life.seed, policy=policy, life_s=40.0)
    for agent in world.agents[1:]:
        agent.offset_s = life.offsets[agent.index]
    for rank in range(life.nodes * life.per_node):
        worker = world.worker(rank)
        worker.stop_s, worker.leftovers, worker.stubborn, worker.unkillable = life.characters[rank % len(life.characters)]
        world.at(100.0, lambda worker=worker: world._exit(worker, 0))
    for fault in life.faults:
        inflict(world, life, fault)
    world.run(10_000.0)
    return world


@examples(600)
@given(LIVES, POLICIES)
def test_w22_whatever_happens_the_limit_holds_and_all_end_alike(life: Life, policy: Policy) -> None:
    """The world itself sees to it that an attempt has one plan, and no worker of another attempt runs beside it."""
    world = play(life, policy)
    verdicts = survivors(world)
    assert sum(each.outcome != "lost" for each in world.ended) <= policy.max_restarts
    assert sum(each.outcome == "lost" for each in world.ended) < max(1, life.nodes)
    assert restarts(world) == sorted(set(restarts(world)) & set(range(1, len(world.ended) + 1)))
    if not world.agents[0].dead:
        assert len(set(verdicts)) == 1
    for agent in world.agents:
        if agent.verdict is not None:
            assert not [w for w in agent.workers.values() if (w.alive or w.leftovers) and not w.unkillable]


@examples(300)
@given(LIVES, POLICIES)
def test_whatever_happens_nothing_starts_after_a_request_to_stop(life: Life, policy: Policy) -> None:
    world = play(life, policy)
    asked = [f.time_s for f in life.faults if f.kind in ("signal", "hurry") and not world.agents[f.where % life.nodes].dead]
    if asked and not world.agents[0].dead:
        assert all(time <= min(asked) + 0.2 for time, *_ in world.begun)


def test_a_hang_may_be_followed_by_a_restart() -> None:
    from slaunch.agent.events import WorkersSilent

    world = World(2, 1, policy=Policy(1), life_s=5.0)
    for node in range(2):
        world.at(10.0, lambda node=node: world.feed(world.agents[node], WorkersSilent((look(node),))))
    world.run()
    assert verdict(world).outcome == "success"
    assert [each.outcome for each in world.ended] == ["hang"]
