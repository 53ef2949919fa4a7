"""What workers can read at any time: whether they have been asked to save and end, and when the job's time runs out.

Two files in the agent's memory, each with one line or empty. `SLAUNCH_STOP_FILE` has the reason of the request: "time", the
name of a signal, or "stop" once the job is being stopped. `SLAUNCH_END_FILE` has the end in seconds since the epoch, by the
node's clock.
"""

from __future__ import annotations

import os
from math import inf

from slaunch.agent.memory import hold
from slaunch.clock import wall_s

STOP, END = "SLAUNCH_STOP_FILE", "SLAUNCH_END_FILE"
STOPPING = "stop"


class Notice:
    """One agent's files. They are gone with the agent.

    Attributes:
        end_s: when the job's time runs out, seconds since the epoch; inf = never, or not known.
    """

    def __init__(self) -> None:
        self._paths = {STOP: hold("slaunch-stop", b"", os.MFD_CLOEXEC), END: hold("slaunch-end", b"", os.MFD_CLOEXEC)}
        self._asked = False
        self.end_s = inf

    def variables(self) -> dict[str, str]:
        """What workers are told."""
        return dict(self._paths)

    def ask(self, reason: str) -> None:
        """Workers shall save and end; the first reason stays."""
        if not self._asked:
            self._asked = True
            self._write(STOP, f"{reason}\n")

    def ends_in(self, left_s: float) -> None:
        """The job's time runs out then."""
        self.end_s = wall_s() + left_s
        self._write(END, f"{self.end_s:.3f}\n")

    def renew(self) -> None:
        """Other workers start, which nobody has asked for anything."""
        self._asked = False
        self._write(STOP, "")

    def close(self) -> None:
        """Free the memory."""
        for path in self._paths.values():
            os.close(_number(path))

    def _write(self, which: str, text: str) -> None:
        file, data = _number(self._paths[which]), text.encode()
        os.pwrite(file, data, 0)
        os.ftruncate(file, len(data))


def _number(path: str) -> int:
    return int(path.rpartition("/")[2])
