"""The agent's own log: what it was told, what it decided and when, one JSON object a line, readable by its user only.

`agent.<node>.jsonl` in the directory of the logs. Each line has `time_s` (wall clock), `mono_s` (monotonic) and `kind`; lines are
written whole, so a file that a crash cut off is readable up to its last line. Nothing of the environment goes in.
"""

from __future__ import annotations

import json
import os
import time

from slaunch.clock import wall_s
from slaunch.frozen import asdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Journal:
    """Writes nothing until `flush`, and nothing more once that has failed: a full disk must not end a job."""

    def __init__(self, directory: str, node: int) -> None:
        self._path = os.path.join(directory, f"agent.{node}.jsonl")
        self._file = -1
        self._lines: list[str] = []
        self._dead = not directory

    def note(self, kind: str, **fields: Any) -> None:
        """One line."""
        if not self._dead:
            entry = {"time_s": round(wall_s(), 6), "mono_s": round(time.monotonic(), 6), "kind": kind, **fields}
            self._lines.append(json.dumps(entry, separators=(",", ":")) + "\n")

    def value(self, kind: str, value: Any) -> None:
        """One line on a value: its class's name and its fields."""
        self.note(kind, what=type(value).__name__, **_fields(value))

    def flush(self) -> None:
        """Write the lines noted since the last time."""
        if not self._lines or self._dead:
            return
        data = "".join(self._lines).encode()
        self._lines.clear()
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(self._file, data)
        except OSError:
            self._dead = True

    def close(self) -> None:
        """Write what is left."""
        self.flush()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a value; of a message inside it also the class's name."""
    fields = {name: _plain(item) for name, item in asdict(value).items()}
    message = getattr(value, "message", None)
    return {**fields, "says": type(message).__name__} if message is not None else fields


def _plain(item: Any) -> Any:
    return sorted(item) if isinstance(item, frozenset) else item


def since_start_s() -> float:
    """Seconds since this process was made: what came before the agent. Field 22 of proc_pid_stat(5) is in clock ticks."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
