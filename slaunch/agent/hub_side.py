"""The hub's duty, as a pure machine: hear from all nodes, order the stop, decide, tell everybody; or have all start anew."""

from __future__ import annotations

import signal
from math import inf

from slaunch.agent import asking, heritage, joining, renewal
from slaunch.agent.events import Action, AgentGone, AgentSaid, Arrived, Blame, EndKnown, Event, Fenced, TellAll, Tick
from slaunch.agent.messages import (
    CannotStart,
    ClientsDone,
    Decided,
    Follows,
    Heard,
    Joined,
    Message,
    NodeEnded,
    PlanMade,
    Ready,
    SaveAsked,
    Silent,
    StopAsked,
    StopWorkers,
    WorkerFailed,
)
from slaunch.agent.node_side import program_signal
from slaunch.agent.node_state import ANSWER_S, KILL_S, LEFTOVER_S
from slaunch.agent.policy import COMPLETE, Policy, Record
from slaunch.agent.quorum import Bases
from slaunch.agent.values import Failure, Look, Lost, Stopped, Verdict
from slaunch.agent.verdict import KEPT, Findings, decide, earliest, is_settled, odd_ones
from slaunch.frozen import dataclass, field, replace
from slaunch.node.values import Problem

SOONER_S = 0.25
"""A new order to stop goes out only if it shortens the deadline by this much: many agents pass on one signal."""
SETTLE_S = 0.3
"""How long a death by a stop signal waits for its explanation: the scheduler signals workers and agents alike, in any order."""


@dataclass(frozen=True)
class Hub:
    """State of the hub.

    Attributes:
        hosts: host names by node.
        index: this node.
        grace_s: seconds between the request to stop and SIGKILL.
        pending: nodes whose workers have not all ended, as far as is known.
        found: what has been heard.
        stop_by: deadline of the workers' stop, monotonic; inf while the job runs.
        deadline: when the hub decides with what it has, monotonic.
        decided: the verdict, once given.
        limit_at: when the user's time limit ends the job, monotonic; inf without one.
        hang_timeout_s: silence of all after which the job counts as hanging; inf = never.
        silent: what the workers do on nodes where none has said anything for long, by node.
        life_at: when a node last ended, monotonic: those that still run then get the whole time-out once more, as many
            programs print on one rank only.
        clients: nodes that have workers other than services, not all of which have ended; () where the job has no services,
            and `all_clients` all of them.
        policy, record: when to start anew, and what that depends on.
        attempt, members: number of this attempt, and its nodes.
        seats: nodes of the last attempt that ran, in their order.
        agents: those that stood together when the last attempt was prepared.
        bases: whom `agent.quorum` counts.
        parted_at: when an agent was lost last, monotonic.
        joined: nodes that have come to the running job.
        gone: nodes whose agents are lost for good.
        dead: agents whose process has certainly ended, and before it can have gone on without this one.
        mutual: those that have noticed the loss as well, about when this agent did.
        progress: the furthest step that a worker of this attempt has told; -1 = none.
        coming: this attempt is being prepared; None = it runs.
        fence_at: when the workers of nodes that have not come to this hub have ended, monotonic.
        asking: requests to save, and the end of the job's time.
        stop_signal: what workers get when slaunch is asked to stop; see `Node`.
        standby: nodes that are there and wait, as they take no part in this attempt.
        past: faults that nodes have shown: node and time (monotonic).
        newcomers: nodes that have come to the running job, and wait.
        expelled: nodes on which a worker failed, where the user wants to go on without them.
    """

    hosts: tuple[str, ...]
    grace_s: float
    pending: frozenset[int]
    found: Findings = field(default_factory=Findings)
    stop_by: float = inf
    deadline: float = inf
    decided: Verdict | None = None
    clients: frozenset[int] = frozenset()
    limit_at: float = inf
    hang_timeout_s: float = inf
    silent: tuple[tuple[int, tuple[Look, ...]], ...] = ()
    life_at: float = -inf
    all_clients: frozenset[int] = frozenset()
    policy: Policy = field(default_factory=Policy)
    record: Record = field(default_factory=Record)
    attempt: int = 0
    members: tuple[int, ...] = ()
    seats: tuple[int, ...] = ()
    agents: tuple[int, ...] = ()
    bases: Bases = field(default_factory=Bases)
    parted_at: float = -inf
    joined: tuple[Joined, ...] = ()
    index: int = 0
    gone: frozenset[int] = frozenset()
    dead: frozenset[int] = frozenset()
    mutual: frozenset[int] = frozenset()
    fence_at: float = -inf
    progress: int = -1
    coming: renewal.Coming | None = None
    asking: asking.Asking = field(default_factory=asking.Asking)
    stop_signal: int = signal.SIGTERM
    standby: frozenset[int] = frozenset()
    past: tuple[tuple[int, float], ...] = ()
    newcomers: joining.Newcomers = field(default_factory=joining.Newcomers)
    expelled: frozenset[int] = frozenset()


