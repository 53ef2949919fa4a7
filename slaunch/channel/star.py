"""The agents' channel as they see it: a star of authenticated connections, the hub in its middle."""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from slaunch.frozen import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object

HUB = 0
"""Index of the first hub."""


@dataclass(frozen=True)
class Message:
    """What a peer said.

    Attributes:
        sender: index of the peer.
        body: its words; JSON values only.
        blob: bytes that came along; mostly b"".
    """

    sender: int
    body: Mapping[str, Any]
    blob: bytes = b""


@dataclass(frozen=True)
class Lost:
    """A peer is gone for good. Told once for each peer; there is no way back in.

    Attributes:
        index: which peer.
        why: one line, e.g. "connection reset by peer" or "silent for 6.0 s".
        silent: nothing was heard of it any more; else its connection ended.
        heir: it was the hub, and another one is being looked for: `Succeeded` or `Headless` follows.
        late: this peer has stood still itself (SIGSTOP, a machine that swaps) for so long that it may have happened long ago.
    """

    index: int
    why: str
    silent: bool = False
    heir: bool = False
    late: bool = False


@dataclass(frozen=True)
class Succeeded:
    """Another peer is the hub now.

    Attributes:
        index: which one; this peer itself may be it.
        proven: the old hub's process has certainly ended, and before the others can have gone on without this peer; else it may
            live on, out of reach, or have done so.
        mutual: nothing was heard of the old hub for as long as it waits for others; so it has lost this peer, too.
        ended: those before it in line of which the same is certain.
    """

    index: int
    proven: bool = False
    mutual: bool = False
    ended: tuple[int, ...] = ()


@dataclass(frozen=True)
class Headless:
    """The hub is lost, and there is no other one. `why`: one line."""

    why: str


Item = Message | Lost | Succeeded | Headless


@dataclass(frozen=True)
class Pulse:
    """How peers show that they are alive.

    Attributes:
        interval_s: seconds between two heartbeats.
        patience_s: seconds of silence after which a peer counts as lost.
    """

    interval_s: float = 1.0
    patience_s: float = 6.0

    @staticmethod
    def for_size(size: int) -> Pulse:
        """The default, slower beyond 2,500 peers so that the hub spends little of a core on heartbeats."""
        slower = max(1.0, size / 2500)
        return Pulse(1.0 * slower, 6.0 * slower)


class Star(Protocol):
    """The channel. Single-threaded: every method is called from one loop, none blocks but `flush`.

    Attributes:
        index: this peer's own index, 0 … size - 1.
        size: number of peers, hub included.
    """

    index: int
    size: int

    @property
    def is_hub(self) -> bool:
        """Whether this is the hub."""

    @property
    def hub(self) -> int:
        """Index of the hub; 0 at first."""

    @property
    def notices(self) -> deque[str]:
        """One line for each stranger that was turned away and similar; the owner may log and clear them."""

    def register(self, selector: selectors.BaseSelector) -> None:
        """Keep the star's sockets registered with `selector`; `key.data` is a function without arguments to call when ready."""

    def take(self) -> Sequence[Item]:
        """What has come in since the last call, in order of arrival."""

    def keep(self, peers: Iterable[int]) -> None:
        """Only these peers are in the job any more; the next hub is one of them."""

    def send(self, to: int, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Queue a message: a spoke's to the hub, the hub's to any peer, anyone's to itself; one to a lost peer is dropped."""

    def broadcast(self, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Queue a message to every peer but oneself (hub only)."""

    def tick(self, now: float) -> None:
        """Send heartbeats that are due and notice silent peers; call it every second or oftener.

        Args:
            now: `time.monotonic()`.
        """

    def heard_at(self, now: float) -> float:
        """When this peer last had word of the others, monotonic; `now` if there are none. To a spoke that is the hub's, to the
        hub that of so many spokes that the rest alone is no majority.

        What this peer finds when it has stood still does not count: it may have been sent long ago.
        """

    def clock_offset_s(self, index: int) -> float:
        """Wall clock of a peer minus the hub's, in seconds, from round trips; 0.0 where it was not measured."""

    def flush(self, deadline_s: float) -> bool:
        """Wait up to `deadline_s` seconds until all that was sent has reached the peers' machines; True if it has."""

    def close(self) -> None:
        """Close all connections. Calling it again does nothing."""


class Solo:
    """The star of a job with one agent: no socket, messages to oneself only."""

    index = hub = HUB
    size = 1
    is_hub = True

    def __init__(self) -> None:
        self.notices: deque[str] = deque()
        self._inbox: list[Message | Lost] = []

    def register(self, selector: selectors.BaseSelector) -> None:
        """Nothing to register."""

    def take(self) -> list[Message | Lost]:
        """Messages to oneself."""
        taken, self._inbox = self._inbox, []
        return taken

    def keep(self, peers: Iterable[int]) -> None:
        """There is no other peer."""

    def send(self, to: int, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """Queue a message to oneself."""
        if to != HUB:
            raise ValueError(f"no peer {to} in a star of one")
        self._inbox.append(Message(HUB, body, blob))

    def broadcast(self, body: Mapping[str, Any], blob: bytes = b"") -> None:
        """There is no other peer."""

    def tick(self, now: float) -> None:
        """There is no other peer."""

    def heard_at(self, now: float) -> float:
        """There is no other peer."""
        return now

    def clock_offset_s(self, index: int) -> float:
        """The hub's own offset: none."""
        return 0.0

    def flush(self, deadline_s: float) -> bool:
        """Nothing is ever on its way."""
        return True

    def close(self) -> None:
        """Nothing to close."""
