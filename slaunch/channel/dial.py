"""Finding the hub among several addresses and ports, some of which may belong to others."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from slaunch.channel.handshake import (
    NONCE_BYTES,
    TIME_S,
    Challenge,
    HandshakeError,
    Hello,
    check_proof,
    key,
    proof,
    transcript,
)
from slaunch.channel.link import Link, brackets, reason, tune
from slaunch.channel.wire import Frame, WireError, pack
from slaunch.frozen import dataclass, field

Target = tuple[str, int]
"""Numeric address and port."""
Finder = Callable[[str, str], bytes]
"""From `by` and `hint` of a challenge to the job's secret; raises HandshakeError if there is none to be had that way."""

STAGGER_S = 0.1
"""A target that has not answered after so long does not keep us from trying the next one beside it."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 1.0
"""Pause after a round in which nobody answered; it grows, and is jittered so that thousands of peers do not come at once."""

REFUSED = os.strerror(errno.ECONNREFUSED).lower()


@dataclass(frozen=True)
class Caller:
    """Who dials; see `handshake.Hello`."""

    identity: str
    rank: int
    size: int
    host: str
    pid: int
    instance: str

    def hello(self) -> Hello:
        """A greeting with a new nonce."""
        return Hello(**self.__dict__, nonce=os.urandom(NONCE_BYTES).hex())


@dataclass
class Dialer:
    """The search for the hub.

    Args:
        targets: where it may be, most likely first.
        caller: who we are.
        find: gets the secret.
        late: called about every second while nothing is found, with what was seen so far (see `seen`).
    """

    targets: Sequence[Target]
    caller: Caller
    find: Finder
    late: Callable[[Mapping[Target, str]], None] = lambda seen: None
    seen: dict[Target, str] = field(default_factory=dict)
    """What happened at each target that was tried, e.g. "connection refused"."""
    secret: bytes = b""
    """The secret by which the hub proved itself, once it was found."""

    def note(self, target: Target, why: str) -> None:
        """Keep what was seen, but not a mere refusal after something that tells more."""
        if why != REFUSED or target not in self.seen:
            self.seen[target] = why

    def dial(self, deadline: float) -> Link | None:
        """Search until `deadline` (monotonic); None if the hub was not found."""
        pause, told = FIRST_PAUSE_S, time.monotonic()
        while time.monotonic() < deadline:
            link = Round(self).run(deadline)
            if link:
                return link
            if time.monotonic() - told > 1.0:
                told = time.monotonic()
                self.late(self.seen)
            rest = pause * (0.5 + os.urandom(1)[0] / 255)
            time.sleep(max(0.0, min(rest, deadline - time.monotonic())))
            pause = min(pause * 1.6, LAST_PAUSE_S)
        return None


class Attempt:
    """One connection on its way to the hub."""

    def __init__(self, target: Target, caller: Caller, deadline: float) -> None:
        self.target = target
        self.deadline = min(deadline, time.monotonic() + TIME_S)
        self.hello = caller.hello()
        self.proved = False
        self.secret = b""
        sock = socket.socket(socket.AF_INET6 if ":" in target[0] else socket.AF_INET, socket.SOCK_STREAM)
        self.link = Link(sock, brackets(*target))
        self.connecting = True
        code = sock.connect_ex(target)
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            raise OSError(code, os.strerror(code))

    def connected(self) -> None:
        """The connection stands, or has failed: greet.

        Raises:
            OSError: it has failed.
        """
        code = self.link.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        self.connecting = False
        tune(self.link.sock)
        self.link.send(pack(self.hello.body()))

    def hear(self, frame: Frame, find: Finder) -> bool:
        """Take the hub's next message; True when it has welcomed us.

        Raises:
            HandshakeError: it is not our hub, or does not want us.
        """
        if self.proved:
            return frame.body.get("say") == "welcome"
        challenge = Challenge.read(frame.body)
        if challenge.identity != self.hello.identity:
            raise HandshakeError("is the hub of another job")
        secret = self.secret = find(challenge.by, challenge.hint)
        said = transcript(self.hello, challenge.nonce)
        check_proof(challenge.proof, secret, "hub", said)
        self.link.send(pack({"say": "proof", "proof": proof(secret, "spoke", said)}))
        self.link.secure(key(secret, "spoke", said), key(secret, "hub", said))
        self.proved = True
        return False


class Round:
    """One pass over all targets."""

    def __init__(self, dialer: Dialer, stagger_s: float = STAGGER_S) -> None:
        self._dialer = dialer
        self._stagger_s = stagger_s
        self._todo = list(dialer.targets)
        self._open: list[Attempt] = []
        self._selector = selectors.DefaultSelector()
        self._due = time.monotonic()

    @property
    def over(self) -> bool:
        """Whether nothing more is to be tried."""
        return not (self._todo or self._open)

    def run(self, deadline: float) -> Link | None:
        """The connection to the hub, or None if none of the targets is it."""
        found: Link | None = None
        try:
            while not found and not self.over and time.monotonic() < deadline:
                found = self.look(deadline)
        finally:
            self.close()
        return found

    def look(self, deadline: float, wait: bool = True) -> Link | None:
        """Start what is due, and take what has come in (or wait for it); the connection to the hub, once it stands."""
        if self._todo and time.monotonic() >= self._due:
            self._start(self._todo.pop(0), deadline)
            self._due = time.monotonic() + self._stagger_s
        busy = len(self._open)
        found = self._step(self._due, wait)
        if len(self._open) < busy:  # one has failed: no reason to wait with the next
            self._due = time.monotonic()
        if not found:
            return None
        self._selector.unregister(found.link.sock)
        self._open.remove(found)
        self._dialer.secret = found.secret
        return found.link

    def fileno(self) -> int:
        """A descriptor that is readable when there is something to take."""
        return self._selector.fileno()

    def close(self) -> None:
        """End what is under way."""
        for attempt in list(self._open):
            self._end(attempt, "has not answered")
        self._selector.close()

    def _start(self, target: Target, deadline: float) -> None:
        try:
            attempt = Attempt(target, self._dialer.caller, deadline)
        except OSError as error:
            self._dialer.note(target, reason(error))
            return
        self._open.append(attempt)
        self._selector.register(attempt.link.sock, selectors.EVENT_WRITE, attempt)

    def _step(self, due: float, wait: bool) -> Attempt | None:
        now = time.monotonic()
        ends = [attempt.deadline for attempt in self._open] + ([due] if self._todo else [])
        for ready, _ in self._selector.select(max(0.0, min(ends) - now) if wait else 0.0) if ends else ():
            if self._advance(ready.data):
                return ready.data  # type: ignore[no-any-return]
        for attempt in [each for each in self._open if time.monotonic() >= each.deadline]:
            self._end(attempt, "does not answer")
        return None

    def _advance(self, attempt: Attempt) -> bool:
        if attempt not in self._open:
            return False
        try:
            if attempt.connecting:
                attempt.connected()
                self._selector.modify(attempt.link.sock, selectors.EVENT_READ, attempt)
                return False
            return any(self._hear(attempt, frame) for frame in attempt.link.read())
        except (OSError, EOFError, WireError, HandshakeError) as error:
            self._end(attempt, reason(error))
            return False

    def _hear(self, attempt: Attempt, frame: Frame) -> bool:
        if not attempt.proved and any(each.proved for each in self._open):
            raise HandshakeError("was not needed")  # the hub's second address
        return attempt.hear(frame, self._dialer.find)

    def _end(self, attempt: Attempt, why: str) -> None:
        self._open.remove(attempt)
        self._selector.unregister(attempt.link.sock)
        attempt.link.close()
        self._dialer.note(attempt.target, why)
