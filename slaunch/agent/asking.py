"""The hub's part in requests to save: who asked, when the job's time runs out, and what the workers are told. Pure.

    spoke → hub    SaveAsked      an agent got SIGUSR1 or SIGUSR2
    hub → nodes    SaveNow        everybody is told the same, once for each round of signals
    hub → nodes    EndsIn         the seconds that the job has left, whenever the scheduler has been asked

A request to save stops nothing: the workers end by themselves, or are stopped later by the signal that ends the job.
"""

from __future__ import annotations

from math import inf

from slaunch.agent.events import Action, TellAll
from slaunch.agent.messages import EndsIn, SaveNow
from slaunch.agent.values import Stopped
from slaunch.frozen import dataclass, replace

TIME = 0
"""In the place of a signal's number: the request came from the clock."""
ROUND_S = 5.0
"""A scheduler signals all agents of a step, one after the other: the same signal within so long is the same request."""
WORDS = {TIME: "time"}


@dataclass(frozen=True)
class Asking:
    """What the hub knows.

    Attributes:
        warn_s: seconds before the end of the job's time at which the workers are told; 0 = not.
        warn_signal: number of the signal that tells them then.
        end_at: when the job's time runs out, monotonic; inf = never, or not known.
        asked: the first request; None = none yet.
        told: when each signal was last passed on, by number.
    """

    warn_s: float = 0.0
    warn_signal: int = 0
    end_at: float = inf
    asked: Stopped | None = None
    told: tuple[tuple[int, float], ...] = ()


Result = tuple[Asking, tuple[Action, ...]]


def warn_at(asking: Asking, limit_at: float) -> float:
    """When the workers must be told that time runs out, monotonic; inf if never, or if they have been told.

    Args:
        limit_at: when the user's own limit ends the job.
    """
    if not asking.warn_s or TIME in dict(asking.told):
        return inf
    return min(asking.end_at, limit_at) - asking.warn_s


def on_end_known(asking: Asking, left_s: float, now: float) -> Result:
    """The scheduler has said how much time the job has left: the workers are told."""
    return replace(asking, end_at=now + left_s), (TellAll(EndsIn(left_s)),)


def on_asked(asking: Asking, stopped: Stopped, now: float) -> Result:
    """An agent was asked to have the workers save: all are told, once for each round of signals."""
    number = stopped.signal
    if now < dict(asking.told).get(number, -inf) + ROUND_S:
        return asking, ()
    told = tuple((*((other, at) for other, at in asking.told if other != number), (number, now)))
    order = SaveNow(number or asking.warn_signal, reason(number))
    return replace(asking, asked=asking.asked or stopped, told=told), (TellAll(order),)


def on_time(asking: Asking, host: str, limit_at: float, now: float) -> Result:
    """If it is time, tell the workers so.

    Args:
        host: the hub's.
        limit_at: when the user's own limit ends the job, monotonic.
    """
    if now < warn_at(asking, limit_at):
        return asking, ()
    return on_asked(asking, Stopped(TIME, 0, host, "", 0.0), now)


def reason(number: int) -> str:
    """A request in a word, as workers read it: "time", or the signal's name."""
    import signal

    return WORDS.get(number) or signal.Signals(number).name
