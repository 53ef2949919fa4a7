"""The hub that takes the place of a lost one: what it knows, and what those who come to it tell. Pure."""

from __future__ import annotations

from slaunch.agent import joining
from slaunch.agent.events import Action
from slaunch.agent.messages import Follows
from slaunch.agent.node_state import ANSWER_S, KILL_S, LEFTOVER_S, Node
from slaunch.agent.policy import shifted
from slaunch.agent.quorum import merged
from slaunch.agent.verdict import Findings
from slaunch.channel.star import Succeeded
from slaunch.frozen import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.hub_side import Hub

    Result = tuple[Hub, tuple[Action, ...]]

UNHEARD_FENCES = 4.0
"""Who has not come to a new hub may have heard the old one until its loss, and gives it up three times `fence_s` later."""


def inherit(hub: Hub, node: Node, event: Succeeded, now: float) -> Hub:
    """The hub that takes the place of a lost one: all nodes stop already, and tell it what they had told the old one.

    Args:
        hub: as it would have been in the beginning.
        node: this agent's node, as it stands.
        event: says what is known of the old hub.
        now: monotonic seconds.
    """
    lost = node.orphaned
    assert lost is not None
    stop_by, old = now + node.grace_s, frozenset({lost.node})
    hub = replace(
        hub,
        hosts=node.hosts,
        pending=frozenset(node.agents) - old,
        found=Findings(lost=(lost,), gone=1),
        stop_by=stop_by,
        deadline=stop_by + LEFTOVER_S + KILL_S + ANSWER_S / 2,
        clients=frozenset(),
        gone=old,
        fence_at=now + UNHEARD_FENCES * hub.policy.fence_s,
        dead=frozenset(event.ended).union(old if event.proven else ()),
        mutual=old if event.mutual else frozenset(),
        parted_at=now,
        agents=node.agents,
        joined=node.joined,
    )
    return standing(hub, Follows(node.attempt, node.agents, node.members, node.record, node.bases))


def standing(hub: Hub, known: Follows) -> Hub:
    """The hub with what a node knows of the last attempt."""
    here = frozenset(hub.agents) - hub.pending - hub.gone | {hub.index}  # the old hub may have given up some of them
    gone = (hub.gone.union(range(len(hub.hosts))) - frozenset(known.agents) | hub.gone) - here
    standby = here.union(known.agents).difference(known.members, gone)
    missing = max(known.agents, default=0) + 1 - len(hub.hosts)  # newcomers of whom only the old hub had told others
    return replace(
        hub,
        hosts=(*hub.hosts, *("a node that joined",) * missing),
        attempt=known.attempt,
        agents=known.agents,
        members=known.members,
        seats=known.members,
        record=known.record,
        standby=standby,
        gone=gone,
        bases=merged(hub.bases, known.bases),
    )


def on_follows(hub: Hub, sender: int, message: Follows, now: float) -> Result:
    """A node has come; it may know of a later attempt, on which the old hub was at work, and of nodes that this hub does not."""
    hub, actions = joining.told(hub, sender, message)
    if message.attempt <= hub.attempt or hub.coming is not None or hub.stop_by == float("inf"):
        return replace(hub, bases=merged(hub.bases, message.bases)), actions
    return standing(hub, replace(message, record=shifted(message.record, now))), actions
