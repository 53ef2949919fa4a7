"""One node's duty, as a pure machine: watch the workers, stop them, tell the hub, end with the verdict.

`agent.node_state` shows the phases.
"""

from __future__ import annotations

import signal
from math import inf

from slaunch.agent.events import (
    Action,
    AgentGone,
    AgentSaid,
    Ask,
    Enrol,
    Event,
    Finish,
    Kill,
    MakePlan,
    Planned,
    Prepare,
    Prepared,
    Resume,
    ShowEnd,
    SignalArrived,
    SignalWorkers,
    Started,
    StartFailed,
    StartWorkers,
    Suspend,
    Sweep,
    Tell,
    Tick,
    TreeSeen,
    WorkerExited,
    WorkersHeard,
    WorkersSilent,
)
from slaunch.agent.messages import (
    Begin,
    CannotStart,
    ClientsDone,
    Decided,
    EndsIn,
    Follows,
    Heard,
    Joined,
    Message,
    NewAttempt,
    NodeEnded,
    PlanMade,
    Ports,
    Ready,
    SaveAsked,
    SaveNow,
    Silent,
    StopAsked,
    StopWorkers,
    WorkerFailed,
)
from slaunch.agent.node_state import (
    ANSWER_S,
    AT_REST,
    HURRY_OTHER_S,
    HURRY_S,
    KILL_S,
    LEFTOVER_S,
    REPEAT_S,
    SPOKEN,
    STOPS,
    TAILS,
    WAIT_S,
    Node,
)
from slaunch.agent.policy import shifted
from slaunch.agent.quorum import known_to_all, merged
from slaunch.agent.values import Lost, Stopped, Verdict
from slaunch.agent.verdict import explains_itself
from slaunch.channel.star import Headless, Succeeded
from slaunch.errors import AgentLostError
from slaunch.frozen import replace

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGXCPU})
SAVE_SIGNALS = frozenset({signal.SIGUSR1, signal.SIGUSR2})
JOB_CONTROL = frozenset({signal.SIGTSTP, signal.SIGCONT})

Result = tuple[Node, tuple[Action, ...]]


def step(node: Node, event: Event, now: float) -> Result:
    """The node's next state and what to do, after `event` at `now` (monotonic seconds)."""
    if isinstance(event, Succeeded | Headless):
        node, actions = on_succession(node, event, now)
    else:
        node, actions = react(node, event, now)
    return also(actions, maybe_clear(node, now))


def react(node: Node, event: Event, now: float) -> Result:  # noqa: PLR0911 - one line per event
    """What the event itself asks for."""
    match event:
        case WorkerExited():
            return on_exit(node, event, now)
        case TreeSeen(left):
            return on_tree(replace(node, left=left), now)
        case SignalArrived():
            return on_signal(node, event, now)
        case StartFailed(problem):
            return also((Tell(node.hub, CannotStart(problem)),), stop(node, signal.SIGTERM, node.grace_s, now))
        case WorkersSilent(looks):
            return node, (Tell(node.hub, Silent(looks)),)
        case WorkersHeard():
            return node, (Tell(node.hub, Heard()),)
        case AgentSaid(message=message):
            return hear(node, message, now)
        case AgentGone() if event.index == node.hub:
            return on_hub_gone(node, event, now)
        case Tick():
            return on_deadline(node, now) if now >= node.deadline else (node, ())
    return on_prepared(node, event, now)


def on_prepared(node: Node, event: Event, now: float) -> Result:
    """What this node does for another attempt; in vain if the job has been stopped meanwhile."""
    match event:
        case Started(ranks, services):
            return on_started(replace(node, alive=ranks, services=services), now)
        case Prepared(ports, faults, doubts) if node.phase == "waiting":
            return node, (Tell(node.hub, Ready(ports, faults, doubts)),)
        case Planned(digest) if node.phase == "waiting":
            return node, (Tell(node.hub, PlanMade(digest)),)
    return node, ()


def on_started(node: Node, now: float) -> Result:
    """The workers run; if the job was stopped meanwhile they have nothing yet for which they would need any grace."""
    if node.stopped:
        return replace(node, phase="killing", deadline=now + KILL_S), (Kill(),)
    return replace(node, phase="running", deadline=inf), ()


def hear(node: Node, message: Message, now: float) -> Result:
    """What the hub says."""
    match message:
        case StopWorkers(number, grace_s, wanted):
            return stop(replace(node, wanted=node.wanted | frozenset(wanted)), number, grace_s, now)
        case Decided(verdict):
            return conclude(node, verdict, now)
        case SaveNow(number, reason):
            return node, (Ask(number, reason),)
        case EndsIn(left_s):
            return node, (ShowEnd(left_s),)
    return hear_more(node, message, now)