Result = tuple[Hub, tuple[Action, ...]]


def step(hub: Hub, event: Event, now: float) -> Result:
    """The hub's next state and what to do, after `event` at `now` (monotonic seconds)."""
    if hub.decided is not None:
        return hub, ()
    match event:
        case AgentSaid():
            return on_said(hub, event, now)
        case AgentGone():
            return on_gone(hub, event, now)
        case Arrived() | Fenced() | EndKnown():
            return on_news(hub, event, now)
    return on_tick(hub, now) if isinstance(event, Tick) else (hub, ())


def on_news(hub: Hub, event: Arrived | Fenced | EndKnown, now: float) -> Result:
    """What comes to the hub's agent alone."""
    match event:
        case Arrived():
            return joining.arrived(hub, event, now)
        case Fenced(problem):
            return stop_for(hub, problem, now, 0.0)
    return asked(hub, asking.on_end_known(hub.asking, event.left_s, now))


def asked(hub: Hub, result: asking.Result) -> Result:
    """What comes of a request to save, or of news of the job's end."""
    return replace(hub, asking=result[0]), result[1]


def on_said(hub: Hub, event: AgentSaid, now: float) -> Result:
    """A node says something; one that an earlier hub had lost only that it is done."""
    if event.sender in hub.gone:
        return on_return(hub, event, now)
    return hear(hub, event.sender, event.message, event.offset_s, now)


def hear(hub: Hub, sender: int, message: Message, offset_s: float, now: float) -> Result:  # noqa: PLR0911 - one line per message
    """What node `sender` says, whose clock is `offset_s` ahead."""
    match message:
        case WorkerFailed(failure):
            return on_failure(hub, replace(failure, time_s=failure.time_s - offset_s), now)
        case StopAsked(stopped, grace_s):
            return on_stop_asked(hub, replace(stopped, time_s=stopped.time_s - offset_s), grace_s, now)
        case CannotStart(problem):
            return on_cannot_start(hub, sender, problem, now)
        case ClientsDone():
            return on_clients_done(hub, sender, now)
        case Silent(looks):
            return maybe_hung(replace(hub, silent=(*without(hub, sender), (sender, looks))), now)
        case Heard():
            return replace(hub, silent=without(hub, sender)), ()
        case NodeEnded():
            return on_ended(hub, sender, message, offset_s, now)
    return hear_more(hub, sender, message, offset_s, now)


def hear_more(hub: Hub, sender: int, message: Message, offset_s: float, now: float) -> Result:
    """What it says beside, or while another attempt is prepared."""
    match message:
        case SaveAsked(stopped):
            stopped = replace(stopped, time_s=stopped.time_s - offset_s)
            return asked(hub, asking.on_asked(hub.asking, stopped, now))
        case Ready():
            return on_ready(hub, sender, message, offset_s, now)
        case PlanMade():
            return on_plan(hub, sender, message, now)
        case Follows():
            return heritage.on_follows(hub, sender, message, now)
    return hub, ()


def on_return(hub: Hub, event: AgentSaid, now: float) -> Result:
    """A node that an earlier hub had lost has come to this one. Once nothing of its workers is left it waits with the others."""
    sender, message = event.sender, event.message
    if isinstance(message, Follows):
        return heritage.on_follows(hub, sender, message, now)
    if not isinstance(message, NodeEnded):
        return hub, ()
    hub = replace(hub, gone=hub.gone - {sender}, standby=hub.standby | {sender})
    return on_ended(hub, sender, message, event.offset_s, now)


