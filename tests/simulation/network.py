"""The agents' channel in virtual time: connections that keep their order or end, and the search for another hub.

What it does is what `slaunch.channel` does with sockets: heartbeats each second, a peer that is silent for 6 s is lost, a frame
that is not the next one ends the connection, the next in line opens its door when the hub is lost (`channel.succession`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from slaunch.agent.events import AgentGone, AgentSaid
from slaunch.channel.star import Headless, Succeeded
from slaunch.channel.succession import GATHER_BEATS, HEIRS, PROBE_S, PROOF_BEATS, TURN_BEATS

if TYPE_CHECKING:
    from .world import Agent, World

BEAT_S, PATIENCE_S = 1.0, 6.0
GUARD_S = PATIENCE_S + BEAT_S / 2  # `agent.guardian` ends the workers of an agent that has heard nobody for so long
LOOKS_S = (0.3, 0.999 * PROOF_BEATS * BEAT_S)  # after the loss of the hub: who finds all before it in line dead opens its door


@dataclass(eq=False)
class Link:
    """A connection of a spoke to its hub. `open`: which of the two still hold it."""

    hub: Agent
    spoke: Agent
    open: set[int] = field(default_factory=set)
    last: dict[int, float] = field(default_factory=dict)  # by receiver: when the last message arrives
    way: dict[int, deque[tuple[Agent, object]]] = field(default_factory=dict)  # by receiver: what is under way, in order
    held: list[Agent] = field(default_factory=list)  # for each message that has been held up by a cut, its receiver
    apart_since: float = -1.0  # -1 = they reach each other
    apart_before: float = -1.0
    healed_at: float = -inf
    bad: bool = False  # the next frame is not what the receiver expects


@dataclass
class Search:
    """A spoke's search for the next hub."""

    before: tuple[int, ...]
    heir: bool
    mutual: bool
    late: bool
    idle: set[int] = field(default_factory=set)  # they ended before they can have gone on


