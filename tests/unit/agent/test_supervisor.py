"""The supervisor, played through in virtual time."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from slaunch.agent import hub_side
from slaunch.agent.events import AgentGone, AgentSaid, Fenced, TellAll, Tick
from slaunch.agent.hub_side import Hub
from slaunch.agent.messages import Decided, NodeEnded, Silent, StopAsked, StopWorkers, pack, unpack
from slaunch.agent.node_state import KILL_S, LEFTOVER_S
from slaunch.agent.values import Stopped, Verdict
from slaunch.agent.verdict import SHOWN
from slaunch.node.values import Problem

from .world import PATIENCE_S, WALL, World, look, verdict

BOTH = pytest.mark.parametrize("nodes", [1, 3])


@BOTH
def test_f133_success_waits_for_all_workers(nodes: int) -> None:
    world = World(nodes, 2)
    for rank in range(2 * nodes):
        world.exit(rank, 0, 1.0 + rank * 100)
    world.run(10_000)
    assert verdict(world) == Verdict("success", 0, ended=2 * nodes)
    assert world.now >= 1.0 + (2 * nodes - 1) * 100


@BOTH
def test_w3_p74_exit_code_is_that_of_the_first_failure(nodes: int) -> None:
    world = World(nodes, 2)
    world.exit(1, 3, 5.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("failure", 3)
    assert result.first is not None and (result.first.rank, result.first.time_s) == (1, WALL + 5.0)
    assert result.others == ()


def test_w24_p73_a_failure_on_one_node_stops_all_nodes_within_half_a_second() -> None:
    world = World(8, 2)
    world.exit(15, 1, 5.0)
    world.run()
    assert verdict(world).code == 1
    assert max(agent.finished_at for agent in world.agents) < 5.5


def test_p95_workers_killed_by_the_stop_are_no_failures() -> None:
    world = World(3, 4)
    world.exit(5, 7, 1.0)
    world.run()
    result = verdict(world)
    assert result.first is not None and result.first.rank == 5
    assert result.others == ()


def test_p94_first_cause_by_corrected_clocks() -> None:
    """Rank 2's node is 100 s ahead, and its news arrives first; rank 5 failed 50 ms earlier."""
    world = World(3, 2)
    world.agents[1].offset_s, world.agents[2].offset_s = 100.0, -100.0
    world.links[2, 0] = 5.2  # a slow way from node 2 to the hub
    world.exit(5, 9, 5.0)
    world.exit(2, 1, 5.05)
    world.run()
    result = verdict(world)
    assert result.code == 9
    assert result.first is not None and (result.first.rank, result.first.time_s) == (5, pytest.approx(WALL + 5.0))
    assert [other.rank for other in result.others] == [2]


def test_p95_of_nearly_simultaneous_failures_the_victim_is_not_blamed() -> None:
    world = World(2, 1)
    world.exit(0, 1, 5.0, cause="peer")
    world.exit(1, 4, 5.005)
    world.run()
    assert verdict(world).code == 4


@BOTH
def test_f131_f309_a_signal_is_128_plus_n(nodes: int) -> None:
    world = World(nodes, 2)
    world.exit(0, 128 + signal.SIGSEGV, 1.0)
    world.run()
    result = verdict(world)
    assert result.code == 139
    assert result.first is not None and result.first.signal == signal.SIGSEGV


@BOTH
def test_workers_that_fail_together_end_the_job_at_once(nodes: int) -> None:
    world = World(nodes, 2, grace_s=30.0)
    for rank in range(2 * nodes):
        world.exit(rank, 3 + rank, 1.0)
    world.run()
    assert verdict(world).outcome == "failure"
    assert len(verdict(world).others) == 2 * nodes - 1
    assert max(agent.finished_at for agent in world.agents) <= 1.5


@BOTH
def test_f127_a_worker_that_ignores_the_stop_is_killed_after_the_grace(nodes: int) -> None:
    world = World(nodes, 2, grace_s=3.0)
    world.worker(0).stop_s = None
    world.exit(1, 3, 1.0)
    world.run()
    assert verdict(world).code == 3
    assert 4.0 <= max(agent.finished_at for agent in world.agents) <= 4.0 + 0.5


def test_w28_graces_do_not_add_up() -> None:
    world = World(4, 8, grace_s=3.0)
    for rank in range(32):
        world.worker(rank).stop_s = None
    world.exit(1, 3, 1.0)
    world.run()
    assert verdict(world).code == 3
    assert max(agent.finished_at for agent in world.agents) <= 4.5


