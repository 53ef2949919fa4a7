"""Hangs and the time limit, played through in virtual time."""

from __future__ import annotations

import signal

from slaunch.agent.events import WorkersHeard, WorkersSilent
from slaunch.agent.values import Look, Verdict

from .world import HANG_S, World, look, verdict


def fall_silent(world: World, node: int, time_s: float, *looks: Look) -> None:
    world.at(time_s, lambda: world.feed(world.agents[node], WorkersSilent(looks)))


def speak(world: World, node: int, time_s: float) -> None:
    world.at(time_s, lambda: world.feed(world.agents[node], WorkersHeard()))


def test_a_hang_is_when_all_nodes_are_silent() -> None:
    world = World(2, 2)
    fall_silent(world, 0, 10.0, look(0), look(1))
    fall_silent(world, 1, 50.0, look(2), look(3, 1.0, ""))
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("hang", 76)
    assert [odd.rank for odd in result.hung] == [3]
    assert result.first is not None and result.first.rank == 3, "its last words are asked for"
    assert 50.0 <= max(agent.finished_at for agent in world.agents) <= 51.0
    assert all(worker.signals == [signal.SIGABRT] for agent in world.agents for worker in agent.workers.values())


def test_a_node_that_speaks_again_is_not_silent() -> None:
    world = World(2, 2)
    fall_silent(world, 0, 10.0, look(0), look(1))
    speak(world, 0, 11.0)
    fall_silent(world, 1, 12.0, look(2), look(3))
    for rank in range(4):
        world.exit(rank, 0, 100.0)
    world.run()
    assert verdict(world).outcome == "success"


def test_nodes_that_have_ended_do_not_keep_a_hang_from_being_seen() -> None:
    world = World(3, 1)
    fall_silent(world, 1, 10.0, look(1))
    world.exit(2, 0, 15.0)
    world.exit(0, 0, 20.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.ended) == ("hang", 2)
    assert 20.0 + HANG_S <= max(agent.finished_at for agent in world.agents) <= 21.0 + HANG_S


def test_a_node_that_prints_nothing_may_end_a_little_later_than_the_one_that_does() -> None:
    world = World(2, 1)
    fall_silent(world, 1, 10.0, look(1))
    world.exit(0, 0, 50.0)
    world.exit(1, 0, 50.0 + HANG_S - 1)
    world.run()
    assert verdict(world) == Verdict("success", 0, ended=2)


def test_nodes_without_workers_to_watch_are_silent_from_the_start() -> None:
    world = World(2, 1)
    fall_silent(world, 1, 0.0)
    fall_silent(world, 0, 10.0, look(0))
    world.run()
    assert verdict(world).outcome == "hang"
    world = World(1, 1)
    fall_silent(world, 0, 0.0)
    world.exit(0, 0, 5.0)
    world.run()
    assert verdict(world).outcome == "success"


def test_a_failure_before_the_silence_is_the_cause() -> None:
    world = World(2, 1, grace_s=30.0)
    world.worker(0).stop_s = None
    world.exit(1, 5, 1.0)
    fall_silent(world, 0, 10.0, look(0))
    world.run()
    assert (verdict(world).outcome, verdict(world).code) == ("failure", 5)


def test_the_time_limit() -> None:
    world = World(3, 2, limit_at=100.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("time", 124)
    assert 100.0 <= max(agent.finished_at for agent in world.agents) <= 101.0


def test_a_failure_before_the_time_limit_is_the_cause() -> None:
    world = World(2, 1, grace_s=30.0, limit_at=100.0)
    world.worker(0).stop_s = None
    world.exit(1, 5, 90.0)
    world.run()
    assert (verdict(world).outcome, verdict(world).code) == ("failure", 5)
