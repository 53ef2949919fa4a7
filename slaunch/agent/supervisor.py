"""The supervisor of one agent: a pure machine `step(state, event) -> (state, actions)`, for spokes and the hub alike.

The hub's agent has both duties; what its node tells the hub, and what the hub tells its node, never leaves this machine.
"""

from __future__ import annotations

from math import inf

from slaunch.agent import heritage, hub_side, joining, node_side, renewal
from slaunch.agent.asking import Asking
from slaunch.agent.events import Action, AgentGone, AgentSaid, Arrived, EndKnown, Event, Fenced, Tell, TellAll, Tick
from slaunch.agent.hub_side import Hub
from slaunch.agent.messages import Follows
from slaunch.agent.node_state import HUB, Node
from slaunch.agent.policy import Policy, shifted
from slaunch.agent.quorum import known_to_all
from slaunch.channel.star import Succeeded
from slaunch.frozen import dataclass, replace


@dataclass(frozen=True)
class State:
    """One agent: its node's duty, and the hub's if it is the hub. `successor`: the hub that it may become."""

    node: Node
    hub: Hub | None = None
    successor: Hub | None = None


def start(  # noqa: PLR0917 - a node's place, its workers, and the job's kinds of them
    index: int,
    hosts: tuple[str, ...],
    ranks: frozenset[int],
    grace_s: float,
    services: frozenset[int] = frozenset(),
    clients: frozenset[int] = frozenset(),
    limit_at: float = inf,
    hang_timeout_s: float = inf,
    policy: Policy | None = None,
) -> State:
    """An agent whose workers `ranks` have just been started.

    Args:
        index: this node.
        hosts: host names by node.
        ranks: this node's workers.
        grace_s: seconds between the request to stop and SIGKILL.
        services: those of them that serve others.
        clients: nodes that have workers other than services; () where the job has no services.
        limit_at: when the user's time limit ends the job, monotonic.
        hang_timeout_s: silence of all workers after which the job counts as hanging.
        policy: when to start anew; None = never.
    """
    policy = policy or Policy()
    abrupt = policy.least > 0
    members = tuple(range(len(hosts)))
    node = Node(index, hosts[index], hosts[HUB], grace_s, ranks, services=services, abrupt=abrupt)
    bases = known_to_all(members)
    node = replace(node, hosts=hosts, agents=members, members=members, bases=bases)
    hub = Hub(hosts, grace_s, frozenset(members), clients=clients, limit_at=limit_at, hang_timeout_s=hang_timeout_s)
    hub = replace(hub, index=index, all_clients=clients, policy=policy, members=members, agents=members, seats=members)
    hub = replace(hub, bases=bases)
    return State(node, hub) if index == HUB else State(node, successor=hub)


def with_members(state: State, members: tuple[int, ...], unfit: frozenset[int] = frozenset()) -> State:
    """The agent of a job in which only these nodes take part at first; the others wait, those that are unfit for ever."""
    rest = frozenset(state.node.agents).difference(members)

    def having(hub: Hub | None) -> Hub | None:
        return hub and replace(
            hub, members=members, seats=members, pending=frozenset(members), standby=rest, expelled=unfit
        )

    node = replace(state.node, members=members)
    if node.index in rest:
        node = replace(node, phase="idle")
    return State(node, having(state.hub), having(state.successor))


def with_wishes(state: State, warn_s: float, warn_signal: int, stop_signal: int) -> State:
    """The agent with the user's wishes on how workers are asked to save and to end.

    Args:
        warn_s: seconds before the end of the job's time at which workers are told; 0 = not.
        warn_signal: number of the signal that tells them then; 0 = none.
        stop_signal: number of the signal that asks them to end; 0 = none.
    """
    asking = Asking(warn_s, warn_signal)

    def wishing(hub: Hub | None) -> Hub | None:
        return hub and replace(hub, asking=asking, stop_signal=stop_signal)

    node = replace(state.node, stop_signal=stop_signal)
    return State(node, wishing(state.hub), wishing(state.successor))


def joined(state: State, hub: int, follows: Follows, now: float) -> State:
    """An agent that has come to a running job and waits, from `start`.

    Args:
        hub: the hub's index.
        follows: what the hub has told it.
        now: monotonic seconds.
    """
    node = replace(state.node, phase="idle", hub=hub, hub_host=state.node.hosts[hub], record=shifted(follows.record, now))
    node = replace(node, attempt=follows.attempt, members=follows.members, agents=follows.agents, bases=follows.bases)
    return replace(state, node=node, successor=state.successor and replace(state.successor, bases=follows.bases))


def wake_at(state: State) -> float:
    """When a `Tick` is due at the latest, monotonic seconds."""
    if state.hub is None or state.hub.decided is not None:
        return state.node.deadline
    limit_at = state.hub.limit_at if state.hub.stop_by == inf else inf
    begin_at = renewal.begin_at(state.hub)
    hub_at = min(state.hub.deadline, limit_at, begin_at, hub_side.hang_at(state.hub), hub_side.warn_at(state.hub))
    return min(state.node.deadline, hub_at, joining.due_at(state.hub))


def step(state: State, event: Event, now: float) -> tuple[State, tuple[Action, ...]]:
    """The agent's next state and what to do, after `event` at `now` (monotonic seconds)."""
    if isinstance(event, Succeeded) and event.index == state.node.index and state.node.orphaned is not None:
        assert state.successor is not None
        state = replace(state, hub=heritage.inherit(state.successor, state.node, event, now))
    done: list[Action] = []
    events: list[tuple[str, Event]] = [(duty, event) for duty in _duties(state, event)]
    while events:
        duty, event = events.pop(0)
        state, actions = _step_duty(state, duty, event, now)
        for action in actions:
            inner = _inner(state, duty, action)
            if inner is not None:
                events.append(inner)
            if not _stays_inside(state, action):
                done.append(action)
    return state, tuple(done)


def _duties(state: State, event: Event) -> tuple[str, ...]:
    """Which duty an event from outside concerns."""
    if state.hub is None:
        return ("node",)
    if isinstance(event, AgentSaid | AgentGone | Arrived | Fenced | EndKnown):
        return ("hub",)
    return ("node", "hub") if isinstance(event, Tick) else ("node",)


def _step_duty(state: State, duty: str, event: Event, now: float) -> tuple[State, tuple[Action, ...]]:
    if duty == "node":
        node, actions = node_side.step(state.node, event, now)
        return replace(state, node=node), actions
    assert state.hub is not None
    hub, actions = hub_side.step(state.hub, event, now)
    return replace(state, hub=hub), actions


def _inner(state: State, duty: str, action: Action) -> tuple[str, Event] | None:
    """What a message between the two duties of the hub's agent is to the other one."""
    if state.hub is None:
        return None
    own = state.node.index
    if isinstance(action, Tell) and action.to == own:
        return "hub", AgentSaid(own, action.message)
    if isinstance(action, TellAll):
        return "node", AgentSaid(own, action.message)
    return None


def _stays_inside(state: State, action: Action) -> bool:
    return state.hub is not None and isinstance(action, Tell) and action.to == state.node.index