def on_tick(hub: Hub, now: float) -> Result:
    """Time is up for the nodes' answers, or for the job."""
    if now >= hub.deadline:
        return on_deadline(hub, now)
    if now >= hub.limit_at and hub.stop_by == inf:
        found = replace(hub.found, expired=True)
        return order_stop(replace(hub, found=found), signal.SIGTERM, hub.grace_s, now)
    if now >= warn_at(hub):
        return asked(hub, asking.on_time(hub.asking, hub.hosts[hub.index], hub.limit_at, now))
    if hub.coming is not None:
        return renewal.maybe_begin(hub, now)
    if now >= joining.due_at(hub):
        return grow(hub, now)
    return maybe_hung(hub, now)


def grow(hub: Hub, now: float) -> Result:
    """Nodes have come: their attempt follows when all workers have ended."""
    hub, actions, stops = joining.make_room(hub)
    return renewal.also(actions, order_stop(hub, signal.SIGTERM, hub.grace_s, now) if stops else (hub, ()))


def warn_at(hub: Hub) -> float:
    """When the workers must be told that time runs out, monotonic; inf if the job is being stopped anyway."""
    return asking.warn_at(hub.asking, hub.limit_at) if hub.stop_by == inf else inf


def on_ready(hub: Hub, sender: int, message: Ready, offset_s: float, now: float) -> Result:
    """A node is ready for another attempt; everybody stops if too few nodes are fit for it."""
    hub, actions = renewal.on_ready(hub, sender, message, offset_s, now)
    problem = renewal.unfit(hub, now)
    if problem is None:
        return hub, actions
    return renewal.also(actions, stop_for(hub, problem, now))


def stop_for(hub: Hub, problem: Problem, now: float, grace_s: float | None = None) -> Result:
    """Everybody stops: another attempt cannot be made, or another job of this name may begin, which leaves no time for grace."""
    found = replace(hub.found, problems=((hub.hosts[hub.index], problem),))
    return order_stop(replace(hub, found=found), signal.SIGTERM, hub.grace_s if grace_s is None else grace_s, now)


def on_plan(hub: Hub, sender: int, message: PlanMade, now: float) -> Result:
    """A node has made its plan of another attempt; everybody stops if that differs from the others'."""
    hub, actions = renewal.on_plan(hub, sender, message, now)
    problem = renewal.disagreement(hub)
    return (hub, actions) if problem is None else stop_for(hub, problem, now)


def on_failure(hub: Hub, failure: Failure, now: float) -> Result:
    """A worker failed: everybody stops."""
    found = replace(hub.found, failures=earliest(hub.found.failures, failure), failed=hub.found.failed + 1)
    return order_stop(replace(hub, found=found), signal.SIGTERM, hub.grace_s, now)


def on_stop_asked(hub: Hub, stopped: Stopped, grace_s: float, now: float) -> Result:
    """An agent was signalled: everybody stops."""
    found = replace(hub.found, stops=earliest(hub.found.stops, stopped))
    return order_stop(replace(hub, found=found), program_signal(stopped.signal, hub.stop_signal), grace_s, now)


def on_cannot_start(hub: Hub, sender: int, problem: Problem, now: float) -> Result:
    """A node could not start its workers: everybody stops."""
    found = replace(hub.found, problems=(*hub.found.problems, (hub.hosts[sender], problem))[:KEPT])
    return order_stop(replace(hub, found=found), signal.SIGTERM, hub.grace_s, now)


def order_stop(hub: Hub, number: int, grace_s: float, now: float, wanted: tuple[int, ...] = ()) -> Result:
    """Tell everybody to stop, unless they have been told so for about the same time already."""
    stop_by = now + grace_s
    if stop_by > hub.stop_by - SOONER_S:
        return hub, ()
    hub = replace(hub, stop_by=stop_by, deadline=stop_by + LEFTOVER_S + KILL_S + ANSWER_S / 2)
    return hub, (TellAll(StopWorkers(number, grace_s, wanted)),)


def on_clients_done(hub: Hub, sender: int, now: float) -> Result:
    """Only services are left on a node; once that holds for all, services have nobody to serve, and end (W41)."""
    left = hub.clients - {sender}
    done = bool(hub.clients) and not left
    hub = replace(hub, clients=left)
    return order_stop(hub, signal.SIGTERM, hub.grace_s, now) if done else (hub, ())


def without(hub: Hub, sender: int) -> tuple[tuple[int, tuple[Look, ...]], ...]:
    """The silent nodes without one."""
    return tuple(entry for entry in hub.silent if entry[0] != sender)


def hang_at(hub: Hub) -> float:
    """When the job counts as hanging if nothing more happens, monotonic; inf while somebody has something to say."""
    if hub.stop_by < inf or not any(looks for node, looks in hub.silent if node in hub.pending):
        return inf
    return hub.life_at + hub.hang_timeout_s if hub.pending <= {node for node, _ in hub.silent} else inf


