"""Nodes that come to the running job: the hub's part. Pure.

    Arrived                          a node has proved that it belongs to the job's user, and shown its facts
    hub → nodes   Joined             everybody knows it from now on; it waits
    (a moment later)                 by the user's policy the workers are stopped, or asked to save and end, or neither
    hub → nodes   NewAttempt, …      the next attempt, with it
"""

from __future__ import annotations

from math import inf

from slaunch.agent.events import Action, Admit, Arrived, Tell, TellAll
from slaunch.agent.messages import Follows, Joined, SaveNow
from slaunch.agent.policy import shifted
from slaunch.agent.renewal import left_of
from slaunch.agent.seats import number_of
from slaunch.frozen import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.hub_side import Hub

    Result = tuple[Hub, tuple[Action, ...]]

COLLECT_S = 3.0
"""Nodes seldom come alone: after the last of them the job goes on for so long before its workers are stopped for them."""
REASON = "join"
"""What workers read when they shall save and end for others."""


@dataclass(frozen=True)
class Newcomers:
    """Nodes that have come since the last attempt was prepared.

    Attributes:
        hosts: their names.
        due_at: when something is done for them, monotonic.
    """

    hosts: tuple[str, ...] = ()
    due_at: float = inf


def arrived(hub: Hub, event: Arrived, now: float) -> Result:
    """A node has come: it waits, and everybody is told."""
    index = len(hub.hosts)
    new = Newcomers((*hub.newcomers.hosts, event.host), now + COLLECT_S)
    hub = replace(hub, hosts=(*hub.hosts, event.host), standby=hub.standby | {index}, newcomers=new)
    follows = Follows(hub.attempt, hub.agents, hub.members, shifted(hub.record, -now))  # it counts from its first attempt on
    joined = Joined(index, event.host, event.card)
    hub = replace(hub, joined=(*hub.joined, joined))
    admit = Admit(event.token, index, follows, left_of(hub))
    return hub, (TellAll(joined), admit)


def told(hub: Hub, sender: int, follows: Follows) -> Result:
    """A node has come to this new hub. Each tells the other of newcomers of whom only the old hub had told it.

    A newcomer of whom this hub did not know cannot have come to it: it is lost, until it does.
    """
    new = tuple(each for each in sorted(follows.joined, key=lambda each: each.index) if each.index >= len(hub.hosts))
    told = tuple(Tell(sender, each) for each in hub.joined if each not in follows.joined and sender != hub.index)
    hosts = (*hub.hosts, *(each.host for each in new))
    hub = replace(hub, hosts=hosts, joined=(*hub.joined, *new), gone=hub.gone.union(each.index for each in new))
    return hub, (*told, *map(TellAll, new))


def due_at(hub: Hub) -> float:
    """When the workers are to be stopped for newcomers, or asked to end; inf if they are not."""
    if hub.coming is not None or hub.stop_by < inf or hub.found.joined or hub.policy.join == "next":
        return inf
    grows = number_of(len(left_of(hub)), hub.policy) > len(hub.members)
    return hub.newcomers.due_at if grows else inf


def make_room(hub: Hub) -> tuple[Hub, tuple[Action, ...], bool]:
    """It is time: the hub, what to tell everybody, and whether the workers must be stopped."""
    hub = replace(hub, found=replace(hub.found, joined=hub.newcomers.hosts), newcomers=Newcomers())
    if hub.policy.join == "boundary":
        return hub, (TellAll(SaveNow(0, REASON)),), False
    return hub, (), True
