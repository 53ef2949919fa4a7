"""The middle of the star: lets the job's agents in, keeps strangers out, notices who is gone."""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from slaunch.channel.door import Door, Guest
from slaunch.channel.handshake import HandshakeError, Hello
from slaunch.channel.link import Link, reason
from slaunch.channel.listen import allow_open_files
from slaunch.channel.settle import settle
from slaunch.channel.star import Lost, Message, Pulse
from slaunch.channel.watch import Watch
from slaunch.channel.wire import PULSE, Frame, Packed, WireError, pack
from slaunch.clock import wall_s
from slaunch.frozen import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WELCOME = {"say": "welcome"}


@dataclass
class Peer:
    """A spoke that has been let in."""

    rank: int
    hello: Hello
    link: Link
    last: float = -1.0  # since when it is silent, by tick's clock; -1.0 before the first tick
    heard_at: float = -1.0  # the same, but for what may have been sent long ago
    stale_until: float = -1.0
    asked: tuple[float, float] = (0.0, 0.0)  # monotonic and wall clock of the last heartbeat sent
    trip_s: float = 1e9  # shortest round trip so far, slowly forgotten
    offset_s: float = 0.0


class Hub:
    """The hub's side of the channel; see `star.Star` for what it offers.

    Args:
        listeners: listening sockets; the hub closes them.
        rank: own index; 0 for the agents' star, another one only while tasks meet.
        size: number of peers, this one included.
        door: who may come in.
        pulse: heartbeats; None = by size.
        numbered: whether the spokes know their ranks. If not, each comes under a random number, until `renumber`.
    """

    is_hub = True

    def __init__(
        self,
        listeners: list[socket.socket],
        rank: int,
        size: int,
        door: Door,
        *,
        pulse: Pulse | None = None,
        numbered: bool = True,
    ) -> None:
        allow_open_files(size)
        self.index = rank
        self.size = size
        self.peers: dict[int, Peer] = {}
        self.notices: deque[str] = deque(maxlen=200)
        self._inbox: list[Message | Lost] = []
        self._gone: dict[int, str] = {}
        self._watch = Watch()
        self._door = door
        self._numbered = numbered
        self._pulse = pulse or Pulse.for_size(size)
        self._listeners = list(listeners)
        self._guests: dict[Guest, None] = {}  # in order of arrival
        self._beat = float("-inf")
        self._ticked = time.monotonic()
        for listener in self._listeners:
            listener.setblocking(False)
            self._watch.add(listener, lambda listener=listener: self._accept(listener))  # type: ignore[misc]

    @property
    def hub(self) -> int:
        """This peer."""
        return self.index

    # -- the star's interface

    def register(self, selector: selectors.BaseSelector) -> None:
        """Keep the sockets registered with `selector`."""
        self._watch.attach(selector)

    def take(self) -> list[Message | Lost]:
        """What has come in since the last call."""
        taken, self._inbox = self._inbox, []
        return taken

    def put_back(self, items: Iterable[Message | Lost]) -> None:
        """Give back what was taken; the next `take` gives it first."""
        self._inbox[:0] = items

    def send(self, to: int, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Queue a message to one peer, or to oneself."""
        if to == self.index:
            self._inbox.append(Message(to, body, blob))
        elif to in self.peers:
            self._send(self.peers[to], pack(body, blob))
        elif to not in self._gone:
            raise ValueError(f"no peer {to} in this star")

    def broadcast(self, body: Mapping[str, Any], blob: bytes = b"", dense: bool = False) -> None:
        """Queue a message to all peers; it is encoded once. `dense`: the blob is compressed already."""
        packed = pack(body, blob, dense=dense)
        for peer in list(self.peers.values()):
            self._send(peer, packed)

    def tick(self, now: float) -> None:
        """Heartbeats, silent peers, strangers that take too long."""
        asleep = now - self._ticked > self._pulse.patience_s / 2  # we were stopped: nobody else is to blame
        self._ticked = now
        for peer in list(self.peers.values()):
            if asleep or (peer.link.heard and 0 <= peer.last < now - self._pulse.patience_s / 2):
                peer.stale_until = now + self._pulse.interval_s  # what comes after a long silence may have been sent long ago
            if (peer.link.heard and now >= peer.stale_until) or peer.heard_at < 0:
                peer.heard_at = now
            if peer.link.heard or asleep or peer.last < 0:
                peer.last, peer.link.heard = now, False
            elif now - peer.last > self._pulse.patience_s:
                self._lose(peer, f"silent for {now - peer.last:.1f} s", silent=True)
        if now - self._beat >= self._pulse.interval_s:
            self._beat = now
            self._send_beats()
        for guest in [guest for guest in self._guests if time.monotonic() > guest.deadline]:
            self._turn_away(guest, "did not prove itself in time")

    def heard_at(self, now: float) -> float:
        """When so many spokes were last heard, by tick's clock, that with this hub they are half of all."""
        heard = sorted((peer.heard_at for peer in self.peers.values() if peer.heard_at >= 0), reverse=True)
        others = len(heard) // 2
        return heard[others - 1] if others else now

    def clock_offset_s(self, index: int) -> float:
        """Wall clock of a peer minus ours."""
        peer = self.peers.get(index)
        return peer.offset_s if peer else 0.0

    def flush(self, deadline_s: float) -> bool:
        """Wait until all that was sent has arrived at the peers' machines."""
        self.write_out(deadline_s, arrived=True)
        return not any(peer.link.unacknowledged() for peer in self.peers.values())

    def write_out(self, deadline_s: float, arrived: bool = False) -> None:
        """Wait until all that was sent has left this process: the kernel does the rest while we do something else."""
        links = {peer.link: peer for peer in self.peers.values()}
        for link, error in settle(list(links), deadline_s, arrived):
            self._break(links[link], error)
        for link in links:
            self._watch.writing(link.sock, link.waiting)

    def close(self) -> None:
        """Close everything."""
        self.close_door()
        for peer in self.peers.values():
            self._drop(peer.link)
        self.peers.clear()

    def keep(self, peers: Iterable[int]) -> None:
        """Who is lost stays lost in any case."""

    # -- meeting

    def complete(self) -> bool:
        """Whether everybody is here."""
        return len(self.peers) == self.size - 1

    def missing(self) -> list[int]:
        """Ranks that are not here, ascending."""
        return [rank for rank in range(self.size) if rank != self.index and rank not in self.peers]

    def renumber(self, ranks: Mapping[int, int], own: int, size: int) -> None:
        """Give everybody another rank, also in what has come in and was not taken: somebody may have gone at the last moment.

        Args:
            ranks: new rank of each spoke by its old one; who is not in it is dropped.
            own: new rank of the hub.
            size: new number of peers.
        """
        for old, peer in self.peers.items():
            if old in ranks:
                peer.rank = ranks[old]
            else:
                self._drop(peer.link)
        self.peers = {peer.rank: peer for old, peer in self.peers.items() if old in ranks}
        self._gone = {ranks[old]: why for old, why in self._gone.items() if old in ranks}
        self._inbox = [moved(item, ranks) for item in self._inbox if old_rank(item) in ranks]
        self.index, self.size = own, size

    def adopt(self, peer: Peer, rank: int) -> None:
        """Take over a peer that another hub of this process has let in, and let go of, under a rank of this star's."""
        peer.rank = rank
        self.size = max(self.size, rank + 1)
        self.peers[rank] = peer
        self._watch.add(peer.link.sock, lambda: self._peer_ready(peer))

    def release(self, rank: int) -> Peer:
        """Let go of a peer, whose connection stays."""
        peer = self.peers.pop(rank)
        self._watch.remove(peer.link.sock)
        return peer

    def close_door(self) -> None:
        """Nobody else comes in."""
        for listener in self._listeners:
            self._watch.remove(listener)
            listener.close()
        self._listeners.clear()
        for guest in list(self._guests):
            self._turn_away(guest, "came when all were here")

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # a peer gone before we looked, or no descriptors left: the next guest may fare better
                self._note(f"could not accept a connection: {reason(error)}")
                time.sleep(0.01)
                return
            if len(self._guests) >= 2 * self.size + 64:
                self._turn_away(next(iter(self._guests)), "did not prove itself while many others came")
            guest = Guest(sock, address)
            self._guests[guest] = None
            self._watch.add(sock, lambda guest=guest: self._guest_ready(guest))  # type: ignore[misc]

    def _guest_ready(self, guest: Guest) -> None:
        try:
            guest.link.write()
            for frame in guest.link.read():
                if guest not in self._guests:
                    self._receive(guest.peer, frame)
                elif guest.hear(frame, self._door, self._objection):
                    self._let_in(guest)
        except HandshakeError as error:
            self._turn_away(guest, str(error), error.tell)
        except (OSError, EOFError, WireError) as error:
            if guest in self._guests:
                self._turn_away(guest, reason(error))
            else:
                self._break(guest.peer, error)

    def _objection(self, hello: Hello) -> str:
        """Why a spoke of our own job may not come in; "" if it may."""
        here = self.peers.get(hello.rank)
        if not self._numbered:
            return "" if hello.size == self.size else f"wants a meeting of {hello.size} nodes, but this is one of {self.size}"
        if hello.size != (self._door.size or self.size) or hello.rank >= self.size:
            return f"is task {hello.rank} of {hello.size}, but this is a meeting of {self.size}"
        if hello.rank == self.index:
            return f"claims to be task {hello.rank}, which is the hub itself"
        if here and here.hello.instance != hello.instance:
            return f"claims to be task {hello.rank}, which is here already (process {here.hello.pid} on {here.hello.host})"
        return f"was lost before ({self._gone[hello.rank]})" if hello.rank in self._gone else ""

    def _let_in(self, guest: Guest) -> None:
        del self._guests[guest]
        assert guest.hello
        old = self.peers.pop(guest.hello.rank, None)
        if old:  # the same process on a second connection: its first one is broken, even if we do not know it yet
            self._drop(old.link)
        guest.peer = Peer(guest.hello.rank, guest.hello, guest.link)
        self.peers[guest.hello.rank] = guest.peer
        self._watch.remove(guest.link.sock)
        self._watch.add(guest.link.sock, lambda: self._peer_ready(guest.peer))
        self._send(guest.peer, pack(WELCOME))

    def _turn_away(self, guest: Guest, why: str, tell: str = "") -> None:
        if self._guests.pop(guest, self) is self:
            return
        self._note(f"turned away {guest.name()}: {why}")
        guest.refuse(tell or why)
        self._drop(guest.link)

    # -- peers

    def _peer_ready(self, peer: Peer) -> None:
        try:
            peer.link.write()
            for frame in peer.link.read():
                self._receive(peer, frame)
        except (OSError, EOFError, WireError) as error:
            self._break(peer, error)
            return
        self._watch.writing(peer.link.sock, peer.link.waiting)

    def _receive(self, peer: Peer, frame: Frame) -> None:
        if frame.flags & PULSE:
            self._measure(peer, frame)
        else:
            self._inbox.append(Message(peer.rank, frame.body, frame.blob))

    def _measure(self, peer: Peer, frame: Frame) -> None:
        trip = time.monotonic() - peer.asked[0]
        if trip <= peer.trip_s * 1.2:  # a slow round trip says little; the best one is forgotten bit by bit, as clocks drift
            peer.offset_s = float(frame.body.get("clock", 0.0)) - (peer.asked[1] + trip / 2)
        peer.trip_s = min(peer.trip_s * 1.05, trip)

    def _send_beats(self) -> None:
        beat = pack({}, flags=PULSE)
        for peer in list(self.peers.values()):
            peer.asked = (time.monotonic(), wall_s())
            self._send(peer, beat)

    def _send(self, peer: Peer, packed: Packed) -> None:
        try:
            peer.link.send(packed)
        except (OSError, WireError) as error:
            self._break(peer, error)
            return
        self._watch.writing(peer.link.sock, peer.link.waiting)

    def _break(self, peer: Peer, error: Exception) -> None:
        if isinstance(error, OSError):
            for frame in peer.link.last_words():
                self._receive(peer, frame)
        self._lose(peer, reason(error))

    def _lose(self, peer: Peer, why: str, silent: bool = False) -> None:
        rank = peer.rank
        self._drop(peer.link)
        if self.peers.get(rank) is peer:
            del self.peers[rank]
            self._gone[rank] = why
            self._inbox.append(Lost(rank, why, silent))

    def _drop(self, link: Link) -> None:
        self._watch.remove(link.sock)
        link.close()

    def _note(self, line: str) -> None:
        if not self.notices or self.notices[-1] != line:
            self.notices.append(line)

    def guests(self) -> Iterator[str]:
        """Strangers at the door, by name."""
        return (guest.name() for guest in self._guests)


def old_rank(item: Message | Lost) -> int:
    """Whom it is about."""
    return item.index if isinstance(item, Lost) else item.sender


def moved(item: Message | Lost, ranks: Mapping[int, int]) -> Message | Lost:
    """The same under its new rank."""
    if isinstance(item, Lost):
        return replace(item, index=ranks[item.index])
    return replace(item, sender=ranks[item.sender])
