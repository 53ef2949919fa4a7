"""Which of several things that went wrong was the first cause: pure rules over what the hub has heard."""

from __future__ import annotations

import signal
from collections import Counter

from slaunch.agent.cause import is_stop
from slaunch.agent.values import Failure, Look, Lost, Stopped, Stuck, Verdict
from slaunch.errors import AgentLostError, HangError, TimeLimitError
from slaunch.frozen import dataclass, replace
from slaunch.node.values import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T", bound="Failure | Lost | Stopped")

SUSPECT_S = 8.0
"""A node that falls silent is noticed up to this long after the workers elsewhere felt it (heartbeat time-out and a margin)."""
SIGNAL_SLACK_S = 1.0
"""Signals to a whole step reach workers and agents in any order; a death by one this close to ours is its consequence."""
NEARLY_S = 0.02
"""Exits on different nodes closer than this have no certain order: clocks are compared over the network."""

BUSY_CPU = 0.5
"""Share of a CPU from which on a worker counts as busy."""
ODD_SHOWN = 4

KEPT = 64
SHOWN = 16
"""Further failures in the verdict, which goes to every node."""

_DEADLY_REQUESTS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL})


@dataclass(frozen=True)
class Findings:
    """What the hub has heard; times by its own clock. Of each kind the earliest `KEPT` only: 100,000 workers may fail together.

    Attributes:
        failures: workers that failed by themselves, and `failed` their number.
        spoken: workers that ended after they had been told to, but explain themselves.
        lost: agents that went away before their workers had ended, and `gone` their number, silent ones included.
        silent: agents that did not answer when the job was being stopped; that explains nothing.
        stops: signals to agents that ask for a stop.
        problems: host name and problem of nodes that could not start their workers.
        stuck: processes that could not be killed.
        ended: number of workers that ended with code 0.
        hung: what the odd workers of a hanging job did, and
        expired: the user's time limit is over; both only if nothing else had happened.
        joined: hosts of nodes for which the workers were stopped, or asked to end.
    """

    failures: tuple[Failure, ...] = ()
    spoken: tuple[Failure, ...] = ()
    lost: tuple[Lost, ...] = ()
    silent: tuple[Lost, ...] = ()
    stops: tuple[Stopped, ...] = ()
    problems: tuple[tuple[str, Problem], ...] = ()
    stuck: tuple[Stuck, ...] = ()
    ended: int = 0
    failed: int = 0
    gone: int = 0
    hung: tuple[Look, ...] = ()
    expired: bool = False
    joined: tuple[str, ...] = ()


def earliest(items: tuple[T, ...], *new: T) -> tuple[T, ...]:
    """With some more, by time; no more than are kept."""
    return tuple(sorted((*items, *new), key=lambda item: item.time_s))[:KEPT]


def is_settled(found: Findings) -> bool:
    """False while a death by a stop signal has no explanation: the agents' own signal may still be on its way."""
    if found.lost or found.stops or found.problems or found.hung or found.expired or not found.failures:
        return True
    return in_order(found.failures)[0].signal not in _DEADLY_REQUESTS


