"""What kind of machine it is. Facts: `kernel`, `system`, `libc`, `processor`, `memory_gib`, `architecture`, `load`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import Check, Facts, Request, Trait
from slaunch.node.files import read_text

NAME = "machine"
LABELS = {
    "kernel": "the kernel",
    "system": "the operating system",
    "libc": "the C library",
    "processor": "the processor",
    "memory_gib": "memory in GiB",
}


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Ask the kernel."""
    host = os.uname()
    return {
        "kernel": host.release,
        "system": first(r'^PRETTY_NAME="?([^"\n]*)', read_text("/etc/os-release")),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") or "",
        "processor": first(r"^model name\s*: (.*)$", read_text("/proc/cpuinfo")),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)),
        "architecture": host.machine,
        "load": os.getloadavg()[0],
    }


def first(pattern: str, text: str) -> str:
    """The first match of a pattern; "" if there is none."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    return [Trait(label, facts[name] or "unknown") for name, label in LABELS.items()]


CHECK = Check(
    NAME,
    look,
    traits=traits,
    differs=("nodes of another kind may run at another speed, or without a library", "ask for nodes of one kind (--constraint)"),
)
