"""Requests to save, played through in virtual time: one for all workers, whoever was asked and however often."""

from __future__ import annotations

import json
import signal
from math import inf

import pytest

from slaunch.agent import supervisor
from slaunch.agent.asking import ROUND_S, TIME, Asking, on_asked, on_end_known, warn_at
from slaunch.agent.events import EndKnown, Resume, SignalArrived, SignalWorkers, Suspend
from slaunch.agent.messages import EndsIn, Message, SaveAsked, SaveNow, pack, unpack
from slaunch.agent.policy import Policy
from slaunch.agent.values import Stopped

from .world import World, verdict

USR1, USR2 = signal.SIGUSR1, signal.SIGUSR2


def end_well(world: World, time_s: float) -> None:
    for agent in world.agents:
        for rank in agent.workers:
            world.exit(rank, 0, time_s)


@pytest.mark.parametrize("asked", [(0,), (2,), (0, 1, 2, 3)])
def test_p78_p83_all_workers_are_told_once_whoever_got_the_signal(asked: tuple[int, ...]) -> None:
    world = World(4, 2)
    for index in asked:
        world.signal(index, USR2, 1.0 + index / 10)
    end_well(world, 3.0)
    world.run()
    result = verdict(world)
    assert (result.outcome, result.code) == ("success", 0)
    assert result.asked is not None and result.asked.signal == USR2
    assert [agent.asked for agent in world.agents] == [["SIGUSR2"]] * 4
    assert all(world.worker(rank).signals == [USR2] for rank in range(8))


def test_p78_a_signal_that_comes_again_later_is_passed_on_again() -> None:
    world = World(2, 1)
    world.signal(1, USR1, 1.0)
    world.signal(0, USR1, 1.0 + 2 * ROUND_S)
    world.signal(0, USR2, 1.0 + 2 * ROUND_S)
    end_well(world, 30.0)
    world.run()
    assert all(world.worker(rank).signals == [USR1, USR1, USR2] for rank in range(2))
    assert verdict(world).outcome == "success"


def with_end(world: World, left_s: float, warn_s: float, warn_signal: int = USR2) -> None:
    hub = world.agents[0]
    hub.state = supervisor.with_wishes(hub.state, warn_s, warn_signal, signal.SIGTERM)
    world.at(0.5, lambda: world.feed(hub, EndKnown(left_s)))


def test_workers_are_warned_before_the_end_of_the_job_s_time() -> None:
    world = World(3, 1)
    with_end(world, 100.0, 60.0)
    end_well(world, 45.0)
    world.run()
    assert [agent.asked for agent in world.agents] == [["time"]] * 3
    result = verdict(world)
    assert result.asked is not None and (result.asked.signal, result.outcome) == (TIME, "success")
    assert all(world.worker(rank).signals == [USR2] for rank in range(3))


def test_no_signal_if_the_user_wants_none() -> None:
    world = World(2, 1)
    with_end(world, 10.0, 5.0, warn_signal=0)
    end_well(world, 8.0)
    world.run()
    assert [agent.asked for agent in world.agents] == [["time"]] * 2
    assert all(world.worker(rank).signals == [0] for rank in range(2))


def test_no_warning_where_the_job_ends_before() -> None:
    world = World(2, 1)
    with_end(world, 100.0, 60.0)
    end_well(world, 30.0)
    world.run()
    assert [agent.asked for agent in world.agents] == [[], []]
    assert verdict(world).asked is None


def test_a_limit_that_is_moved_moves_the_warning_and_it_comes_once() -> None:
    asking, _ = on_end_known(Asking(warn_s=60.0), 100.0, now=0.0)
    assert warn_at(asking, inf) == 40.0
    asking, _ = on_end_known(asking, 500.0, now=30.0)
    assert warn_at(asking, inf) == 470.0
    assert warn_at(asking, limit_at=200.0) == 140.0
    asking, _ = on_asked(asking, Stopped(TIME, 0, "n1", "", 0.0), now=470.0)
    assert warn_at(asking, inf) == inf


def test_f122_no_restart_after_a_request_to_save() -> None:
    world = World(2, 1, policy=Policy(max_restarts=3))
    world.signal(1, USR2, 1.0)
    world.exit(0, 9, 2.0)
    world.run()
    assert verdict(world).code == 9
    assert verdict(world).final == "no restart after a request to save"
    assert world.begun == []


@pytest.mark.parametrize(
    "message", [SaveAsked(Stopped(12, 1, "n2", "pid 7 (x)", 5.0)), SaveNow(0, "time"), EndsIn(12.5)]
)
def test_the_words_survive_the_wire(message: Message) -> None:
    assert unpack(json.loads(json.dumps(pack(message)))) == message


def agent(index: int, stop_signal: int = signal.SIGTERM) -> supervisor.State:
    state = supervisor.start(index, ("n1", "n2"), frozenset({0, 1}), 5.0)
    return supervisor.with_wishes(state, 0.0, 0, stop_signal)


@pytest.mark.parametrize(("number", "wish", "got"), [(15, 15, 15), (15, 12, 12), (15, 0, 0), (1, 12, 12), (2, 12, 2)])
def test_p82_workers_get_the_stop_signal_that_the_user_chose(number: int, wish: int, got: int) -> None:
    for index in (0, 1):
        _, actions = supervisor.step(agent(index, wish), SignalArrived(number, "", 1.0), 1.0)
        assert [action.number for action in actions if isinstance(action, SignalWorkers)] == [got]


def test_sigtstp_stops_the_workers_and_sigcont_lets_them_go_on() -> None:
    state, actions = supervisor.step(agent(1), SignalArrived(signal.SIGTSTP, "", 1.0), 1.0)
    assert actions == (Suspend(),)
    assert supervisor.step(state, SignalArrived(signal.SIGCONT, "", 2.0), 2.0)[1] == (Resume(),)


def test_the_time_left_reaches_all_workers() -> None:
    world = World(3, 1)
    with_end(world, 90.0, 0.0)
    end_well(world, 3.0)
    world.run()
    assert [agent.left_s for agent in world.agents] == [90.0] * 3


def test_p83_the_request_of_the_clock_does_not_hide_one_by_signal() -> None:
    asking, told = on_asked(Asking(warn_signal=12), Stopped(TIME, 0, "n1", "", 0.0), now=1.0)
    asking, again = on_asked(asking, Stopped(12, 1, "n2", "", 0.0), now=2.0)
    assert len(told) == len(again) == 1
    assert asking.asked is not None and asking.asked.signal == TIME
