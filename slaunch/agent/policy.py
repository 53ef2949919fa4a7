"""Whether another attempt follows one that did not end well: pure rules, and what they are told."""

from __future__ import annotations

from math import inf

from slaunch.agent.values import Verdict
from slaunch.frozen import dataclass, replace
from slaunch.options import Options
from slaunch.rendezvous.endpoints import ETCD

NO_PROGRESS = -1
"""Smaller than any step."""
COMPLETE = 10**18
"""Further than any step: the program says that nothing is left to do (`slaunch.worker.complete`)."""
FENCE_BEATS = 2.0
"""A node and the hub notice up to a heartbeat apart that their connection is gone; then the node kills its workers."""
DELAY_LIMIT_S = 600.0
"""However often the job has been restarted, nobody waits longer than this."""


@dataclass(frozen=True)
class Policy:
    """What the user wants.

    Attributes:
        max_restarts: how often the workers may be started anew; 0 = never.
        delay_s: wait before the first restart, twice as long before each further one.
        window_s: only restarts within so many seconds count; inf = all of them.
        final_codes: exit codes of a worker after which there is none.
        max_idle: attempts in a row without progress after which there is none; 0 = however many.
        least: with how many nodes the job goes on when others are lost; 0 = with all only.
        most: how many nodes take part at most; 0 = however many.
        spares: how many wait, if there are more than `goal`.
        goal: how many nodes took part at first.
        new_ports: each attempt has new ports, so that one that found a port in use may be repeated.
        join: what nodes that come to the running job are waited for: "restart" (the workers are stopped), "boundary" (they are
            asked to save and end) or "next" (the next attempt).
        expel: a node on which a worker failed takes no further part; the job goes on without it.
        fence_s: wait after the loss of a node, so that its workers have ended even where the node lives on and only its
            connection is gone.
    """

    max_restarts: int = 0
    delay_s: float = 0.0
    window_s: float = inf
    final_codes: frozenset[int] = frozenset()
    max_idle: int = 0
    least: int = 0
    fence_s: float = 2.0
    most: int = 0
    spares: int = 0
    goal: int = 0
    new_ports: bool = False
    join: str = "restart"
    expel: bool = False


@dataclass(frozen=True)
class Record:
    """What has been.

    Attributes:
        restarts: when the workers were started anew after a failure, monotonic.
        progress: the furthest step that a worker has told; -1 = none.
        idle: attempts in a row that ended without progress.
        ports: attempts that ended because a port was in use.
    """

    restarts: tuple[float, ...] = ()
    progress: int = NO_PROGRESS
    idle: int = 0
    ports: int = 0


def restarts(options: Options) -> bool:
    """Whether the user wants other attempts to follow, after a failure or the loss of a node."""
    return options.max_restarts > 0 or is_elastic(options)


def is_elastic(options: Options) -> bool:
    """Whether the job may go on without some of its nodes."""
    return options.elastic and (options.nnodes[0] < options.nnodes[1] or options.spares > 0)


def may_be_met(options: Options) -> bool:
    """Whether nodes that come late must find the running job: they may take part, or would else be a second job of its name."""
    least, most = options.nnodes
    return is_elastic(options) or (least < most and options.master.startswith(ETCD))


def active_of(there: int, options: Options) -> int:
    """How many of so many nodes take part at first; the others wait."""
    least, most = options.nnodes
    return min(most or there, max(there - options.spares, least, 1), there)


def policy_of(options: Options, goal: int, beat_s: float = 1.0) -> Policy:
    """The user's wishes, where `goal` nodes take part at first, and agents show every `beat_s` that they live."""
    least, most = options.nnodes
    return Policy(
        options.max_restarts,
        options.restart_delay_s,
        options.restart_window_s or inf,
        frozenset(options.no_restart_codes),
        options.max_no_progress,
        (least or goal) if is_elastic(options) else 0,
        FENCE_BEATS * beat_s,
        most,
        options.spares,
        goal,
        join=options.join_policy,
        expel=options.leave_out_failed and is_elastic(options),
    )


