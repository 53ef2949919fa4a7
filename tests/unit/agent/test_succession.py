"""When the hub is lost: which part may go on, what the next hub hears, and what it makes of it."""

from __future__ import annotations

import functools
import random
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slaunch.agent import supervisor
from slaunch.agent.events import (
    AgentGone,
    AgentSaid,
    Blame,
    Enrol,
    Finish,
    Kill,
    Prepare,
    SignalArrived,
    Started,
    StartWorkers,
    Tell,
    TellAll,
    TreeSeen,
    WorkerExited,
)
from slaunch.agent.messages import (
    Begin,
    Decided,
    Follows,
    Joined,
    Message,
    NewAttempt,
    NodeEnded,
    Ports,
    StopAsked,
    WorkerFailed,
    pack,
    unpack,
)
from slaunch.agent.policy import Policy, Record
from slaunch.agent.quorum import Bases, holds, known_to_all, lacking, merged, proposed
from slaunch.agent.values import Failure
from slaunch.agent.verdict import Verdict
from slaunch.channel.star import Headless, Succeeded

FIVE = known_to_all((0, 1, 2, 3, 4))
HOSTS = ("n0", "n1", "n2", "n3")
LOST = AgentGone(0, "connection reset by peer", 100.0, heir=True)
ENDED = (WorkerExited(1, Failure(1, 0, 1, "n1", 7, 137, 9, 100.1, told=True)), TreeSeen())


@given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=4), st.integers(1, 10))
def test_never_two_parts_of_a_job_may_go_on(parts: list[set[int]], size: int) -> None:
    """However it falls apart, and whether or not they know that some agents have ended."""
    base = frozenset(range(size))
    seen: set[int] = set()
    pieces = []
    for part in parts:
        pieces.append(part & base - seen)
        seen |= part
    dead = base - seen
    for known in (frozenset[int](), dead):
        assert sum(holds(base, base - piece, known) for piece in pieces) <= 1


def test_a_part_goes_on_with_more_than_half_or_the_half_with_the_first() -> None:
    assert holds(range(5), {0, 4})
    assert not holds(range(5), {0, 1, 4})
    assert holds(range(4), {2, 3})
    assert not holds(range(4), {0, 1})
    assert not holds(range(4), {0, 1}, {0}), "before it ended, 0 may have gone on with 1"
    assert holds(range(4), {0, 1}, {0, 1}), "nobody else is left"
    assert holds((3, 5), {5})
    assert not holds((3, 5), {3})
    assert not holds((3,), {3})


@pytest.mark.parametrize("seed", range(20))
def test_whoever_goes_on_has_a_majority_of_the_last_attempt_that_all_of_its_agents_knew(seed: int) -> None:
    """Parts form one after the other, and prepare attempts as far as the rule lets them, of which some agents hear, or all."""
    chance = random.Random(seed)
    for _ in range(150):
        size = chance.randint(3, 7)
        last = tuple(range(size))
        known = dict.fromkeys(range(size), known_to_all(last))
        for attempt in range(1, 9):
            part = tuple(sorted(chance.sample(range(size), chance.randint(1, size))))
            bases = functools.reduce(merged, (known[agent] for agent in part))
            if lacking(bases, part) is not None:
                continue
            bases = proposed(bases, attempt, part)
            all_hear = chance.random() < 0.5
            known.update(dict.fromkeys((agent for agent in part if all_hear or chance.random() < 0.4), bases))
            if all_hear:
                assert holds(last, set(last).difference(part)), f"attempt {attempt} of {part} does not know of that of {last}"
                last = part
                known.update({agent: known_to_all(part, attempt) for agent in part if chance.random() < 0.5})


def test_a_base_counts_until_all_agents_of_a_later_one_know_of_that() -> None:
    heard = proposed(FIVE, 1, (0, 1, 2))
    assert lacking(heard, {1, 2}) == (0, 1, 2, 3, 4), "3 and 4 may not know, and go on with 0"
    assert lacking(heard, {2, 3, 4}) == (0, 1, 2)
    assert lacking(heard, {1, 2, 3}) is None
    assert lacking(known_to_all((0, 1, 2), 1), {1, 2}) is None
    assert merged(heard, known_to_all((0, 1, 2), 1)) == known_to_all((0, 1, 2), 1)
    assert lacking(Bases(), {0}) == (), "who knows nothing goes nowhere"


def agent(index: int, least: int = 2, grace_s: float = 5.0) -> supervisor.State:
    return supervisor.start(index, HOSTS, frozenset({index}), grace_s, policy=Policy(1, least=least))


def fed(state: supervisor.State, *events: object, now: float = 50.0) -> tuple[supervisor.State, list[object]]:
    done: list[object] = []
    for event in events:
        state, actions = supervisor.step(state, event, now)  # type: ignore[arg-type]
        done += actions
    return state, done


def told(actions: list[object], to: int) -> list[Message]:
    return [action.message for action in actions if isinstance(action, Tell) and action.to == to]


def test_a_node_tells_the_new_hub_what_it_told_the_old_one() -> None:
    failure = Failure(2, 0, 2, "n2", 9, 3, 0, 99.0)
    state, _ = fed(agent(2, least=0), SignalArrived(signal.SIGTERM, "", 98.0), WorkerExited(2, failure), TreeSeen(), LOST)
    assert state.node.phase == "ended"
    state, actions = fed(state, Succeeded(1))
    assert [type(message) for message in told(actions, 1)] == [Follows, StopAsked, WorkerFailed, NodeEnded]
    for message in told(actions, 1):
        assert unpack(pack(message)) == message