def maybe_hung(hub: Hub, now: float) -> Result:
    """Stop a job that hangs. SIGABRT has Python's fault handler tell where it was."""
    if now < hang_at(hub):
        return hub, ()
    odd = odd_ones(tuple(look for node, looks in hub.silent if node in hub.pending for look in looks))
    hub = replace(hub, found=replace(hub.found, hung=odd))
    return order_stop(hub, signal.SIGABRT, hub.grace_s, now, tuple(look.rank for look in odd))


def on_ended(hub: Hub, sender: int, message: NodeEnded, offset_s: float, now: float) -> Result:
    """A node is done."""
    if sender not in hub.pending:
        return hub, ()
    spoken = tuple(replace(failure, time_s=failure.time_s - offset_s) for failure in message.spoken)
    found = replace(
        hub.found,
        ended=hub.found.ended + message.ended,
        stuck=(hub.found.stuck + message.stuck)[:KEPT],
        spoken=earliest(hub.found.spoken, *spoken),
    )
    hub = replace(hub, found=found, pending=hub.pending - {sender}, progress=max(hub.progress, message.progress))
    hub, actions = on_clients_done(hub, sender, now)
    hub, more = maybe_decide(hub, now)
    return replace(hub, life_at=now), actions + more


def on_gone(hub: Hub, event: AgentGone, now: float) -> Result:
    """An agent is gone. Once its workers have ended well, that harms nobody in this attempt.

    If too many are gone this hub may be the one that is cut off, and the others go on soon: then no worker gets any grace.
    """
    index = event.index
    if index >= len(hub.hosts):  # a newcomer of which only an earlier hub knew
        return hub, ()
    hub = replace(hub, gone=hub.gone | {index}, standby=hub.standby - {index}, parted_at=now)
    alone = renewal.is_cut_off(hub)
    if index not in hub.pending and not alone:
        return hub, ()
    lost = earliest(hub.found.lost, Lost(index, hub.hosts[index], event.why, event.time_s, event.silent))
    found = replace(hub.found, lost=lost, gone=hub.found.gone + 1)
    hub = replace(hub, found=found, pending=hub.pending - {index})
    hub, actions = order_stop(hub, signal.SIGTERM, 0.0 if alone else hub.grace_s, now)
    hub, more = maybe_decide(hub, now)
    return hub, actions + more


def maybe_decide(hub: Hub, now: float) -> Result:
    """Decide once all nodes have ended, or soon after if an explanation may still be under way."""
    if hub.pending:
        return hub, ()
    if is_settled(hub.found):
        return give_verdict(hub, now)
    return replace(hub, deadline=now + SETTLE_S), ()


def on_deadline(hub: Hub, now: float) -> Result:
    """Decide with what is known; nodes that have not answered count as lost."""
    if hub.coming is not None and hub.stop_by == inf:
        return stop_for(hub, renewal.unready(hub), now)
    why = "did not say in time that its workers have ended"
    silent = tuple(Lost(index, hub.hosts[index], why, 0.0, True) for index in sorted(hub.pending))
    hub = replace(hub, gone=hub.gone | hub.pending, parted_at=now if hub.pending else hub.parted_at)
    return give_verdict(replace(hub, found=replace(hub.found, silent=silent[:KEPT], gone=hub.found.gone + len(silent))), now)


def give_verdict(hub: Hub, now: float) -> Result:
    """Decide, and have everybody start anew or end."""
    if hub.progress >= COMPLETE:  # nothing is left to do for those that have come
        hub = replace(hub, found=replace(hub.found, joined=()))
    verdict = replace(decide(hub.found), asked=hub.asking.asked, parted=renewal.is_parted(hub))
    lost = renewal.blamed(hub, verdict)
    blame = (Blame(lost),) if lost else ()
    hub = replace(hub, past=(*hub.past, *((node, now) for node, _ in lost)))
    hub, final = renewal.another(hub, verdict, now)
    if not final:
        return renewal.also(blame, renewal.renew(hub, verdict, now))
    if renewal.wanted(hub) and verdict.outcome != "success":
        verdict = replace(verdict, final=final)
    verdict = replace(verdict, progress=hub.record.progress)
    return replace(hub, decided=verdict), (*blame, TellAll(Decided(verdict)))
