"""A log file as slaunch itself writes it: with the time in front of each line, in pieces of limited size."""

from __future__ import annotations

import os
import time

from slaunch.agent.outlets import Form


class LogFile:
    """One file.

    Args:
        path: of the file.
        file: its descriptor, which is this object's from now on.
        form: how it is written.
    """

    def __init__(self, path: str, file: int, form: Form) -> None:
        self.path = path
        self._file = file
        self._form = form
        self._size = os.fstat(file).st_size
        self._rest = b""

    def write(self, data: bytes) -> None:
        """Write all of it. What the disk has not taken before an error is kept, and written first the next time.

        Raises:
            OSError: as write(2) and rename(2) do, e.g. that the disk is full.
        """
        self._rest += data
        while self._rest:
            if self._form.most and self._size >= self._form.most:
                self._rotate()
            part = self._rest[: self._fitting()]
            taken = os.write(self._file, part)
            self._size += taken
            self._rest = self._rest[taken:]

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)

    def _fitting(self) -> int:
        """How much of what waits goes into this file: whole lines, unless a single one is longer than a file."""
        room = self._form.most - self._size
        if not self._form.most or len(self._rest) <= room:
            return len(self._rest)
        return self._rest.rfind(b"\n", 0, room) + 1 or self._rest.find(b"\n") + 1 or len(self._rest)

    def _rotate(self) -> None:
        """Move the files up by one and begin a new one."""
        for number in range(self._form.keep - 1, 0, -1):
            try:
                os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
            except FileNotFoundError:
                pass
        if self._form.keep:
            os.rename(self.path, f"{self.path}.1")
        else:
            os.unlink(self.path)
        fresh = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.close(self._file)
        self._file, self._size = fresh, 0


class Stamper:
    """Puts the time in front of each line: that at which it was read, to a few milliseconds, of the line's first character."""

    def __init__(self) -> None:
        self._at_start = True

    def stamp(self, data: bytes, now_s: float) -> bytes:
        """The output with the time in it; `now_s` in seconds since the epoch."""
        mark = stamp_of(now_s)
        ends = data.endswith(b"\n")
        body = (data[:-1] if ends else data).replace(b"\n", b"\n" + mark)
        started, self._at_start = self._at_start, ends
        return (mark if started else b"") + body + (b"\n" if ends else b"")


def stamp_of(now_s: float) -> bytes:
    """The local time with its offset, e.g. "2026-03-01T12:00:00.123+0100 "."""
    local = time.localtime(now_s)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{int(now_s % 1 * 1000):03d}{time.strftime('%z', local)} ".encode()
