"""Reads a log file while it grows, across its rotation: what follows the end of a file that was moved away is in the next one."""

from __future__ import annotations

import os
from math import inf

CHUNK = 1 << 16
OLDER = 100
"""How many rotated files are looked at; `--log-keep` may be larger, but nobody lags that far behind."""


class Follower:
    """One log file, from `offset` on.

    Attributes:
        path: of the file.
        end: what follows from there on is not wanted: another attempt's output.
        skipped: how often a file had been removed before it was read to its end, or the one after it.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self.end = inf
        self.skipped = 0
        self._offset = offset
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, most: int = CHUNK) -> bytes:
        """What comes next; b"" if there is nothing yet, or no more."""
        while True:
            data = os.pread(self._file, int(min(most, max(0, self.end - self._offset))), self._offset)
            self._offset += len(data)
            if data or self._offset >= self.end or not self._next_file():
                return data

    def left(self) -> int:
        """Bytes of the present file that have not been read."""
        return max(0, int(min(self.end, os.fstat(self._file).st_size)) - self._offset)

    def seal(self) -> None:
        """Nothing that is written from now on is wanted."""
        self.end = min(self.end, os.fstat(self._file).st_size)

    def close(self) -> None:
        """Read no more."""
        os.close(self._file)

    def _next_file(self) -> bool:
        """If the file has been moved away, go on with the one that was begun after it."""
        own = os.fstat(self._file)
        newer = self.path
        try:
            for number in range(OLDER):
                path = f"{self.path}.{number}" if number else self.path
                found = os.stat(path)
                if (found.st_ino, found.st_dev) == (own.st_ino, own.st_dev):
                    return number > 0 and self._leave_for(newer)
                newer = path
        except FileNotFoundError:  # ours has been removed: the oldest that is there follows it, after a gap
            if own.st_nlink:  # on its way from one name to the next
                return False
            self.skipped += 1
        return self._leave_for(newer)

    def _leave_for(self, newer: str) -> bool:
        """Go on with a newer file, unless the present one had its last bytes after we looked for them."""
        return self.left() > 0 or self._open(newer)

    def _open(self, path: str) -> bool:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it is being moved just now
            return False
        os.close(self._file)
        self._file, self._offset = file, 0
        return True
