"""A spoke of the star: one connection, to the hub."""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Iterable, Mapping

from slaunch.channel.link import Link, reason
from slaunch.channel.settle import settle
from slaunch.channel.star import HUB, Lost, Message, Pulse
from slaunch.channel.watch import Watch
from slaunch.channel.wire import PULSE, Frame, Packed, WireError, pack
from slaunch.clock import wall_s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Spoke:
    """A spoke's side of the channel; see `star.Star` for what it offers.

    Args:
        link: the connection to the hub, both sides proved.
        index, size: own place.
        pulse: heartbeats; None = by size.
        hub: index of the hub.

    Attributes:
        wall: the wall clock that the hub is told of.
    """

    is_hub = False

    def __init__(self, link: Link, index: int, size: int, pulse: Pulse | None = None, hub: int = HUB) -> None:
        self.index = index
        self.hub = hub
        self.size = size
        self.notices: deque[str] = deque()
        self.wall = wall_s
        self._link: Link | None = link
        self._pulse = pulse or Pulse.for_size(size)
        self._inbox: list[Message | Lost] = []
        self._watch = Watch()
        self._watch.add(link.sock, self._ready)
        self._last = self._ticked = time.monotonic()
        self._woke = self._heard_at = self._stale_until = float("-inf")
        self._ready()  # something may have come together with the welcome

    def register(self, selector: selectors.BaseSelector) -> None:
        """Keep the socket registered with `selector`."""
        self._watch.attach(selector)

    def take(self) -> list[Message | Lost]:
        """What has come in since the last call."""
        taken, self._inbox = self._inbox, []
        return taken

    def put_back(self, items: Iterable[Message | Lost]) -> None:
        """Give back what was taken; the next `take` gives it first."""
        self._inbox[:0] = items

    def send(self, to: int, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Queue a message to the hub, or to oneself."""
        if to == self.hub:
            self._send(pack(body, blob))
        elif to == self.index:
            self._inbox.append(Message(to, body, blob))
        else:
            raise ValueError(f"a spoke sends to the hub, not to peer {to}")

    def broadcast(self, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Not for spokes."""
        raise ValueError("only the hub sends to all")

    def keep(self, peers: Iterable[int]) -> None:
        """A spoke knows no other spokes."""

    def renumber(self, index: int, size: int) -> None:
        """Take the place that the hub has given."""
        self.index, self.size = index, size

    def tick(self, now: float) -> None:
        """Notice a silent hub; its heartbeats are answered as they come."""
        asleep = self._is_late(now)  # the hub is not to blame
        self._ticked = now
        if self._link is None:
            return
        if asleep or (self._link.heard and now - self._last > self._pulse.patience_s / 2):
            self._stale_until = now + self._pulse.interval_s  # what comes after a long silence may have been sent long ago
        if (self._link.heard and now >= self._stale_until) or self._heard_at < 0:
            self._heard_at = now
        if self._link.heard or asleep:
            self._last, self._link.heard = now, False
        elif now - self._last > self._pulse.patience_s:
            self._lose(f"silent for {now - self._last:.1f} s", silent=True)

    def _is_late(self, now: float) -> bool:
        """Whether this process has stood still; the hub may have given it up meanwhile."""
        if now - self._ticked > self._pulse.patience_s / 2:
            self._woke = now
        return self._woke == now

    def heard_at(self, now: float) -> float:
        """When the hub was heard, by tick's clock."""
        return self._heard_at

    def clock_offset_s(self, index: int) -> float:
        """Not measured by spokes."""
        return 0.0

    def flush(self, deadline_s: float) -> bool:
        """Wait until all that was sent has arrived at the hub's machine."""
        if self._link is None:
            return False
        for _, error in settle([self._link], deadline_s):
            self._break(error)
            return False
        self._watch.writing(self._link.sock, self._link.waiting)
        return self._link.unacknowledged() == 0

    def close(self) -> None:
        """Close the connection."""
        if self._link:
            self._watch.remove(self._link.sock)
            self._link.close()
            self._link = None

    def _ready(self) -> None:
        if self._link is None:
            return
        try:
            self._link.write()
            for frame in self._link.read():
                self._receive(frame)
        except (OSError, EOFError, WireError) as error:
            self._break(error)
        if self._link:
            self._watch.writing(self._link.sock, self._link.waiting)

    def _receive(self, frame: Frame) -> None:
        if frame.flags & PULSE:
            self._send(pack({"clock": self.wall()}, flags=PULSE))
        else:
            self._inbox.append(Message(self.hub, frame.body, frame.blob))

    def _send(self, packed: Packed) -> None:
        if self._link is None:
            return
        try:
            self._link.send(packed)
        except (OSError, WireError) as error:
            self._break(error)
            return
        self._watch.writing(self._link.sock, self._link.waiting)

    def _break(self, error: Exception) -> None:
        if self._link and isinstance(error, OSError):
            said = [frame for frame in self._link.last_words() if not frame.flags & PULSE]
            self._inbox += [Message(self.hub, frame.body, frame.blob) for frame in said]
        self._lose(reason(error))

    def _lose(self, why: str, silent: bool = False) -> None:
        if self._link:
            now = time.monotonic()
            late = self._is_late(now) or now < self._woke + self._pulse.patience_s
            self.close()
            self._inbox.append(Lost(self.hub, why, silent, late=late))
