"""One connection between two agents: frames out, frames in, never blocking."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections import deque
from collections.abc import Iterator

from slaunch.channel.wire import Frame, Opener, Packed, Sealer, WireError

CHUNK = 256 << 10
BACKLOG_LIMIT = 512 << 20
"""A peer that lets so many bytes pile up does not read any more."""
SIOCOUTQ = 0x5411
"""ioctl: bytes sent that the peer's machine has not acknowledged (tcp(7))."""


class Link:
    """A connected stream socket with frames on it.

    Attributes:
        peer: "address:port" of the other side, for messages.
        heard: set whenever bytes come in; whoever watches for silence clears it.
    """

    def __init__(self, sock: socket.socket, peer: str) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.peer = peer
        self.heard = False
        self._opener = Opener()
        self._sealer = Sealer()
        self._out: deque[memoryview] = deque()
        self._backlog = 0

    def secure(self, send_key: bytes, receive_key: bytes) -> None:
        """From the next frame on, in both directions, sign and check."""
        self._sealer = Sealer(send_key)
        self._opener.secure(receive_key)

    @property
    def waiting(self) -> bool:
        """Whether bytes are left to be sent when the socket takes them."""
        return bool(self._out)

    def send(self, packed: Packed) -> None:
        """Queue a frame and send what the socket takes.

        Raises:
            OSError: the connection is broken.
            WireError: the peer has not read for long.
        """
        head = self._sealer.seal(packed)
        if len(packed.body) <= CHUNK:
            self._queue(head + packed.body)
        else:  # shared by all peers, not copied
            self._queue(head)
            self._queue(packed.body)
        if self._backlog > BACKLOG_LIMIT:
            raise WireError("does not read what it is sent")
        self.write()

    def _queue(self, data: bytes) -> None:
        self._out.append(memoryview(data))
        self._backlog += len(data)

    def write(self) -> None:
        """Send what the socket takes.

        Raises:
            OSError: the connection is broken.
        """
        while self._out:
            try:
                sent = self.sock.send(self._out[0])
            except BlockingIOError:
                return
            self._backlog -= sent
            if sent == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][sent:]

    def read(self) -> Iterator[Frame]:
        """Frames that are complete by now.

        Raises:
            OSError: the connection is broken.
            EOFError: the peer has closed it.
            WireError: the peer does not speak our protocol.
        """
        try:
            data = self.sock.recv(CHUNK)
        except BlockingIOError:
            yield from self._opener.feed(b"")  # what an earlier reader left
            return
        if not data:
            raise EOFError
        self.heard = True
        yield from self._opener.feed(data)

    def last_words(self) -> Iterator[Frame]:
        """Frames that came before the connection broke: one that speaks its last word and closes has spoken it, though what is
        sent to it afterwards fails."""
        try:
            while data := self.sock.recv(CHUNK):
                yield from self._opener.feed(data)
        except (OSError, WireError):
            return

    def unacknowledged(self) -> int:
        """Bytes that the peer's machine has not got yet."""
        answer = fcntl.ioctl(self.sock, SIOCOUTQ, struct.pack("i", 0))
        return self._backlog + int(struct.unpack("i", answer)[0])

    def close(self) -> None:
        """Close the socket. Calling it again does nothing."""
        self.sock.close()


def tune(sock: socket.socket) -> None:
    """Small messages go out at once, and the kernel itself notices a peer whose machine has vanished, within about 10 s."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 4)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def brackets(ip: str, port: int) -> str:
    """`ip:port`, with brackets around an IPv6 address."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def reason(error: Exception) -> str:
    """Why a connection ended, in words."""
    if isinstance(error, EOFError):
        return "it closed the connection"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return str(error)
