"""Copies chosen workers' output to the console, as fast as the console takes it and never waiting for it.

The log file is the buffer: what the console has not taken yet is simply read later. One worker's output is copied as it is. Where
several share the console it is copied by lines (`agent.shown`); with a limit for these, those of all nodes go to the hub's
console over the agents' channel.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable
from math import inf
from stat import S_ISREG

from slaunch.agent.follow import Follower
from slaunch.agent.shown import Budget, Lines
from slaunch.frozen import dataclass

BUSY_S, QUIET_S = 0.05, 0.5
"""How often a file is looked at while it grows, and when it has been quiet for long."""
PASS_BYTES = 1 << 20
"""The most that is copied before the agent looks after its other duties."""
ATOM_BYTES = 4096
"""A pipe that polls writable takes this much without blocking (PIPE_BUF)."""
FILE_BYTES = 1 << 18
"""A file takes as much at once."""
NO_PROGRESS_S = 5.0
LAST_WORDS_S = 2.0
"""What a node's workers have said in the end and the hub has not seen after so long is left out."""
RELAYED_BYTES = 1 << 15
"""The most of a message to the hub."""
HEARD_BYTES = 1 << 20
"""What the hub keeps for a console that takes nothing; what other nodes send beyond that is not shown."""


@dataclass
class Source:
    """One worker's log file. `lines` makes it into lines; None = it is copied as it is."""

    follower: Follower
    lines: Lines | None


class Console:
    """The copier.

    Args:
        out: the console's file descriptor.
        limit: lines a second that may be shown; 0 = all.
        match: only lines in which this regular expression is found; "" = all.
        relay: takes text for the console of another node instead of `out`.
        busy_s: how often files that grow are looked at.

    Attributes:
        due: when to look again, monotonic.
    """

    def __init__(
        self,
        out: int,
        limit: float = 0.0,
        match: str = "",
        relay: Callable[[bytes], None] | None = None,
        busy_s: float = BUSY_S,
    ) -> None:
        self.due = inf
        self._busy_s = busy_s
        self._out = out
        self._at_once = FILE_BYTES if S_ISREG(os.fstat(out).st_mode) else ATOM_BYTES
        self._budget = Budget(limit)
        self._match = re.compile(os.fsencode(match)) if match else None
        self._relay = relay
        self._sources: list[Source] = []
        self._interval = busy_s
        self._pending = b""
        self._unheard = 0
        self._closed = False

    def add(self, path: str, offset: int, prefix: str = "", whole_lines: bool = False) -> None:
        """Copy a file from `offset` on; by lines if they shall be whole, or there is a prefix, a limit or a pattern."""
        by_lines = whole_lines or bool(prefix) or self._budget.rate > 0 or self._match is not None
        lines = Lines(prefix.encode(), path, self._budget, self._match) if by_lines else None
        self._sources.append(Source(Follower(path, offset), lines))
        self.due = 0.0

    def hear(self, text: bytes) -> None:
        """Lines from another node. Who hears them is the hub, also if another one was before: what is shown is shown here."""
        self._relay = None
        if len(self._pending) + len(text) > HEARD_BYTES:
            self._unheard += text.count(b"\n")
            return
        self._pending += text
        self.due = 0.0

    def tick(self, now: float) -> None:
        """Copy what is new, if it is time to look."""
        if now < self.due:
            return
        moved = self._pass(now)
        self._interval = self._busy_s if moved or self._pending else max(self._busy_s, min(QUIET_S, self._interval * 2))
        self.due = inf if self._closed else now + (0.0 if moved >= PASS_BYTES else self._interval)

    def last_words(self) -> None:
        """This node's workers have ended: what is left of their output goes to the hub now, before the word that they have."""
        if self._relay is None:
            return
        give_up = time.monotonic() + LAST_WORDS_S
        while self._pass(time.monotonic()) and time.monotonic() < give_up:
            pass
        for source in self._sources:
            while source.lines and (data := source.follower.read()):
                source.lines.leave_out(data)
        self._end_lines(time.monotonic())
        self._relay_pending()

    def drain(self, interrupted: Callable[[], bool] = lambda: False) -> str:
        """Copy what is left, unless the console takes no more or `interrupted()`: then a line on what was not shown; else ""."""
        last = time.monotonic()
        while self._relay is None and self._left() and not self._closed:
            now = time.monotonic()
            if self._pass(now):
                last = now
            elif now > last + NO_PROGRESS_S:
                return f"{self._left()} bytes of output were not shown: the console did not take them. They are in the log files"
            elif interrupted():
                return f"{self._left()} bytes of output were not shown. They are in the log files"
            else:
                select.select([], [self._out], [], 0.1)
        self._end_lines(time.monotonic())
        self._write_pending()
        return f"{self._unheard} lines of other nodes were not shown: the console did not take them" if self._unheard else ""

    def seal(self) -> None:
        """The workers have ended: what is in the files by now is all that comes from them. What has been copied is let go."""
        for source in self._sources:
            source.follower.seal()
        for source in [source for source in self._sources if not source.follower.left()]:
            self._end(source, time.monotonic())
            source.follower.close()
            self._sources.remove(source)

    def close(self) -> None:
        """Close the log files."""
        for source in self._sources:
            source.follower.close()
        self._sources.clear()

    def _left(self) -> int:
        return len(self._pending) + sum(source.follower.left() for source in self._sources)

    def _pass(self, now: float) -> int:
        """Copy up to PASS_BYTES; how many bytes were taken."""
        before = len(self._pending)
        moved = 0
        for source in self._sources:
            while moved < PASS_BYTES and self._has_room():
                data = source.follower.read()
                if not data:
                    break
                moved += len(data)
                self._pending += source.lines.feed(data, now) if source.lines else data
            if source.lines and self._has_room():
                self._pending += source.lines.idle(now)
        self._write_pending()
        return moved or max(0, before - len(self._pending))

    def _end_lines(self, now: float) -> None:
        for source in self._sources:
            self._end(source, now)

    def _end(self, source: Source, now: float) -> None:
        if source.lines:
            self._pending += source.lines.end(now)

    def _has_room(self) -> bool:
        """Whether more may be made ready: the hub is sent what has been made ready in one pass."""
        return self._relay is not None or self._write_pending()

    def _write_pending(self) -> bool:
        """Write as much as the console takes; True if nothing is left."""
        if self._relay is not None:
            self._relay_pending()
        while self._pending and not self._closed and _writable(self._out):
            try:
                taken = os.write(self._out, self._pending[: self._at_once])
            except BlockingIOError:
                return False
            except OSError:  # the reader is gone; the log files have it all
                self._closed = True
                self._pending = b""
                return True
            self._pending = self._pending[taken:]
        return not self._pending

    def _relay_pending(self) -> None:
        while self._pending and self._relay is not None:
            cut = self._pending.rfind(b"\n", 0, RELAYED_BYTES) + 1 or len(self._pending)
            self._relay(self._pending[:cut])
            self._pending = self._pending[cut:]


def _writable(out: int) -> bool:
    return bool(select.select([], [out], [], 0)[1])