def in_order(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """Failures by time. Of those that are nearly simultaneous, one that explains itself comes before a victim of its peers."""
    by_time = sorted(failures, key=lambda failure: failure.time_s)
    near = [f for f in by_time if f.time_s <= by_time[0].time_s + NEARLY_S]
    return (*sorted(near, key=is_victim), *by_time[len(near) :])


def is_victim(failure: Failure) -> bool:
    """Its last words are about a lost connection to another worker; or it was ended, as other agents had been lost."""
    return failure.cause in ("peer", "fence")


def explains_itself(failure: Failure) -> bool:
    """Its last words give a reason that is neither a lost connection nor the request to stop."""
    return failure.cause in ("memory", "port", "error") and bool(failure.detail) and not is_stop(failure.detail)


def culprits_first(found: Findings) -> tuple[Failure, ...]:
    """All failures in order. If the first one merely lost a peer, the one that explains itself comes before it, or else one that
    ended without a word: the time that a failing program takes to end is often longer than its peers need to notice."""
    failures = in_order(found.failures)
    if not failures or not is_victim(failures[0]):
        return failures
    culprits = sorted(filter(explains_itself, failures + found.spoken), key=lambda failure: failure.time_s)
    if not culprits:  # who exits by itself rather than of a signal, since a lost connection makes many a program abort
        culprits = sorted((f for f in failures if not is_victim(f)), key=lambda failure: (failure.signal != 0, failure.time_s))
    return (*culprits[:1], *(failure for failure in failures if failure not in culprits[:1]))


def decide(found: Findings) -> Verdict:
    """The one verdict on the job."""
    failures = of_the_hung(found) if found.hung else culprits_first(found)
    first = failures[0] if failures else None
    verdict = _judge(found, first)
    return Verdict(
        verdict.outcome,
        verdict.code,
        first,
        tuple(replace(failure, tail=()) for failure in failures[1 : 1 + SHOWN]),
        (found.lost + found.silent)[:KEPT],
        verdict.stopped,
        verdict.problem,
        verdict.problem_host,
        found.stuck,
        found.ended,
        found.hung,
        found.failed,
        found.gone,
        joined=found.joined,
    )


def _judge(found: Findings, first: Failure | None) -> Verdict:
    """Outcome and code, by the first rule that holds."""
    if found.hung or found.expired:
        return Verdict("hang", HangError.exit_code) if found.hung else Verdict("time", TimeLimitError.exit_code)
    stop = min(found.stops, key=lambda stop: stop.time_s, default=None)
    if found.problems:
        host, problem = found.problems[0]
        return Verdict("start", problem.code, problem=problem, problem_host=host)
    if stop is not None and came_first(stop, found.lost, first):
        return Verdict("signal", 128 + stop.signal, stopped=stop)
    if found.lost and (first is None or overshadows(found.lost, first)):
        return Verdict("lost", AgentLostError.exit_code)
    if first is not None:
        return Verdict("failure", own_code(first, found.failures))
    return Verdict("grown" if found.joined else "success", 0)


def odd_ones(looks: tuple[Look, ...]) -> tuple[Look, ...]:
    """Those of the silent workers that do something else than most; the first few of all if no kind is in the majority."""
    kinds = [(look.cpu > BUSY_CPU, look.state == "T", look.wchan) for look in looks]
    common = Counter(kinds).most_common(1)[0][0]
    odd = tuple(look for look, kind in zip(looks, kinds, strict=True) if kind != common)
    return (odd if odd and 2 * len(odd) < len(looks) else looks)[:ODD_SHOWN]


def of_the_hung(found: Findings) -> tuple[Failure, ...]:
    """The last words of the odd workers of a hanging job, in the order in which these are named."""
    ranks = [look.rank for look in found.hung]
    return tuple(sorted((words for words in found.spoken if words.rank in ranks), key=lambda words: ranks.index(words.rank)))


def own_code(first: Failure, failures: tuple[Failure, ...]) -> int:
    """The exit code of the first failure; of its first victim, if our signal ended it before it could exit by itself."""
    return in_order(failures)[0].code if first.told and first.signal else first.code


def came_first(stop: Stopped, lost: tuple[Lost, ...], first: Failure | None) -> bool:
    """The signal came before an agent was lost, and before a worker failed unless that died of the signal as well."""
    if any(gone.time_s < stop.time_s - NEARLY_S for gone in lost):
        return False
    return first is None or explains(stop, first)


def explains(stop: Stopped, failure: Failure) -> bool:
    """The signal came before the worker failed, or the worker died of the same round of signals."""
    if stop.time_s <= failure.time_s + NEARLY_S:
        return True
    return failure.signal in _DEADLY_REQUESTS and stop.time_s - failure.time_s <= SIGNAL_SLACK_S


def overshadows(lost: tuple[Lost, ...], failure: Failure) -> bool:
    """An agent went away about when the worker failed elsewhere: the failure is its consequence, noticed earlier."""
    if failure.cause == "fence":
        return bool(lost)
    return any(gone.node != failure.node and gone.time_s - failure.time_s <= SUSPECT_S for gone in lost)
