"""A star that survives its hub: the agents gather around the next one in line.

Every agent has listened since the first exchange, and all know all addresses, so nothing need be agreed on when the hub is lost.
Each of the others connects to the first agents in line, and waits at their doors. The first in line opens its door at once; each
further one when all before it are dead for certain, or had their time. Whoever opens is the hub of those who have come to it, and
knows soon who has not. That may happen on both sides of a broken network: which side goes on is for the supervisor to decide, by
their numbers (`agent.quorum`).

The handshake names the reign, a number that grows with each hub. So a hub that was only cut off finds nobody who obeys it.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from slaunch.channel.dial import REFUSED, Caller, Dialer, Round, Target
from slaunch.channel.door import Door
from slaunch.channel.hub import Hub, Peer
from slaunch.channel.link import Link, brackets
from slaunch.channel.listen import close_all
from slaunch.channel.spoke import Spoke
from slaunch.channel.star import Headless, Item, Lost, Pulse, Succeeded
from slaunch.frozen import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from typing import Any

HEIRS = 4
"""So many agents in line may be lost together with the hub."""
TURN_BEATS = 3.0
"""Each in line waits so many heartbeats longer than the one before: that is how far apart agents may notice the loss."""
GATHER_BEATS = 4.0
"""Who has not come to the new hub after so many heartbeats is lost as well."""
PAUSE_S = 0.2
"""Between two looks at all of them."""
PROBE_S = 1.0
"""Time to find out whether an agent whose connection has ended lives."""
PROOF_BEATS = 1.0
"""An end that is seen so soon after the loss of the hub came before the others can have gone on without this agent, which they do
two heartbeats after they have lost it; one that is seen later may be the end of a job that went on."""


@dataclass(frozen=True)
class Line:
    """Who could follow.

    Attributes:
        identity: names the job's agents.
        secret: the job's secret.
        targets: for each agent, where it listens.
        host: this machine's name.
        size: number of agents at first; they call it so however many come later.
    """

    identity: str
    secret: bytes
    targets: tuple[tuple[Target, ...], ...]
    host: str
    size: int = 0

    @property
    def called(self) -> int:
        """The size that the handshake names."""
        return self.size or len(self.targets)


class Search:
    """One agent's search for the next hub, after the loss of one. It never blocks.

    Args:
        line: who could follow.
        own: this agent.
        heirs: those who may follow, in order.
        lost: the old hub.
        reign: number of the new hub.
        pulse: the job's heartbeats.

    Attributes:
        before: those in line that come before this agent.
        dead: those that have certainly ended: their machine says that nobody listens there any more.
        idle: those of them that had ended before they can have gone on without this agent.
    """

    def __init__(  # noqa: PLR0917 - what the search depends on
        self, line: Line, own: int, heirs: Sequence[int], lost: Lost, reign: int, pulse: Pulse
    ) -> None:
        self._heir = own in heirs
        self.before = tuple(heirs[: heirs.index(own)] if self._heir else heirs)
        self._own, self._line, self._lost = own, line, lost
        self._name = reign_name(line, reign)
        self._places = {brackets(*target): index for index in self.before for target in line.targets[index]}
        self._probed = self.before if lost.silent else (lost.index, *self.before)
        self.dead: set[int] = set()
        self.idle: set[int] = set()
        self._proves_until = -inf if lost.late else time.monotonic() + PROOF_BEATS * pulse.interval_s
        turn_s = TURN_BEATS * pulse.interval_s
        self._turn = time.monotonic() + (len(self.before) * turn_s or (0.0 if lost.silent else PROBE_S))
        self._end = self._turn if self._heir else self._turn + GATHER_BEATS * pulse.interval_s
        self._selector: selectors.BaseSelector | None = None
        self._again_at = 0.0
        self._round: Round | None = None

    def find(self, now: float, selector: selectors.BaseSelector | None) -> Link | Succeeded | Headless | None:
        """Look on.

        Args:
            now: `time.monotonic()`.
            selector: wakes when there is something to do.

        Returns:
            The connection to the new hub, or that it is this agent's turn, or that there is none; None while it is open.
        """
        link = self._look(now, selector)
        if link:
            return link
        if self._heir and (now >= self._end or self._all_dead()):
            ended = tuple(index for index in self.before if index in self.idle)
            return Succeeded(self._own, self.proven, self._lost.silent, ended)
        if now >= self._end or self._all_dead():
            return Headless(f"{self._lost.why}; none of the next {len(self.before)} agents has taken its place")
        return None

    def place_of(self, link: Link) -> int:
        """Which agent a connection leads to."""
        return self._places[link.peer]

    @property
    def proven(self) -> bool:
        """Whether the old hub has certainly ended, and did nothing before: its connection has ended, and its machine said at once
        that nobody listens there."""
        return self._lost.index in self.idle

    def close(self) -> None:
        """End what is under way."""
        if self._round:
            if self._selector:
                self._selector.unregister(self._round)
            self._round.close()
            self._round = None

    def _look(self, now: float, selector: selectors.BaseSelector | None) -> Link | None:
        if self._round is None and now >= self._again_at and not self._all_dead():
            self._begin_round(selector)
        if self._round is None:
            return None
        link = self._round.look(self._end + PROBE_S, wait=False)
        if not link and self._round.over:
            self.close()
            self._mark_dead(now)
            self._again_at = now + PAUSE_S
        return link

    def _begin_round(self, selector: selectors.BaseSelector | None) -> None:
        targets = [target for index in self._probed if index not in self.dead for target in self._line.targets[index]]
        size, instance = self._line.called, os.urandom(8).hex()
        caller = Caller(self._name, self._own, size, self._line.host, os.getpid(), instance)
        self._dialer = Dialer(targets, caller, lambda by, hint: self._line.secret)
        self._round = Round(self._dialer, stagger_s=0.0)
        self._selector = selector
        if selector:
            selector.register(self._round, selectors.EVENT_READ, lambda: None)

    def _mark_dead(self, now: float) -> None:
        for index in set(self._probed) - self.dead:
            found = {self._dialer.seen.get(target) for target in self._line.targets[index]}
            if found == {REFUSED}:
                self.dead.add(index)
                if now <= self._proves_until:
                    self.idle.add(index)

    def _all_dead(self) -> bool:
        return bool(self._probed) and self.dead >= set(self._probed)


def reign_name(line: Line, reign: int) -> str:
    """What the handshake calls the star of a hub."""
    return f"{line.identity}/reign {reign}"


class Dynasty:
    """The agents' star, through all its hubs; see `star.Star` for what it offers.

    Args:
        star: the first hub's, as it stands.
        line: who could follow.
        listeners: where this agent listens; they are closed with the star.
        pulse: heartbeats; None = by size.
    """

    def __init__(self, star: Hub | Spoke, line: Line, listeners: Sequence[socket.socket], pulse: Pulse | None = None) -> None:
        self.index, self.size = star.index, star.size
        self._star: Hub | Spoke = star
        self._line = line
        self._listeners = list(listeners)
        self._pulse = pulse or Pulse.for_size(star.size)
        self._peers: tuple[int, ...] = tuple(range(star.size))
        self._reign = 0
        self._fallen: set[int] = set()
        self._inbox: list[Item] = []
        self._selector: selectors.BaseSelector | None = None
        self._search: Search | None = None
        self._gather_until = 0.0

    @property
    def is_hub(self) -> bool:
        """Whether this is the hub."""
        return self._star.is_hub

    @property
    def hub(self) -> int:
        """Index of the hub, or of the last one while another is being looked for."""
        return self._star.hub

    @property
    def notices(self) -> deque[str]:
        """One line for each stranger that was turned away and similar."""
        return self._star.notices

    def register(self, selector: selectors.BaseSelector) -> None:
        """Keep the sockets registered with `selector`."""
        self._selector = selector
        self._star.register(selector)

    def take(self) -> Sequence[Item]:
        """What has come in since the last call."""
        taken = self._inbox + [self._heir_of(item) for item in self._star.take()]
        self._inbox = []
        return taken

    def keep(self, peers: Iterable[int]) -> None:
        """Only these peers are in the job any more; the next hub is one of them."""
        self._peers = tuple(sorted(peers))

    @property
    def reign(self) -> int:
        """How many hubs there have been before this one."""
        return self._reign

    @property
    def line(self) -> Line:
        """Who could follow."""
        return self._line

    def enter(self, reign: int, peers: Iterable[int]) -> None:
        """This agent has come late: so many hubs were there before, and these agents are there."""
        self._reign = reign
        self.keep(peers)

    def grow(self, index: int, targets: tuple[Target, ...]) -> None:
        """Another agent belongs to the job."""
        line = self._line
        self._line = replace(line, targets=(*line.targets, targets), size=line.called)
        self.size = self._star.size = index + 1
        self._peers = (*self._peers, index)

    def adopt(self, peer: Peer, index: int) -> None:
        """The connection of an agent that has come late (hub only)."""
        assert isinstance(self._star, Hub)
        self._star.adopt(peer, index)

    def send(self, to: int, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Queue a message; what is meant for an earlier hub is dropped."""
        if to not in self._fallen:
            self._star.send(to, body, blob)

    def broadcast(self, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Queue a message to all (hub only)."""
        self._star.broadcast(body, blob)

    def tick(self, now: float) -> None:
        """Heartbeats, and the search for another hub."""
        self._star.tick(now)
        if self._search:
            self._look(self._search, now)
        if self._gather_until:
            self._gather(now)

    def heard_at(self, now: float) -> float:
        """When this peer last had word of the others, monotonic; while a hub is looked for, of the last one."""
        return self._star.heard_at(now)

    def clock_offset_s(self, index: int) -> float:
        """Wall clock of a peer minus ours, where we are the hub."""
        return self._star.clock_offset_s(index)

    def flush(self, deadline_s: float) -> bool:
        """Wait until all that was sent has arrived."""
        return self._star.flush(deadline_s)

    def close(self) -> None:
        """Close everything."""
        if self._search:
            self._search.close()
            self._search = None
        self._star.close()
        close_all(self._listeners)

    def _heir_of(self, item: Item) -> Item:
        """What the star has said; after the loss of its hub the search begins."""
        if not isinstance(item, Lost) or self._star.is_hub or item.index != self.hub:
            return item
        self._reign += 1
        self._fallen.add(item.index)
        self._peers = tuple(peer for peer in self._peers if peer != item.index)
        self._search = Search(self._line, self.index, self._peers[:HEIRS], item, self._reign, self._pulse)
        return replace(item, heir=True)

    def _look(self, search: Search, now: float) -> None:
        found = search.find(now, self._selector)
        if found is None:
            return
        search.close()
        self._search = None
        match found:
            case Link():
                self._take_up(Spoke(found, self.index, self.size, self._pulse, search.place_of(found)))
                self._inbox.append(Succeeded(self.hub))
            case Succeeded():
                door = Door(reign_name(self._line, self._reign), self._line.secret, size=self._line.called)
                doors = [listener.dup() for listener in self._listeners]
                self._take_up(Hub(doors, self.index, self.size, door, pulse=self._pulse))
                self._gather_until = now + GATHER_BEATS * self._pulse.interval_s
                ended = [peer for peer in self._peers if peer in search.dead]
                self._inbox += [found, *(Lost(peer, "its process has ended") for peer in ended)]
                self.keep(peer for peer in self._peers if peer not in ended)
            case Headless():
                self._inbox.append(found)

    def _take_up(self, star: Hub | Spoke) -> None:
        self._star.close()
        self._star = star
        if self._selector:
            star.register(self._selector)

    def _gather(self, now: float) -> None:
        """A new hub closes its door when all have come, or their time is over."""
        star = self._star
        assert isinstance(star, Hub)
        missing = [peer for peer in self._peers if peer in star.missing()]
        if missing and now < self._gather_until:
            return
        self._gather_until = 0.0
        star.close_door()
        self._inbox += [Lost(peer, "has not come to the new hub", silent=True) for peer in missing]