def shifted(record: Record, by_s: float) -> Record:
    """The record by a clock that is so much ahead."""
    return replace(record, restarts=tuple(time + by_s for time in record.restarts))


def with_end(record: Record, progress: int) -> Record:
    """The record after an attempt that got as far as `progress`."""
    if progress > record.progress:
        return replace(record, progress=progress, idle=0)
    return replace(record, idle=record.idle + 1)


def refusal(  # noqa: PLR0911, PLR0917 - one line per rule
    policy: Policy, record: Record, verdict: Verdict, left: int, lost: int, now: float
) -> str:
    """Why no other attempt follows, in words; "" if one does.

    Args:
        policy: the user's wishes.
        record: what has been, this attempt included.
        verdict: how this attempt ended.
        left, lost: number of nodes that are left, and that are not.
        now: monotonic seconds.
    """
    if verdict.outcome not in ("failure", "hang", "lost", "grown"):
        return f"no restart after {MEANING[verdict.outcome]}"
    if verdict.stuck:
        return "no restart: a process cannot be killed"
    if lost and not (policy.least and left >= policy.least):
        few = f"{left} nodes are left, and at least {policy.least} are wanted"
        return f"no restart: {few if policy.least else 'a node is lost'}"
    first = verdict.first
    if first is not None and verdict.outcome == "failure" and first.cause == "start":
        return "no restart: the program cannot be started"
    if first is not None and verdict.outcome == "failure" and verdict.code in policy.final_codes:
        return f"no restart after exit code {verdict.code}, as asked for"
    if is_repeated(policy, record, verdict):
        return ""
    if is_expelled(policy, verdict):
        return "" if left > policy.least else f"no restart: without {first.host if first else ''} {left - 1} nodes are left"
    if policy.max_idle and record.idle >= policy.max_idle:
        return f"no restart: no progress in {record.idle} attempts"
    if verdict.outcome not in FREE and len(counted(policy, record, now)) >= policy.max_restarts:
        return f"no restart: {f'all {policy.max_restarts} are used up' if policy.max_restarts else 'none is asked for'}"
    return ""


def is_expelled(policy: Policy, verdict: Verdict) -> bool:
    """Whether the job goes on without the node on which a worker failed."""
    return policy.expel and verdict.outcome == "failure" and verdict.first is not None


def is_repeated(policy: Policy, record: Record, verdict: Verdict) -> bool:
    """Whether an attempt that found a port in use is repeated with new ones: a few times, and not as one of the restarts."""
    return found_port_in_use(verdict) and policy.new_ports and record.ports < PORT_TRIES


def with_restart(policy: Policy, record: Record, verdict: Verdict, now: float) -> Record:
    """The record when another attempt follows."""
    if is_repeated(policy, record, verdict):
        return replace(record, ports=record.ports + 1)
    return record if verdict.outcome in FREE else replace(record, restarts=(*record.restarts, now))


def found_port_in_use(verdict: Verdict) -> bool:
    """Whether an attempt failed as another process had a port that slaunch had chosen."""
    return verdict.outcome == "failure" and verdict.first is not None and verdict.first.cause == "port"


PORT_TRIES = 3
"""Another process may be quicker once or twice; where it always is, the program asks for that port by itself."""
FREE = ("lost", "grown")
"""Attempts that end so are not counted against the limit: the job gets smaller, or larger, and that ends."""
MEANING = {
    "success": "a good end",
    "signal": "a request to stop",
    "start": "a node that cannot start its workers",
    "time": "the time limit",
}


def counted(policy: Policy, record: Record, now: float) -> tuple[float, ...]:
    """Restarts that count against the limit. Those after the loss of a node do not: it makes the job smaller, and ends there."""
    return tuple(time for time in record.restarts if time > now - policy.window_s)


def wait_s(policy: Policy, record: Record, lost: int) -> float:
    """How long to wait before the workers start anew; `record` has this restart already, if it counts."""
    grown = policy.delay_s * 2.0 ** min(len(record.restarts) - 1, 30) if record.restarts else 0.0
    return max(min(grown, DELAY_LIMIT_S), policy.fence_s if lost else 0.0)
