"""Passes a signal on to those of a worker's processes that want it, and to none that would die of it.

A worker is often a script or a container's starter around the program. The signal goes to the outermost processes that catch it:
to the worker itself if it does, else to those of its children that do, and so on. Where none does, nobody gets it.
"""

from __future__ import annotations

import os

from slaunch.agent.tree import children


def deliver(pid: int, number: int) -> int:
    """Signal the outermost processes from `pid` downwards that catch signal `number`; how many there are."""
    if catches(pid, number):
        return _kill(pid, number)
    return sum(deliver(child, number) for child in children(pid))


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal (SigCgt of proc_pid_status(5)); False if it is gone."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return False


def _kill(pid: int, number: int) -> int:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return 0
    return 1