def test_a_node_that_may_be_left_behind_kills_its_workers_and_waits_for_the_next_hub() -> None:
    state, actions = fed(agent(2), LOST)
    assert Kill() in actions
    state, actions = fed(state, WorkerExited(2, Failure(2, 0, 2, "n2", 9, 137, 9, 99.0, told=True)), TreeSeen())
    assert not actions, "nobody to tell, and no verdict yet"
    assert supervisor.wake_at(state) == float("inf"), "the channel tells what comes"
    state, actions = fed(state, Headless("nobody answers"))
    assert [action.verdict.code for action in actions if isinstance(action, Finish)] == [75]


def test_workers_that_were_about_to_start_when_the_hub_was_lost_are_killed() -> None:
    """The loss comes between the order to start them and the word that they run."""
    state, _ = fed(agent(2), WorkerExited(2, None), TreeSeen())
    order = NewAttempt(1, (0, 1, 2, 3), 0.0, Verdict("failure", 1), bases=proposed(known_to_all((0, 1, 2, 3)), 1, (0, 1, 2, 3)))
    state, _ = fed(state, AgentSaid(0, order), AgentSaid(0, Ports(((1,),) * 4, (0, 1, 2, 3))))
    assert state.node.bases == known_to_all((0, 1, 2, 3), 1)
    state, actions = fed(state, AgentSaid(0, Begin()), LOST)
    assert actions == [StartWorkers()]
    state, actions = fed(state, Started(frozenset({2}), frozenset()))
    assert actions == [Kill()]
    state, actions = fed(state, Succeeded(1))
    assert NodeEnded not in [type(message) for message in told(actions, 1)]


def test_newcomers_that_only_some_had_heard_of_are_told_to_all() -> None:
    """The old hub had told node 2 of it, and neither the new one nor node 3."""
    new = Joined(4, "n4", "{}")
    _, done = ended(2)
    told_of = AgentSaid(2, Follows(0, (0, 1, 2, 3), (0, 1, 2, 3), Record(), joined=(new,)))
    assert unpack(pack(told_of.message)) == told_of.message
    state, actions = fed(heir(), told_of, done)
    assert TellAll(new) in actions
    assert Enrol(4, "n4", "{}") in actions
    state, actions = fed(state, *ended(3))
    assert told(actions, 3) == [new], "it came after all had been told"
    news = [action.message for action in actions if isinstance(action, TellAll)]
    assert [each.members for each in news if isinstance(each, NewAttempt)] == [(1, 2, 3)], "the newcomer itself has not come"


def heir(least: int = 2, proven: bool = True) -> supervisor.State:
    return fed(agent(1, least), LOST, Succeeded(1, proven), *ENDED)[0]


def ended(index: int, attempt: int = 0, agents: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[AgentSaid, AgentSaid]:
    return AgentSaid(index, Follows(attempt, agents, agents, Record((-5.0,), 3, 1))), AgentSaid(index, NodeEnded(0))


def test_the_new_hub_goes_on_with_those_who_have_come() -> None:
    _, actions = fed(heir(), *ended(2), *ended(3))
    news = [action.message for action in actions if isinstance(action, TellAll)]
    assert [(each.attempt, each.members, each.verdict.outcome) for each in news if isinstance(each, NewAttempt)] == [
        (1, (1, 2, 3), "lost")
    ]
    prepare = next(action for action in actions if isinstance(action, Prepare))
    assert prepare.leads
    assert prepare.delay_s == 2.0
    assert Blame(((0, "lost: connection reset by peer"),)) in actions


def test_the_new_hub_takes_up_the_latest_attempt_that_anybody_knows_of() -> None:
    """The old one had told node 3 of another attempt without node 2, but not yet this one."""
    _, actions = fed(heir(), *ended(2), *ended(3, 1, (0, 1, 3)))
    news = next(action.message for action in actions if isinstance(action, TellAll) and isinstance(action.message, NewAttempt))
    assert (news.attempt, news.members) == (2, (1, 2, 3))
    assert news.record.restarts == (-5.0,), "ages, as clocks of machines differ"


def test_too_few_for_a_majority_end_the_job_and_say_why() -> None:
    """The lost nodes are told, but not put on the list of bad ones: it may be these two that are cut off."""
    _, actions = fed(heir(proven=False), *ended(2), AgentGone(3, "has not come to the new hub", 101.0))
    assert [action for action in actions if isinstance(action, Blame)] == []
    said = [action.message for action in actions if isinstance(action, TellAll)]
    verdicts = [message.verdict for message in said if isinstance(message, Decided)]
    assert [(each.outcome, each.code, each.parted) for each in verdicts] == [("lost", 75, True)]
    assert verdicts[0].final == "no restart: 2 of 4 nodes are here, and the others may live on and do the same"
    assert [lost.node for lost in verdicts[0].lost] == [0, 3]


def test_an_old_hub_that_is_left_alone_gives_its_workers_no_grace() -> None:
    state, _ = fed(agent(0, least=1), *(AgentGone(index, "silent for 6.0 s", 100.0) for index in (1, 2, 3)))
    assert supervisor.wake_at(state) <= 50.0
    state, actions = supervisor.step(state, supervisor.Tick(), 50.0)
    assert Kill() in actions
    state, actions = fed(state, WorkerExited(0, Failure(0, 0, 0, "n0", 7, 137, 9, 100.1, told=True)), TreeSeen())
    assert [type(action.verdict) for action in actions if isinstance(action, Finish)] == [Verdict]
