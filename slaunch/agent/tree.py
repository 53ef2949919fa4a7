"""The processes below a process, from /proc."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable

from slaunch.agent.values import Stuck

PF_EXITING = 0x4
"""Flag of a process that has begun to exit (<linux/sched.h>), the ninth field of proc_pid_stat(5)."""


def children(pid: int) -> list[int]:
    """Direct children of a process; () if it is gone. `children` needs CONFIG_PROC_CHILDREN, which distributions set."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists(f"/proc/{pid}") and not os.path.exists("/proc/self/task/self/children"):
            return _children_by_scan(pid)
    return found


def _children_by_scan(parent: int) -> list[int]:
    """The same by looking at every process of the machine."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if _stat(pid)[2] == parent]


def descendants(root: int, leave: Collection[int] = ()) -> list[int]:
    """All processes below `root`, except the subtrees of `leave`; zombies included."""
    found: list[int] = []
    todo = [root]
    while todo:
        below = [pid for pid in children(todo.pop()) if pid not in leave]
        found += below
        todo += below
    return found


def is_ending(pid: int) -> bool:
    """Whether a process is on its way out of the kernel: it will end with the status that it has, whatever it is sent now."""
    if not _exits(f"/proc/{pid}"):
        return False
    try:  # the first thread may end by itself
        return all(_exits(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return True


def _exits(task: str) -> bool:
    rest = _read_stat(task)[1]
    return not rest or bool(int(rest[6]) & PF_EXITING)


def _read_stat(task: str) -> tuple[str, list[str]]:
    """Name of a process or thread and the fields after it, from proc_pid_stat(5); ("", []) if it is gone."""
    try:
        with open(f"{task}/stat", errors="replace") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return "", []
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()


def _stat(pid: int) -> tuple[str, str, int]:
    """Name, state letter and parent of a process; ("", "", 0) if it is gone."""
    name, rest = _read_stat(f"/proc/{pid}")
    return (name, rest[0], int(rest[1])) if rest else ("", "", 0)


def running(pids: Iterable[int], node: int, host: str) -> tuple[Stuck, ...]:
    """Those of `pids` that still exist and are no zombies, with what they are and what they do."""
    seen = ((pid, *_stat(pid)) for pid in pids)
    return tuple(Stuck(node, host, pid, name, state) for pid, name, state, _ in seen if state not in ("", "Z", "X"))


def kill(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that still exists and may be signalled."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def describe(pid: int) -> str:
    """"pid 812 (slurmstepd)"; without the name where it cannot be read."""
    name = _stat(pid)[0]
    return f"pid {pid} ({name})" if name else f"pid {pid}"
