"""Allgather over a star: every spoke sends its payload to the hub, the hub sends all of them to every spoke."""

from __future__ import annotations

import selectors
import socket
import struct
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from slaunch.channel.hub import Hub
from slaunch.channel.spoke import Spoke
from slaunch.channel.star import HUB, Lost, Message, Star
from slaunch.errors import RendezvousError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.rendezvous.beside import Beside

LENGTH = struct.Struct(">I")
TICK_S = 0.25
TELL_S = 5.0
"""Who is missing is said so often."""
HUB_LEAD_S = 3.0
"""Spokes wait so much longer than the hub, so that they hear its verdict rather than give their own."""
WORDS_S = 2.0
"""Time for an error to reach the others before this task ends."""


class StarGatherer:
    """Allgather over a star that stands.

    Args:
        star: the star; it belongs to the gatherer until `star()` hands it over.
        rank: this task's rank.
        secret: the secret by which the tasks found each other.
        names: a name for each rank, for messages.
        patience_s: how long the hub may wait for the last task after this one has joined.
        hub_rank: rank of the hub.
        held: sockets that listen on where the tasks came to.

    Attributes:
        rank, size: this task's place.
        mark: what was left where the tasks came to, by which the running job knows it as its own; "" = nothing.
    """

    def __init__(
        self,
        star: Hub | Spoke,
        rank: int,
        secret: bytes,
        names: Callable[[int], str],
        *,
        patience_s: float = 0.0,
        hub_rank: int = HUB,
        held: Sequence[socket.socket] = (),
    ) -> None:
        self.held = tuple(held)
        self.mark = ""
        self.secret = secret
        self.rank, self.size = rank, star.size
        self.lasts = (rank if star.is_hub else hub_rank) == HUB
        self._patience_s = patience_s
        self._star = star
        self._names = names
        self._round = 0
        self._given_away = False

    def allgather(self, payload: bytes, deadline: float) -> list[bytes]:
        """Everybody's payload, in rank order.

        Raises:
            RendezvousError: somebody left, or did not send it in time.
        """
        self._round += 1
        if isinstance(self._star, Hub):
            return self._collect(self._star, payload, deadline)
        return self._contribute(self._star, payload, deadline)

    def _collect(self, hub: Hub, payload: bytes, deadline: float) -> list[bytes]:
        parts = {self.rank: payload}
        for item in listen_to(hub, lambda: len(parts) < hub.size, deadline):
            if isinstance(item, Lost):
                raise self._fail(f"{self._names(item.index)} left: {item.why}", "look for that task's own message")
            if item.body.get("gather") == self._round:
                parts[item.sender] = item.blob
        if len(parts) < hub.size:
            silent = [self._names(rank) for rank in range(hub.size) if rank not in parts]
            raise self._fail(f"no word in time from {', '.join(silent[:8])} ({len(silent)} in all)", "look at those nodes")
        ordered = [parts[rank] for rank in range(hub.size)]
        hub.broadcast({"gather": self._round}, join(ordered), dense=True)
        hub.write_out(max(0.0, deadline - time.monotonic()))
        return ordered

    def _fail(self, seen: str, todo: str) -> RendezvousError:
        error = RendezvousError("gather what all tasks know", seen, todo)
        announce(self._star, error)
        return error

    def _contribute(self, spoke: Spoke, payload: bytes, deadline: float) -> list[bytes]:
        spoke.send(HUB, {"gather": self._round}, payload)
        deadline = max(deadline, time.monotonic() + self._patience_s) + HUB_LEAD_S
        answer: list[Message] = []
        for item in listen_to(spoke, lambda: not answer, deadline):
            check_error(item)
            if isinstance(item, Message) and item.body.get("gather") == self._round:
                answer.append(item)
        if not answer:
            raise left_alone("the hub has not answered in time")
        return split(answer[0].blob)

    def star(self) -> Star | None:
        """The star."""
        self._given_away = True
        return self._star

    def close(self) -> None:
        """Close the star, unless it was handed over. What is held is its owner's."""
        if not self._given_away:
            self._star.flush(WORDS_S)
            self._star.close()


def listen_to(
    star: Hub | Spoke, wanted: Callable[[], bool], deadline: float, beside: Beside | None = None
) -> Iterator[Message | Lost]:
    """What comes in, until nothing more is wanted or the deadline (monotonic) has passed; the rest stays in the star.

    Whether something is wanted may depend on what is done `beside`.
    """
    with selectors.DefaultSelector() as selector:
        star.register(selector)
        if beside is not None:
            selector.register(beside, selectors.EVENT_READ, lambda: None)
        while wanted() and time.monotonic() < deadline:
            for key, _ in selector.select(max(0.0, min(TICK_S, deadline - time.monotonic()))):
                key.data()
            star.tick(time.monotonic())
            items = deque(star.take())
            while items and wanted():
                yield items.popleft()
            star.put_back(items)


def announce(star: Star, error: RendezvousError) -> None:
    """Let all others end with the same error."""
    star.broadcast({"error": [error.wanted, error.seen, error.todo]})
    star.flush(WORDS_S)


def check_error(item: Message | Lost) -> None:
    """Raise what the hub has announced, or that it is gone."""
    if isinstance(item, Lost):
        raise left_alone(f"the hub is gone: {item.why}")
    if "error" in item.body:
        raise RendezvousError(*item.body["error"])


def left_alone(seen: str) -> RendezvousError:
    """The error of a spoke that cannot hear the hub, which therefore does not speak for it."""
    error = RendezvousError("meet the other tasks", seen, "look for the message of the first node, or whether it still runs")
    error.local = True
    return error


def join(parts: list[bytes]) -> bytes:
    """Byte strings as one, compressed well: it is done once and sent to all."""
    return zlib.compress(b"".join(piece for part in parts for piece in (LENGTH.pack(len(part)), part)), 6)


def split(data: bytes) -> list[bytes]:
    """The inverse of `join`."""
    data = zlib.decompress(data)
    parts, at = [], 0
    while at < len(data):
        end = at + LENGTH.size + LENGTH.unpack_from(data, at)[0]
        parts.append(data[at + LENGTH.size : end])
        at = end
    return parts
