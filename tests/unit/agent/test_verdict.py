"""Which of several things was the first cause."""

from __future__ import annotations

import pytest

from slaunch.agent.values import Failure, Look, Lost, Stopped
from slaunch.agent.verdict import SUSPECT_S, Findings, decide, is_settled, odd_ones
from slaunch.node.values import Problem


def failure(rank: int, time_s: float, code: int = 1, cause: str = "error", detail: str = "", told: bool = False) -> Failure:
    number = code - 128 if code > 128 else 0
    return Failure(rank, 0, rank // 2, f"n{rank // 2}", 1, code, number, time_s, cause, detail, told=told)


def stop(time_s: float, number: int = 15) -> Stopped:
    return Stopped(number, 0, "n0", "", time_s)


def lost(node: int, time_s: float) -> Lost:
    return Lost(node, f"n{node}", "gone", time_s)


def first_rank(found: Findings) -> int:
    first = decide(found).first
    assert first is not None
    return first.rank


def test_nothing_wrong() -> None:
    assert decide(Findings(ended=4)).code == 0


def test_p94_the_earliest() -> None:
    found = Findings((failure(3, 10.1, 4), failure(1, 10.0, 5), failure(2, 10.2, 6)))
    assert (first_rank(found), decide(found).code) == (1, 5)
    assert [other.rank for other in decide(found).others] == [3, 2]


def test_p95_a_victim_that_ended_sooner_than_the_culprit_that_took_its_time() -> None:
    victim, culprit = failure(1, 10.0, 1, "peer", "Connection closed by peer"), failure(2, 11.5, 7, "error", "ValueError: bad")
    found = Findings((victim, culprit))
    assert (first_rank(found), decide(found).code) == (2, 7)


def test_a_worker_that_the_guardian_ended_is_a_victim_of_lost_agents() -> None:
    fenced = failure(1, 10.0, 137, "fence", "no word of the others")
    assert decide(Findings((fenced,), lost=(lost(0, 30.0),))).outcome == "lost", "also late, and on the same node"
    assert decide(Findings((fenced,))).outcome == "failure"
    assert first_rank(Findings((fenced, failure(3, 10.01, 4)))) == 3


def test_p95_a_culprit_without_a_word_that_ended_later_than_its_victim() -> None:
    victims = failure(1, 10.0, 1, "peer", "Connection closed by peer"), failure(3, 10.1, 134)
    found = Findings((*victims, failure(2, 10.3, 9)))
    assert (first_rank(found), decide(found).code) == (2, 9)
    assert first_rank(Findings((victims[0], failure(2, 10.3, 139)))) == 2
    assert first_rank(Findings(victims[:1])) == 1


def test_p95_a_culprit_that_our_stop_overtook() -> None:
    """Still at its own end when it was told to stop: its last words count, its exit code, from our signal, does not."""
    victim = failure(1, 10.0, 9, "peer", "Connection closed by peer")
    culprit = failure(2, 10.3, 143, "error", "ValueError: bad", told=True)
    found = Findings((victim,), spoken=(culprit,))
    assert (first_rank(found), decide(found).code) == (2, 9)


def test_p95_the_words_of_a_stopped_worker_count_only_against_a_victim() -> None:
    plain, told = failure(1, 10.0, 3), failure(2, 10.3, 1, "error", "ValueError: odd", told=True)
    assert first_rank(Findings((plain,), spoken=(told,))) == 1


@pytest.mark.parametrize("words", ["KeyboardInterrupt", "SignalException: Process 7 got signal: 15", "SystemExit: 1"])
def test_p95_words_about_the_stop_are_no_reason(words: str) -> None:
    victim, told = failure(1, 10.0, 1, "peer", "Broken pipe"), failure(2, 10.3, 1, "error", words, told=True)
    assert first_rank(Findings((victim,), spoken=(told,))) == 1


def test_two_victims_and_no_culprit() -> None:
    assert first_rank(Findings((failure(1, 10.0, 1, "peer"), failure(2, 10.1, 1, "peer")))) == 1


@pytest.mark.parametrize(
    ("stop_s", "code", "outcome"),
    [
        (9.0, 1, "signal"),  # whatever workers do after a signal is its consequence
        (10.5, 143, "signal"),  # died of the same round of signals
        (10.5, 1, "failure"),
        (12.0, 143, "failure"),  # killed by somebody, and later we were, too
        (10.01, 1, "signal"),  # together
    ],
)
def test_a_signal_and_a_failure(stop_s: float, code: int, outcome: str) -> None:
    assert decide(Findings((failure(1, 10.0, code),), stops=(stop(stop_s),))).outcome == outcome


@pytest.mark.parametrize(("stop_s", "outcome"), [(9.0, "signal"), (10.0, "signal"), (11.0, "lost")])
def test_a_signal_and_a_loss(stop_s: float, outcome: str) -> None:
    assert decide(Findings(stops=(stop(stop_s),), lost=(lost(2, 10.0),))).outcome == outcome


@pytest.mark.parametrize(
    ("node", "lost_s", "outcome"),
    [
        (2, 10.0 + SUSPECT_S - 0.1, "lost"),  # the heartbeat notices late
        (2, 9.0, "lost"),
        (2, 10.0 + SUSPECT_S + 0.1, "failure"),
        (0, 10.1, "failure"),  # its own node: it had told us of the failure before it went
    ],
)
def test_a_loss_and_a_failure(node: int, lost_s: float, outcome: str) -> None:
    assert decide(Findings((failure(1, 10.0),), lost=(lost(node, lost_s),))).outcome == outcome


def test_a_node_that_cannot_start_comes_before_all() -> None:
    found = Findings((failure(1, 1.0),), lost=(lost(2, 1.0),), problems=(("n3", Problem(73, "a", "b", "c")),))
    assert (decide(found).outcome, decide(found).code, decide(found).problem_host) == ("start", 73, "n3")


def test_what_does_not_decide_is_told_as_well() -> None:
    found = Findings((failure(1, 1.0),), silent=(lost(2, 0.0),), ended=3)
    verdict = decide(found)
    assert (verdict.outcome, verdict.lost, verdict.ended) == ("failure", (lost(2, 0.0),), 3)


@pytest.mark.parametrize(("code", "settled"), [(143, False), (130, False), (137, False), (139, True), (1, True)])
def test_a_death_by_a_stop_signal_waits_for_its_explanation(code: int, settled: bool) -> None:
    assert is_settled(Findings((failure(1, 1.0, code),))) is settled
    assert is_settled(Findings((failure(1, 1.0, code),), stops=(stop(1.0),)))


def test_of_several_signals_the_earliest_counts() -> None:
    found = Findings((failure(1, 10.0),), stops=(stop(12.0, 2), stop(9.0, 15), stop(11.0, 1)))
    assert (decide(found).outcome, decide(found).code) == ("signal", 143)


def test_p95_a_stopped_culprit_that_ended_by_itself_gives_its_own_code() -> None:
    victim = failure(1, 10.0, 9, "peer", "Connection closed by peer")
    culprit = failure(2, 10.3, 5, "error", "ValueError: bad", told=True)
    assert decide(Findings((victim,), spoken=(culprit,))).code == 5


def test_a_worker_killed_by_somebody_gives_128_plus_n() -> None:
    assert decide(Findings((failure(1, 10.0, 139), failure(2, 11.0, 3)))).code == 139


def look(rank: int, cpu: float = 0.0, wchan: str = "futex_wait", state: str = "S") -> Look:
    return Look(rank, 0, "n0", 1, 60.0, cpu, state, wchan)


@pytest.mark.parametrize(
    ("looks", "odd"),
    [
        ((look(0), look(1), look(2, 1.0, "")), [2]),
        ((look(0, 1.0, ""), look(1, 0.9, ""), look(2, 0.0, "pipe_read")), [2]),
        ((look(0), look(1), look(2, state="T")), [2]),
        ((look(0), look(1), look(2, 0.0, "pipe_read"), look(3, 1.0, "")), [0, 1, 2, 3]),  # no majority against two
        ((look(0), look(1)), [0, 1]),
        ((look(5),), [5]),
        (tuple(look(rank) for rank in range(100)), [0, 1, 2, 3]),
        (tuple(look(rank, float(rank % 10 == 0)) for rank in range(100)), [0, 10, 20, 30]),
    ],
)
def test_the_odd_ones_of_a_hang(looks: tuple[Look, ...], odd: list[int]) -> None:
    assert [look.rank for look in odd_ones(looks)] == odd
