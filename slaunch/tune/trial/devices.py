"""Waits until the trial before has left its devices: a driver may count a process's memory for a while after its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from slaunch.node.devices.table import find
from slaunch.node.devices.values import View

FREE_S = 10.0
"""How long to wait; whoever computes there after that is no left-over."""
POLL_S = 0.2

Held = tuple[tuple[str, int], ...]


def held(env: Mapping[str, str]) -> Held:
    """The visible devices on which somebody computes, with the processes."""
    return find(View(env)).held


def wait_until_free(env: Mapping[str, str], look: Callable[[Mapping[str, str]], Held] = held, patience_s: float = FREE_S) -> None:
    """Wait until none of this user's processes computes on the visible devices any more."""
    deadline = time.monotonic() + patience_s
    while any(ours(pid) for _, pid in look(env)) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def ours(pid: int) -> bool:
    """Whether it is a process of this user that will go, or one that is gone already. MPS's server stays."""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return os.fstat(file.fileno()).st_uid == os.getuid() and not file.read().startswith("nvidia-cuda-mps")
    except FileNotFoundError:
        return True
    except OSError:
        return False