@BOTH
def test_p96_what_workers_leave_behind_is_killed(nodes: int) -> None:
    world = World(nodes, 2, grace_s=30.0)
    world.worker(0).leftovers, world.worker(0).stubborn = 2, True
    world.exit(1, 3, 1.0)
    world.run()
    assert verdict(world).code == 3
    assert world.worker(0).leftovers == 0
    assert max(agent.finished_at for agent in world.agents) <= 1.0 + LEFTOVER_S + 0.5


@BOTH
def test_p76_helpers_that_outlive_a_good_end_are_asked_to_go(nodes: int) -> None:
    world = World(nodes, 1, grace_s=5.0)
    world.worker(0).leftovers, world.worker(0).stubborn = 1, True
    for rank in range(nodes):
        world.exit(rank, 0, 1.0)
    world.run()
    assert verdict(world).outcome == "success"
    assert world.worker(0).leftovers == 0


def test_an_unkillable_process_is_named_and_not_waited_for() -> None:
    world = World(2, 2, grace_s=3.0)
    world.worker(3).unkillable, world.worker(3).stop_s = True, None
    world.exit(0, 3, 1.0)
    world.run()
    result = verdict(world)
    assert result.code == 3
    assert [(stuck.pid, stuck.state) for stuck in result.stuck] == [(3, "D")]
    assert max(agent.finished_at for agent in world.agents) <= 4.0 + KILL_S + 0.5


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("after_s", [0.0, 0.2])
def test_w24_a_lost_agent_ends_the_job_and_victims_are_not_blamed(silent: bool, after_s: float) -> None:
    world = World(4, 1)
    world.kill_agent(2, 5.0, silent)
    world.exit(1, 1, 5.0 + after_s, cause="peer")
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("lost", 75)
    assert [gone.node for gone in result.lost] == [2]
    noticed = 5.0 + PATIENCE_S * silent
    assert max(agent.finished_at for agent in world.agents) <= noticed + 2.0


def test_a_node_that_reported_its_failure_and_then_died_is_blamed_for_the_failure() -> None:
    world = World(3, 2, grace_s=3.0)
    world.worker(4).stop_s = None
    world.exit(5, 6, 1.0)
    world.kill_agent(2, 2.0)
    world.run()
    assert verdict(world).code == 6


def test_spokes_without_a_hub_stop_by_themselves() -> None:
    world = World(4, 2)
    world.kill_agent(0, 5.0)
    world.run()
    result = {replace(agent.verdict, lost=()) for agent in world.agents[1:] if agent.verdict}
    assert result == {Verdict("lost", 75)}
    assert all(agent.finished_at <= 7.0 for agent in world.agents[1:])
    assert not any(worker.alive for agent in world.agents for worker in agent.workers.values())


def test_a_lost_agent_whose_workers_had_ended_harms_nobody() -> None:
    world = World(2, 1)
    world.exit(1, 0, 1.0)
    world.kill_agent(1, 2.0)
    world.exit(0, 0, 3.0)
    world.run()
    assert verdict(world) == Verdict("success", 0, ended=2)


