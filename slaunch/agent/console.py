"""Copies chosen workers' output to the console: complete, as fast as the console takes it, never waiting for it.

The log file is the buffer: what the console has not taken yet is simply read later.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from math import inf

from slaunch.frozen import dataclass, field

BUSY_S, QUIET_S = 0.05, 0.5
"""How often a file is looked at while it grows, and when it has been quiet for long."""
PASS_BYTES = 1 << 20
"""The most that is copied before the agent looks after its other duties."""
ATOM_BYTES = 4096
"""A pipe that polls writable takes this much without blocking (PIPE_BUF)."""
PARTIAL_S = 1.0
"""A line without end, such as a progress bar, is shown after this long where several workers share the console."""
NO_PROGRESS_S = 5.0


@dataclass
class Source:
    """One worker's log file and how far it has been copied. `end`: what follows from there on is another attempt's."""

    path: str
    prefix: bytes
    offset: int
    file: int
    partial: bytes = b""
    partial_since: float = 0.0
    end: float = inf

    def left(self) -> int:
        """Bytes that have not been copied."""
        return max(0, int(min(self.end, os.fstat(self.file).st_size)) - self.offset)


@dataclass
class Console:
    """The copier. `out` is the console's file descriptor."""

    out: int
    sources: list[Source] = field(default_factory=list)
    due: float = inf
    _interval: float = BUSY_S
    _pending: bytes = b""
    _closed: bool = False

    def add(self, path: str, offset: int, prefix: str = "") -> None:
        """Copy a file from `offset` on; with a prefix, line by line."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.sources.append(Source(path, prefix.encode(), offset, file))
        self.due = 0.0

    def tick(self, now: float) -> None:
        """Copy what is new, if it is time to look."""
        if now < self.due:
            return
        moved = self._pass(now)
        self._interval = BUSY_S if moved else min(QUIET_S, self._interval * 2)
        self.due = inf if self._closed else now + (0.0 if moved >= PASS_BYTES else self._interval)

    def drain(self, interrupted: Callable[[], bool] = lambda: False) -> str:
        """Copy what is left, unless the console takes no more or `interrupted()`: then a line on what was not shown; else ""."""
        last = time.monotonic()
        while self._left() and not self._closed:
            now = time.monotonic()
            if self._pass(now):
                last = now
            elif now > last + NO_PROGRESS_S:
                return f"{self._left()} bytes of output were not shown: the console did not take them. They are in the log files"
            elif interrupted():
                return f"{self._left()} bytes of output were not shown. They are in the log files"
            else:
                select.select([], [self.out], [], 0.1)
        for source in self.sources:
            self._flush_partial(source)
        self._write_pending()
        return ""

    def seal(self) -> None:
        """The workers have ended: what is in the files by now is all that comes from them. What has been copied is let go."""
        for source in self.sources:
            source.end = min(source.end, os.fstat(source.file).st_size)
        for source in [source for source in self.sources if not source.left()]:
            self._flush_partial(source)
            os.close(source.file)
            self.sources.remove(source)

    def close(self) -> None:
        """Close the log files."""
        for source in self.sources:
            os.close(source.file)
        self.sources.clear()

    def _left(self) -> int:
        return len(self._pending) + sum(source.left() for source in self.sources)

    def _pass(self, now: float) -> int:
        """Copy up to PASS_BYTES; how many bytes were taken."""
        moved = 0
        for source in self.sources:
            while moved < PASS_BYTES and self._write_pending():
                data = os.pread(source.file, int(min(1 << 16, source.end - source.offset)), source.offset)
                if not data:
                    break
                source.offset += len(data)
                moved += len(data)
                self._pending = self._lines(source, data, now) if source.prefix else data
            if source.partial and now > source.partial_since + PARTIAL_S and not self._pending:
                self._flush_partial(source)
        self._write_pending()
        return moved

    def _lines(self, source: Source, data: bytes, now: float) -> bytes:
        """Whole lines with the prefix; of a line that was overwritten by carriage returns, its last state."""
        *lines, rest = (source.partial + data).split(b"\n")
        if lines or not source.partial:
            source.partial_since = now
        source.partial = rest
        return b"".join(source.prefix + _last_state(line) + b"\n" for line in lines)

    def _flush_partial(self, source: Source) -> None:
        if source.partial:
            self._pending += source.prefix + _last_state(source.partial) + b"\n"
            source.partial = b""

    def _write_pending(self) -> bool:
        """Write as much as the console takes; True if nothing is left."""
        while self._pending and not self._closed and _writable(self.out):
            try:
                taken = os.write(self.out, self._pending[:ATOM_BYTES])
            except BlockingIOError:
                return False
            except OSError:  # the reader is gone; the log files have it all
                self._closed = True
                self._pending = b""
                return True
            self._pending = self._pending[taken:]
        return not self._pending


def _writable(out: int) -> bool:
    return bool(select.select([], [out], [], 0)[1])


def _last_state(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]
