"""Who may come in: the hub's side of the handshake, one guest at a time."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

from slaunch.channel.handshake import (
    NONCE_BYTES,
    TIME_S,
    Challenge,
    HandshakeError,
    Hello,
    check_proof,
    key,
    proof,
    read_words,
    refusal,
    transcript,
)
from slaunch.channel.link import Link, brackets, tune
from slaunch.channel.wire import Frame, WireError, pack
from slaunch.frozen import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from slaunch.channel.hub import Peer


@dataclass(frozen=True)
class Door:
    """What the hub asks of those who come.

    Attributes:
        identity: names the meeting: cluster, job, step, attempt.
        secret: the job's secret.
        by, hint: how a spoke finds the secret; see `secret`.
        size: what spokes call the meeting's size; 0 = the number of its peers.
    """

    identity: str
    secret: bytes
    by: str = "given"
    hint: str = ""
    size: int = 0


class Guest:
    """A connection that has not proved itself yet."""

    peer: Peer  # once it is let in

    def __init__(self, sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX:
            tune(sock)
        self.link = Link(sock, brackets(*address[:2]) if address else "a local socket")
        self.deadline = time.monotonic() + TIME_S
        self.hello: Hello | None = None
        self._said = b""

    def name(self) -> str:
        """For a log: its address, and who it says it is."""
        claim = f" (says it is task {self.hello.rank} on {self.hello.host})" if self.hello else ""
        return f"{self.link.peer}{claim}"

    def hear(self, frame: Frame, door: Door, objection: Callable[[Hello], str]) -> bool:
        """Take its next message; True once it has proved itself.

        Raises:
            HandshakeError: it is to be turned away.
        """
        if self.hello is None:
            self._challenge(Hello.read(frame.body), door, objection)
            return False
        check_proof(read_words(frame.body, "proof", ("proof",))[0], door.secret, "spoke", self._said)
        why = objection(self.hello)  # again: another one may have come in meanwhile
        if why:
            raise HandshakeError(why)
        self.link.secure(key(door.secret, "hub", self._said), key(door.secret, "spoke", self._said))
        return True

    def _challenge(self, hello: Hello, door: Door, objection: Callable[[Hello], str]) -> None:
        if hello.identity != door.identity:
            raise HandshakeError(f"belongs to {hello.identity!r}, not to {door.identity!r}", "this is the meeting of another job")
        self.hello = hello
        why = objection(hello)
        if why:
            raise HandshakeError(why)
        nonce = os.urandom(NONCE_BYTES).hex()
        self._said = transcript(hello, nonce)
        answer = Challenge(door.identity, nonce, door.by, door.hint, proof(door.secret, "hub", self._said))
        self.link.send(pack(answer.body()))

    def refuse(self, why: str) -> None:
        """Tell it, if it is still there."""
        try:
            self.link.send(pack(refusal(why)))
        except (OSError, WireError):
            pass
