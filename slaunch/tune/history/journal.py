"""The journal: everything that happened, one JSON object a line, appended and synced to disk before the search goes on.

A crash can tear the last line only; a torn one is cut off when the journal is opened again. A lock keeps a second tuner away.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from types import TracebackType

from slaunch._failpoint import failpoint
from slaunch.errors import OutputError, UsageError
from slaunch.tune.trial.values import Record

FORMAT = 1
LOCK_POLL_S = 0.2
Event = Mapping[str, object]


class Journal:
    """An open journal. Use it as a context manager.

    Attributes:
        events: what was in it when it was opened, in order.
        torn: characters of a torn last line that were cut off.
    """

    def __init__(self, path: str, patience_s: float = 0.0) -> None:
        """Open it, and make it if there is none.

        Args:
            path: the file.
            patience_s: how long to wait for another tuner that uses it.

        Raises:
            UsageError: another tuner uses it, or it is no journal.
            OutputError: it cannot be read or written.
        """
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unwritable(path, error) from None
        try:
            _lock(self._file, path, patience_s)
            self.events, self.torn = _load(self._file, path)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, kind: str, **fields: object) -> None:
        """Write one event; it is on disk when this returns.

        Raises:
            OutputError: it cannot be written.
        """
        event = {"event": kind, "time": round(time.time(), 3), **fields}
        data = (json.dumps(event, default=str) + "\n").encode()
        point = f"{kind}{fields.get('number', '')}"
        failpoint(f"tune.before.{point}")
        try:
            os.lseek(self._file, 0, os.SEEK_END)
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        failpoint(f"tune.after.{point}")

    def close(self) -> None:
        """Close it; the lock goes with it."""
        os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _lock(file: int, path: str, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                todo = "wait for it, or give the configuration another name"
                raise UsageError("tune", f"another tuner is using {path}", todo) from None
            time.sleep(LOCK_POLL_S)
        except OSError:
            return  # a file system without locks


def _load(file: int, path: str) -> tuple[list[Event], int]:
    """The events, and the length of what had to be cut off."""
    with open(file, "rb", closefd=False) as reading:
        lines = reading.read().splitlines(keepends=True)
    events: list[Event] = []
    whole = 0
    for number, line in enumerate(lines, 1):
        event = _event(line)
        if event is None:
            if number < len(lines):
                raise UsageError("read the tuner's journal", f"{path}, line {number}: {line[:60]!r}", "move this file away")
            break
        events.append(event)
        whole += len(line)
    torn = sum(map(len, lines)) - whole
    if torn:
        os.ftruncate(file, whole)
    return events, torn


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if line.endswith(b"\n") and isinstance(event, dict) and "event" in event else None


def _unwritable(path: str, error: OSError) -> OutputError:
    return OutputError("keep the tuner's journal", f"{path}: {error.strerror}", "make this folder writable, and free space on it")


def read_record(event: Event) -> Record:
    """The record of an event.

    Raises:
        TypeError: it is none of this version's.
    """
    fields = {name: value for name, value in event.items() if name not in ("event", "time")}
    return Record(**fields)  # type: ignore[arg-type]