def hear_more(node: Node, message: Message, now: float) -> Result:
    """What the hub says while another attempt is prepared."""
    match message:
        case NewAttempt(members=members) if node.phase in ("ended", "idle") and node.index in members:
            return get_ready(node, message, now)
        case NewAttempt(bases=bases) if node.index not in message.members:  # it was given up; the others go on
            return replace(node, bases=merged(node.bases, bases)), ()
        case Ports(ports, members) if node.phase == "waiting":
            if node.index not in members:  # it is not fit, and may be for a later attempt
                node = replace(node, phase="idle", deadline=inf)
            known = known_to_all(dict(node.bases.counted)[node.attempt], node.attempt)
            return replace(node, members=members, bases=known), (MakePlan(ports, members),)
        case Joined(index, host, card) if index == len(node.hosts):
            return replace(node, hosts=(*node.hosts, host), joined=(*node.joined, message)), (Enrol(index, host, card),)
        case Begin() if node.phase == "waiting":
            return replace(node, phase="starting", deadline=inf), (StartWorkers(),)
    return node, ()


def get_ready(node: Node, message: NewAttempt, now: float) -> Result:
    """Another attempt follows: forget this one."""
    patience_s = message.delay_s + WAIT_S
    fresh = Node(node.index, node.host, node.hub_host, node.grace_s, frozenset(), "waiting", now + patience_s)
    fresh = replace(
        fresh,
        hub=node.hub,
        hosts=node.hosts,
        attempt=message.attempt,
        agents=message.members,
        members=node.members,
        record=shifted(message.record, now),
        bases=message.bases,
        joined=node.joined,
    )
    fresh = replace(fresh, asked_at=node.asked_at, abrupt=node.abrupt)
    leads = node.hub == node.index
    return fresh, (Prepare(message.attempt, message.members, message.delay_s, message.verdict, leads),)


def also(first: tuple[Action, ...], result: Result) -> Result:
    """`first`, then the actions of `result`."""
    return result[0], first + result[1]


def on_exit(node: Node, event: WorkerExited, now: float) -> Result:
    """A worker is gone; a failure stops the rest at once."""
    progress = max(node.progress, event.progress)
    node = replace(node, alive=node.alive - {event.rank}, ended=node.ended + (event.failure is None), progress=progress)
    if event.failure is not None and event.failure.told and (explains_itself(event.failure) or event.rank in node.wanted):
        node = replace(node, spoken=(*node.spoken, event.failure)[:SPOKEN])
    if event.failure is None or event.failure.told:
        return node, (Tell(node.hub, ClientsDone()),) if only_services(node, event.rank) else ()
    failure = event.failure if len(node.failures) < TAILS else replace(event.failure, tail=())
    node = replace(node, failures=(*node.failures, failure))
    return also((Tell(node.hub, WorkerFailed(failure)),), stop(node, signal.SIGTERM, node.grace_s, now))


def only_services(node: Node, gone: int) -> bool:
    """Whether the worker that has just gone was the last that is no service."""
    return node.phase == "running" and bool(node.alive) and node.alive <= node.services and gone not in node.services


def maybe_clear(node: Node, now: float) -> Result:
    """Once no worker is left, look for what they left behind (while killing, the killer looks already)."""
    if node.alive or node.phase not in ("running", "stopping"):
        return node, ()
    patience_s = LEFTOVER_S if node.stopped else node.grace_s
    return replace(node, phase="clearing", deadline=min(node.deadline, now + patience_s)), (Sweep(),)


def on_tree(node: Node, now: float) -> Result:
    """Nothing left of the workers means that this node is done."""
    if node.left or node.alive or node.phase not in ("clearing", "killing"):
        return node, ()
    return end(node, now)


def on_signal(node: Node, event: SignalArrived, now: float) -> Result:
    """Requests to stop go to the hub and to our workers; requests to save to the hub, which has all nodes told the same."""
    stopped = Stopped(event.number, node.index, node.host, event.sender, event.time_s)
    if event.number in SAVE_SIGNALS:
        return node, (Tell(node.hub, SaveAsked(stopped)),)
    if event.number in JOB_CONTROL:
        return node, (Suspend() if event.number == signal.SIGTSTP else Resume(),)
    if event.number not in STOP_SIGNALS or node.asked_at <= now < node.asked_at + REPEAT_S:
        return node, ()
    grace_s = node.grace_s
    if now >= node.asked_at:
        grace_s = min(grace_s, HURRY_S.get(signal.Signals(event.number), HURRY_OTHER_S))
    told = StopAsked(stopped, grace_s)
    node = replace(node, asked_at=now, stops=(*node.stops, told)[:STOPS])
    return also((Tell(node.hub, told),), stop(node, program_signal(event.number, node.stop_signal), grace_s, now))


def program_signal(number: int, wish: int) -> int:
    """What the workers get when the agent gets `number`: Ctrl-C stays Ctrl-C, everything else is as the user wishes."""
    return signal.SIGINT if number == signal.SIGINT else wish