@BOTH
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT])
def test_f128_stop_by_signal(nodes: int, number: signal.Signals) -> None:
    world = World(nodes, 2)
    world.signal(nodes - 1, number, 2.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("signal", 128 + number)
    assert result.stopped is not None and result.stopped.node == nodes - 1
    expected = signal.SIGINT if number == signal.SIGINT else signal.SIGTERM
    assert all(worker.signals == [expected] for agent in world.agents for worker in agent.workers.values())


def test_p78_one_signal_to_all_agents_and_again_is_one_request() -> None:
    world = World(4, 2, grace_s=30.0)
    for agent in range(4):
        world.worker(2 * agent).stop_s = 8.0
        for time_s in (2.0, 2.001, 2.2):
            world.signal(agent, signal.SIGTERM, time_s + agent * 0.01)
    world.run()
    assert verdict(world).code == 143
    assert all(worker.signals == [signal.SIGTERM] for agent in world.agents for worker in agent.workers.values())


def test_f129_a_second_interrupt_stops_faster_everywhere() -> None:
    world = World(3, 2, grace_s=60.0)
    for rank in range(6):
        world.worker(rank).stop_s = None
    world.signal(1, signal.SIGINT, 1.0)
    world.signal(1, signal.SIGINT, 3.0)
    world.run()
    assert verdict(world).code == 130
    assert max(agent.finished_at for agent in world.agents) <= 5.5


@pytest.mark.parametrize("order", [-0.1, 0.1])
def test_a_signal_to_the_whole_step_is_not_a_workers_failure(order: float) -> None:
    """The scheduler signals workers and agents, in any order."""
    world = World(3, 2)
    for agent in range(3):
        world.signal(agent, signal.SIGTERM, 2.0)
    for rank in range(6):
        world.exit(rank, 128 + signal.SIGTERM, 2.0 + order)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("signal", 143)


def test_p80_user_signals_go_to_all_workers_once_and_stop_nobody() -> None:
    world = World(2, 2)
    world.signal(1, signal.SIGUSR1, 1.0)
    world.signal(1, signal.SIGUSR2, 2.0)
    for rank in range(4):
        world.exit(rank, 0, 3.0)
    world.run()
    assert verdict(world).outcome == "success"
    assert [world.worker(rank).signals for rank in range(4)] == [[10, 12]] * 4


def test_a_node_that_cannot_start_ends_the_job_with_its_problem() -> None:
    world = World(3, 2)
    world.cannot_start(2, 0.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code, result.problem_host) == ("start", 73, "n2")
    assert not any(worker.alive for agent in world.agents for worker in agent.workers.values())


def test_an_order_and_a_verdict_survive_the_wire() -> None:
    world = World(3, 2)
    world.exit(5, 9, 5.0)
    world.signal(0, signal.SIGTERM, 5.0)
    world.kill_agent(1, 5.0)
    world.run()
    for message in (Decided(verdict(world)), StopWorkers(15, 3.0), NodeEnded(3)):
        assert unpack(pack(message)) == message


def test_a_strangers_message_is_refused() -> None:
    for body in ({}, {"say": "Nonsense"}, {"say": "NodeEnded", "ended": 1}, {"say": "StopWorkers", "x": 2}):
        with pytest.raises(ValueError, match="not a message"):
            unpack(body)


# -- the hub


def test_after_its_verdict_the_hub_says_nothing_more() -> None:
    hub = Hub(("n0", "n1"), 3.0, frozenset({0, 1}), decided=Verdict("success", 0))
    for event in (AgentGone(1, "closed", 0.0), AgentSaid(1, NodeEnded(1)), AgentSaid(1, Silent((look(1),))), Tick()):
        assert hub_side.step(hub, event, 100.0) == (hub, ())


def test_what_the_verdict_carries_is_bounded_however_many_fail() -> None:
    world = World(50, 8)
    for rank in range(400):
        world.exit(rank, 1 + rank % 7, 1.0)
    world.run()
    result = verdict(world)
    assert len(result.others) == SHOWN
    assert SHOWN < result.failed <= 400
    assert len(str(pack(Decided(result)))) < 20_000


def test_p78_one_signal_to_all_agents_is_one_order_to_each() -> None:
    """However many pass it on: n messages to n agents each would be n² in all."""
    hub, orders = Hub(("n0", "n1", "n2", "n3"), 30.0, frozenset(range(4))), 0
    for index in range(4):
        asked = StopAsked(Stopped(signal.SIGTERM, index, f"n{index}", "", WALL), 30.0)
        hub, actions = hub_side.step(hub, AgentSaid(index, asked), 5.0 + 0.1 * index)
        orders += len(actions)
    assert orders == 1
    hurry = StopAsked(Stopped(signal.SIGINT, 2, "n2", "", WALL), 2.0)
    hub, actions = hub_side.step(hub, AgentSaid(2, hurry), 7.0)
    assert [action.message for action in actions if isinstance(action, TellAll)] == [StopWorkers(signal.SIGINT, 2.0)]


def test_a_node_counts_once() -> None:
    hub = Hub(("n0", "n1"), 3.0, frozenset({0, 1}))
    for _ in range(3):
        hub, actions = hub_side.step(hub, AgentSaid(1, NodeEnded(4)), 1.0)
        assert actions == ()
    assert (hub.pending, hub.found.ended) == (frozenset({0}), 4)


@pytest.mark.parametrize(("code", "least_s", "most_s"), [(3, 0.0, 0.1), (139, 0.0, 0.1), (143, 0.3, 0.5)])
def test_only_a_death_by_a_stop_signal_waits_for_an_explanation(code: int, least_s: float, most_s: float) -> None:
    world = World(1, 2)
    world.exit(0, code, 1.0)
    world.run()
    assert verdict(world).code == code
    assert least_s <= world.agents[0].finished_at - 1.0 <= most_s


@BOTH
def test_w20_where_another_job_may_begin_no_worker_has_any_grace(nodes: int) -> None:
    world = World(nodes, 1, grace_s=600.0)
    for rank in range(nodes):
        world.worker(rank).stop_s = None
    world.at(1.0, lambda: world.feed(world.agents[0], Fenced(Problem(69, "go on", "no entry", "look at etcd"))))
    world.run()
    assert (verdict(world).outcome, verdict(world).code) == ("start", 69)
    assert max(agent.finished_at for agent in world.agents) < 2.0