class Network:
    """All connections of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.links: dict[int, Link] = {}  # by spoke
        self.spokes: dict[int, dict[int, Link]] = {}  # by hub, then spoke
        self.group: dict[int, int] = {}  # nodes that are cut off, by which cut; others are together
        self.half: list[Link] = []  # the hub still holds them
        self.slow_until = 0.0
        self.cuts = 0
        first = world.agents[0]
        self.spokes[0] = {}
        for agent in world.agents[1:]:
            self._connect(first, agent)

    # -- what the agents do

    def send(self, sender: Agent, to: int, message: object) -> None:
        """A message from a spoke to its hub, or the other way."""
        link = self.spokes.get(sender.index, {}).get(to) if sender.hub == sender.index else self.links.get(sender.index)
        if link is None or sender.index not in link.open:
            return
        receiver = link.spoke if link.hub is sender else link.hub
        if receiver.index == to:
            self._put(link, sender, receiver, message)

    def send_all(self, sender: Agent, message: object) -> None:
        for link in list(self.spokes.get(sender.index, {}).values()):
            if sender.index in link.open:
                self._put(link, sender, link.spoke, message)

    def leave(self, agent: Agent, silent: bool) -> None:
        """An agent has ended; `silent`: its whole machine has, so that nobody is told."""
        for link in self._of(agent):
            link.open.discard(agent.index)
            other = link.spoke if link.hub is agent else link.hub
            if silent or self.apart(agent, other):
                self._after(PATIENCE_S + self.chance() * BEAT_S, self._lose, link, other, "silent for 6.0 s", True)
            else:
                self._close(link, other)

    def join(self, hub: Agent, agent: Agent) -> None:
        """A new agent comes in by the hub's reception."""
        self._connect(hub, agent)

    # -- what happens to it

    def apart(self, one: Agent, other: Agent) -> bool:
        """Whether they cannot reach each other."""
        return self.group.get(one.index, 0) != self.group.get(other.index, 0)

    def cut(self, nodes: list[int], lasts_s: float) -> None:
        """These nodes are cut off from the others, together."""
        self.cuts += 1
        number = self.cuts
        for node in nodes:
            self.group[node] = number
        self._review()
        if lasts_s < 1e6:
            self._after(lasts_s, self._heal, nodes, number)

    def stand_still(self, agent: Agent) -> None:
        """An agent stands still from now on: the others hear nothing of it."""
        now = self.world.now
        heard_at = self.heard_at(agent)
        self.world.at(heard_at + GUARD_S, self.world.guard, agent, heard_at, now)
        for link in self._of(agent):
            other = link.spoke if link.hub is agent else link.hub
            self._after(PATIENCE_S + self.chance() * BEAT_S, self._outwait, link, agent, other, now)

    def heard_at(self, agent: Agent) -> float:
        """When this agent last had word of the others; see `channel.star`."""
        now = self.world.now
        stale = now < agent.woke_at + BEAT_S  # what it finds then may have been sent long ago
        own = agent.paused_since if stale or agent.stands_still(now) else now
        if agent.hub != agent.index:
            link = self.links.get(agent.index)
            return min(own, self._silent_since(link, link.hub)) if link else own
        spokes = self.spokes.get(agent.index, {}).values()
        heard = sorted((self._silent_since(link, link.spoke) for link in spokes), reverse=True)
        others = len(heard) // 2
        return min(own, heard[others - 1]) if others else own

    def _silent_since(self, link: Link, other: Agent) -> float:
        """When the other side of a connection was heard last."""
        now = self.world.now
        apart = link.apart_since if link.apart_since >= 0 else now
        if now < link.healed_at + BEAT_S and link.healed_at > link.apart_before + PATIENCE_S / 2:
            apart = link.apart_before  # what comes then may have been sent before
        return min(apart, other.paused_since if other.stands_still(now) else now)

    def spoil(self, node: int) -> None:
        """The next frame to or from a node is lost, doubled or out of order."""
        if node in self.links:
            self.links[node].bad = True

    # -- inside

    def chance(self) -> float:
        return self.world.random.random()

    def _after(self, seconds: float, what: Callable[..., None], *args: object) -> None:
        self.world.at(self.world.now + seconds, what, *args)

    def _delay(self) -> float:
        slow = 3.0 if self.world.now < self.slow_until else 0.0
        return 0.0002 + self.chance() * (self.world.life.delay_s + slow)

    def _of(self, agent: Agent) -> list[Link]:
        own = self.links.get(agent.index)
        return [*([own] if own else []), *self.spokes.get(agent.index, {}).values()]

    def _connect(self, hub: Agent, spoke: Agent) -> None:
        link = Link(hub, spoke, {hub.index, spoke.index})
        self.links[spoke.index] = link
        self.spokes[hub.index][spoke.index] = link

    def _put(self, link: Link, sender: Agent, receiver: Agent, message: object) -> None:
        link.way.setdefault(receiver.index, deque()).append((sender, message))
        self._carry(link, receiver)

    def _carry(self, link: Link, receiver: Agent) -> None:
        arrival = max(link.last.get(receiver.index, 0.0), self.world.now + self._delay())
        link.last[receiver.index] = arrival
        self.world.at(arrival, self._arrive, link, receiver)

    def _arrive(self, link: Link, receiver: Agent) -> None:
        """The next message arrives, which is the first that was sent of those that have not."""
        if receiver.index not in link.open:
            return
        if self.apart(link.hub, link.spoke):
            link.held.append(receiver)
            return
        sender, message = link.way[receiver.index].popleft()
        if link.bad:
            link.bad = False
            self._lose(link, receiver, "the peer does not speak our protocol", False)
        else:
            offset_s = sender.offset_s - receiver.offset_s if receiver is link.hub else 0.0
            self.world.feed(receiver, AgentSaid(sender.index, self.world.over_the_wire(message), offset_s))

    def _review(self) -> None:
        """Which connections lead nowhere from now on, and which lead somewhere again."""
        self.half = [link for link in self.half if link.open]
        for link in [*self.links.values(), *self.half]:
            apart = self.apart(link.hub, link.spoke)
            if apart and link.apart_since < 0:
                link.apart_since = self.world.now
                for side in (link.hub, link.spoke):
                    if self.world.now < side.late_until:
                        self._after(GUARD_S, self.world.guard, side, self.world.now)
                    self._after(PATIENCE_S + self.chance() * BEAT_S, self._miss, link, side, self.world.now)
            elif link.apart_since >= 0 and not apart:
                link.apart_before, link.healed_at, link.apart_since = link.apart_since, self.world.now, -1.0
                self._rejoin(link)

    def _outwait(self, link: Link, agent: Agent, other: Agent, since: float) -> None:
        """Nothing was heard of an agent that stands still, if it still does."""
        if not agent.stands_still(self.world.now) or agent.paused_since != since:
            return
        if other.stands_still(self.world.now):
            self.world.at(other.paused_until + PATIENCE_S, self._outwait, link, agent, other, since)
        else:
            self._lose(link, other, "silent for 6.0 s", True)

    def _miss(self, link: Link, side: Agent, since: float) -> None:
        """Nothing was heard since a cut, unless it has healed. Who stood still meanwhile waits anew."""
        if side.index in link.open and link.apart_since == since:
            if self.world.now < side.late_until:
                self.world.at(side.late_until, self._miss, link, side, since)
                return
            self._lose(link, side, "silent for 6.0 s", True)

    def _heal(self, nodes: list[int], number: int) -> None:
        for node in nodes:
            if self.group.get(node) == number:
                del self.group[node]
        self._review()

    def _rejoin(self, link: Link) -> None:
        """What was sent meanwhile arrives after all."""
        held, link.held = link.held, []
        for receiver in held:
            self._carry(link, receiver)
        if len(link.open) == 1:  # the other side answers that it knows of no connection
            (left,) = link.open
            side = link.hub if link.hub.index == left else link.spoke
            self._after(self.chance() * BEAT_S, self._lose, link, side, "connection reset by peer", False)

    def _close(self, link: Link, other: Agent) -> None:
        """The other side reads what was sent before, then that this was the end."""
        arrival = max(link.last.get(other.index, 0.0), self.world.now + self._delay())
        self.world.at(arrival, self._lose, link, other, "it closed the connection", False)

    def _lose(self, link: Link, side: Agent, why: str, silent: bool) -> None:
        """One side gives the connection up; the other one learns of it if it can be reached."""
        if side.index not in link.open:
            return
        if side.stands_still(self.world.now):  # it learns of it when it wakes
            self.world.at(side.paused_until, self._lose, link, side, why, silent)
            return
        link.open.discard(side.index)
        other = link.spoke if side is link.hub else link.hub
        if other.index in link.open and not self.apart(side, other):
            self._close(link, other)
        if side is link.hub:
            if self.spokes[side.index].get(other.index) is link:
                del self.spokes[side.index][other.index]
            self.world.feed(side, AgentGone(other.index, why, self.world.wall(side)))
        elif self.links.get(side.index) is link:
            del self.links[side.index]
            self.half.append(link)
            self._orphan(side, link.hub, why, silent)

    # -- succession

    def _orphan(self, agent: Agent, hub: Agent, why: str, silent: bool) -> None:
        """A spoke has lost its hub."""
        if agent.over:
            return
        agent.reign += 1
        agent.peers = tuple(peer for peer in agent.peers if peer != hub.index)
        heirs = agent.peers[:HEIRS]
        heir = agent.index in heirs
        before = heirs[: heirs.index(agent.index)] if heir else heirs
        agent.search = search = Search(before, heir, silent, late=self.world.now < agent.late_until)
        self.world.feed(agent, AgentGone(hub.index, why, self.world.wall(agent), True))
        probed = before if silent else (hub.index, *before)
        turn_s = len(before) * TURN_BEATS * BEAT_S or (0.0 if silent else PROBE_S)
        for look_s in LOOKS_S:
            self._after(look_s, self._ahead, agent, search, probed, hub)
        self._after(turn_s + (0.0 if heir else GATHER_BEATS * BEAT_S), self._turn, agent, search, hub)
        self._after(0.001, self._knock, agent, search)

    def _knock(self, agent: Agent, search: Search) -> None:
        """Whether one of those before has opened its door by now."""
        if agent.over:
            return
        for index in search.before:
            other = self.world.agents[index]
            known = agent.index < len(other.state.node.hosts)  # else it is a newcomer of which the new hub was not told
            here = known and not other.over and not self.apart(agent, other)
            if agent.search is search and other.door == agent.reign and here:
                awake_at = max(agent.paused_until, other.paused_until)
                if self.world.now < awake_at:
                    self.world.at(awake_at, self._knock, agent, search)
                else:
                    self._enter(agent, other)

    def _ahead(self, agent: Agent, search: Search, probed: tuple[int, ...], hub: Agent) -> None:
        if agent.search is not search or agent.stands_still(self.world.now):
            return
        dead = {index for index in probed if self._refused(agent, self.world.agents[index])}
        if not search.late:
            search.idle |= dead
        if probed and dead.issuperset(probed):
            self._turn(agent, search, hub)

    def _refused(self, agent: Agent, other: Agent) -> bool:
        """Whether its machine says that nobody listens there."""
        return other.ended and not other.machine_dead and not self.apart(agent, other)

    def _turn(self, agent: Agent, search: Search, hub: Agent) -> None:
        """It is this agent's turn to be the hub; or it has found none in time."""
        if agent.search is not search or agent.over:
            return
        if agent.stands_still(self.world.now):
            self.world.at(agent.paused_until, self._turn, agent, search, hub)
            return
        agent.search = None
        if not search.heir:
            self.world.feed(agent, Headless("silent"))
            return
        ended = tuple(index for index in search.before if index in search.idle)
        agent.hub, agent.door = agent.index, agent.reign
        self.spokes[agent.index] = {}
        self._after(GATHER_BEATS * BEAT_S, self._gathered, agent, agent.reign)
        self.world.feed(agent, Succeeded(agent.index, hub.index in search.idle, search.mutual, ended))
        for other in self.world.agents:
            if other.search is not None and agent.index in other.search.before and other.reign == agent.reign:
                self._after(self._delay(), self._knock, other, other.search)

    def _enter(self, agent: Agent, hub: Agent) -> None:
        agent.search, agent.hub = None, hub.index
        self._connect(hub, agent)
        self.world.feed(agent, Succeeded(hub.index))
        if set(agent.peers) - {hub.index} <= set(self.spokes[hub.index]):
            self._gathered(hub, hub.door)

    def _gathered(self, hub: Agent, reign: int) -> None:
        """The door closes; who has not come is lost."""
        if hub.over or hub.door != reign:
            return
        if hub.stands_still(self.world.now):
            self.world.at(hub.paused_until, self._gathered, hub, reign)
            return
        hub.door = -1
        for peer in hub.peers:
            if peer != hub.index and peer not in self.spokes[hub.index]:
                self.world.feed(hub, AgentGone(peer, "has not come to the new hub", self.world.wall(hub)))
