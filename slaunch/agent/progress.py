"""How far the workers have come: the step that they tell in a file in memory, one for all workers of a node.

A worker writes a decimal number and a newline at the file's start (`slaunch.worker.progress`, or in a shell
`echo 500 > "$SLAUNCH_PROGRESS_FILE"`); the agent reads it when a worker has ended.
"""

from __future__ import annotations

import os

from slaunch.agent.memory import hold
from slaunch.agent.policy import NO_PROGRESS

VARIABLE = "SLAUNCH_PROGRESS_FILE"
_BYTES = 64


class Progress:
    """One agent's file. It is gone with the agent."""

    def __init__(self) -> None:
        self._path = hold("slaunch-progress", b"", os.MFD_CLOEXEC)
        self._file = int(self._path.rpartition("/")[2])

    def variables(self) -> dict[str, str]:
        """What workers are told."""
        return {VARIABLE: self._path}

    def read(self) -> int:
        """The step told last; -1 if none was, or it is no number."""
        words = os.pread(self._file, _BYTES, 0).split()
        return int(words[0]) if words and words[0].isdigit() else NO_PROGRESS

    def clear(self) -> None:
        """Forget what was told."""
        os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Free the memory."""
        os.close(self._file)
