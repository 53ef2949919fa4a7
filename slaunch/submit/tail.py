"""A file that grows, copied as it grows."""

from __future__ import annotations

import os
import time
from typing import BinaryIO

CHUNK = 1 << 16
OLD_S = 10.0
"""What was written so long ago was there before the job. The clock of the file server need not be exact."""


class Tail:
    """One file that may not be there yet.

    A file that has become shorter was begun anew, as by a job that starts again and does not append: it is copied from its start.

    Args:
        path: the file.
        out: where to.
        prefix: what goes before each line; with one, a line is held back until it is complete.
        start: how many bytes of it to leave out.
    """

    def __init__(self, path: str, out: BinaryIO, prefix: bytes = b"", start: int = 0) -> None:
        self.path = path
        self._out = out
        self._prefix = prefix
        self._at = start
        self._rest = b""

    def copy(self) -> bool:
        """Copy what is new; whether there was anything."""
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            if os.fstat(file).st_size < self._at:
                self._at, self._rest = 0, b""
            return self._copy(file)
        finally:
            os.close(file)

    def close(self) -> None:
        """Show an incomplete last line."""
        if self._rest:
            self._out.write(self._prefix + self._rest + b"\n")
            self._out.flush()
            self._rest = b""

    def _copy(self, file: int) -> bool:
        begin = self._at
        while data := os.pread(file, CHUNK, self._at):
            self._at += len(data)
            self._write(data)
        if self._at > begin:
            self._out.flush()
        return self._at > begin

    def _write(self, data: bytes) -> None:
        if not self._prefix:
            self._out.write(data)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._out.writelines(self._prefix + line + b"\n" for line in lines)


def old_bytes(path: str) -> int:
    """How long a file is that was written by somebody else before; 0 if it is not there, or so new that it may be ours."""
    try:
        facts = os.stat(path)
    except OSError:
        return 0
    return facts.st_size if time.time() - facts.st_mtime > OLD_S else 0