def stop(node: Node, number: int, grace_s: float, now: float) -> Result:
    """Ask the workers to end within `grace_s`; asked again, only an earlier deadline counts."""
    sooner = min(node.deadline, now + grace_s)
    if node.phase == "running":
        return replace(node, phase="stopping", stopped=True, deadline=sooner), (SignalWorkers(number),)
    if node.phase in ("stopping", "clearing") and sooner < node.deadline - REPEAT_S:
        return replace(node, stopped=True, deadline=sooner), (SignalWorkers(signal.SIGTERM),)
    if node.phase == "waiting":
        return end(replace(node, stopped=True), now)
    if node.phase == "idle":  # nobody waits for it
        return node, ()
    if node.phase == "ended" and not node.stopped:
        return replace(node, stopped=True, deadline=now + answer_s(node)), ()
    return replace(node, stopped=True), ()


def answer_s(node: Node) -> float:
    """How long the hub's verdict may take once the job is being stopped: every node may use its grace and be killed."""
    return node.grace_s + LEFTOVER_S + KILL_S + ANSWER_S


def on_deadline(node: Node, now: float) -> Result:
    """Patience is over: kill, then give up on what cannot be killed, then give up on the hub."""
    if node.phase in ("stopping", "clearing"):
        return replace(node, phase="killing", deadline=now + KILL_S), (Kill(),)
    if node.phase == "killing":
        return end(node, now)
    silent = Lost(node.hub, node.hub_host, "sent no verdict in time", 0.0, True)
    return conclude(node, lost_hub(node, silent), now)


def end(node: Node, now: float) -> Result:
    """Nothing more to do here: tell the hub, and wait for the verdict or end with it."""
    waits = node.stopped and node.orphaned is None
    node = replace(node, phase="ended", deadline=now + answer_s(node) if waits else inf)
    if node.verdict is not None:
        return node, (Finish(node.verdict),)
    return node, () if node.orphaned else (ended(node),)


def ended(node: Node) -> Tell:
    """What the hub is told of a node that is done."""
    return Tell(node.hub, NodeEnded(node.ended, node.left, node.spoken, node.progress))


def conclude(node: Node, verdict: Verdict, now: float) -> Result:
    """The verdict is known: end with it, after whatever still runs has been killed."""
    if node.verdict is not None:
        return node, ()
    node = replace(node, verdict=verdict)
    if node.phase in AT_REST:
        return node, (Finish(verdict),)
    if node.phase in ("killing", "starting"):
        return replace(node, stopped=True), ()
    return replace(node, phase="killing", stopped=True, deadline=now + KILL_S), (Kill(),)


def on_hub_gone(node: Node, event: AgentGone, now: float) -> Result:
    """Without its hub this node stops its own workers. It ends with its own verdict, unless another hub is looked for."""
    if node.verdict is not None:
        return node, ()
    lost = Lost(node.hub, node.hub_host, event.why, event.time_s, event.silent)
    node = replace(node, orphaned=lost) if event.heir else replace(node, verdict=lost_hub(node, lost))
    if node.phase in ("ended", "waiting", "idle"):
        return end(replace(node, stopped=True), now)
    if node.abrupt and node.phase not in ("killing", "starting"):
        return replace(node, phase="killing", stopped=True, deadline=now + KILL_S), (Kill(),)
    return stop(node, signal.SIGTERM, node.grace_s, now)


def on_succession(node: Node, event: Succeeded | Headless, now: float) -> Result:
    """Another hub has been found, or none. This node ends with its own verdict then."""
    if node.orphaned is None:
        return node, ()
    if isinstance(event, Succeeded):
        return follow(replace(node, hub=event.index, hub_host=node.hosts[event.index], orphaned=None), now)
    verdict = lost_hub(node, replace(node.orphaned, why=event.why))
    return replace(node, orphaned=None, verdict=verdict), (Finish(verdict),) if node.phase == "ended" else ()


def follow(node: Node, now: float) -> Result:
    """Tell the new hub where this node stands, and what the old one was told of this attempt."""
    follows = Follows(node.attempt, node.agents, node.members, shifted(node.record, -now), node.bases, node.joined)
    told: tuple[Message, ...] = (follows, *node.stops, *map(WorkerFailed, node.failures))
    actions = tuple(Tell(node.hub, message) for message in told)
    if node.phase != "ended":
        return node, actions
    return replace(node, deadline=now + answer_s(node)), (*actions, ended(node))


def lost_hub(node: Node, lost: Lost) -> Verdict:
    """This node's own verdict when the hub cannot give one."""
    first = node.failures[0] if node.failures else None
    return Verdict("lost", AgentLostError.exit_code, first, node.failures[1:], (lost,), ended=node.ended)
