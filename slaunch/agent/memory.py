"""Files for workers that live in memory: on no disk, readable by their user only, gone with the process that made them.

A worker's long lists (`EnvFile`) are the same on all nodes of a job and may have megabytes. In a log directory that all nodes
share, thousands of agents would write them at once.
"""

from __future__ import annotations

import os

from slaunch.errors import OutputError
from slaunch.plan.values import EnvFile


class Memory:
    """Files in memory, each content held once; readable while this process lives, by it and by others.

    Args:
        across_exec: keep them when this process becomes another program.
    """

    def __init__(self, across_exec: bool = False) -> None:
        self._flags = 0 if across_exec else os.MFD_CLOEXEC
        self._paths: dict[str, str] = {}

    def variables(self, files: tuple[EnvFile, ...]) -> dict[str, str]:
        """The variables of these files, with the paths to read them.

        Raises:
            OutputError: if there is no memory or descriptor left.
        """
        return {file.variable: self._path(file) for file in files}

    def close(self) -> None:
        """Free the memory."""
        for path in self._paths.values():
            os.close(int(path.rpartition("/")[2]))
        self._paths.clear()

    def _path(self, file: EnvFile) -> str:
        if file.text not in self._paths:
            try:
                self._paths[file.text] = hold(file.name, file.text.encode(), self._flags)
            except OSError as error:
                seen = f"{len(file.text)} bytes of memory: {error.strerror}"
                raise OutputError(f"tell the workers {file.variable}", seen, "raise the limit that was hit (ulimit -a)") from None
        return self._paths[file.text]


def hold(name: str, data: bytes, flags: int) -> str:
    """Put `data` into memory and return a path to it. Each opening reads it from its start."""
    descriptor = os.memfd_create(name, flags)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    return f"/proc/{os.getpid()}/fd/{descriptor}"
