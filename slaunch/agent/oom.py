"""Whether the kernel ran out of memory: counters of the control group and of the machine, and the limit that was hit.

`memory.events` (v2, with descendants) and `memory.oom_control` (v1) count the processes killed in a group, /proc/vmstat those
killed on the machine; see cgroups(7) and the kernel's admin guide on memory control groups.
"""

from __future__ import annotations

import os

from slaunch.frozen import dataclass

ROOT = "/sys/fs/cgroup"
_NO_LIMIT = 1 << 60  # v1 writes "no limit" as a number near 2^63


@dataclass(frozen=True)
class MemoryGroup:
    """A memory control group: its directory (from the mount point) and the kind of its files; "" if there is none."""

    root: str
    path: str
    version: int


@dataclass(frozen=True)
class OomCount:
    """Processes killed for lack of memory, so far."""

    group: int
    machine: int


def own_group() -> MemoryGroup:
    """The memory group of this process, which its workers share."""
    found = MemoryGroup("", "", 0)
    for line in _read("/proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return MemoryGroup(f"{ROOT}/memory", path, 1)
        if number == "0":
            found = MemoryGroup(ROOT, path, 2)
    return found


def count(group: MemoryGroup) -> OomCount:
    """The counters now; 0 where the system does not tell."""
    name = "memory.events" if group.version == 2 else "memory.oom_control"
    return OomCount(_field(_read(_file(group, group.path, name)), "oom_kill"), _field(_read("/proc/vmstat"), "oom_kill"))


def explain(group: MemoryGroup, before: OomCount, after: OomCount) -> str:
    """What ran out of memory between the two counts, in words; "" if nothing did."""
    if after.group > before.group:
        limit = limit_bytes(group)
        return f"out of memory: control group limit of {limit / 2**30:.1f} GiB" if limit else "out of memory: control group"
    return "out of memory: the whole node" if after.machine > before.machine else ""


def limit_bytes(group: MemoryGroup) -> int:
    """The smallest memory limit of the group and those above it; 0 if there is none."""
    name = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
    limits = []
    path = group.path
    while True:
        text = _read(_file(group, path, name)).strip()
        if text.isdigit() and int(text) < _NO_LIMIT:
            limits.append(int(text))
        if path in ("/", ""):
            return min(limits, default=0)
        path = os.path.dirname(path)


def _file(group: MemoryGroup, path: str, name: str) -> str:
    return f"{group.root}/{path.strip('/')}/{name}"


def _field(text: str, name: str) -> int:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name:
            return int(words[1])
    return 0


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
