"""Limits of the process.

Facts: `memlock`, `nofile`, `nproc`, `stack` (soft and hard limit each; -1 = none), `rdma` (there are such devices), `root`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import WARNING, Check, Facts, Finding, Request, Trait
from slaunch.node.limits import FILES, NUMBERS, PROCESSES, STACK_BYTES, UNLIMITED, WHY, below, has_rdma, read_limits, text_of

NAME = "limits"
MEMLOCK_BYTES = 1 << 20
"""What should be there even without RDMA: the kernel's old default of 64 KiB does not suffice for io_uring and the like."""
TODO = "see /etc/security/limits.d and LimitMEMLOCK etc. of slurmd's unit; Slurm hands on the limits of the submitting shell"


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Ask the kernel."""
    return {**{name: list(pair) for name, pair in read_limits().items()}, "rdma": has_rdma("/"), "root": os.geteuid() == 0}


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Which limits are too low."""
    enough = {
        "memlock": UNLIMITED if facts["rdma"] else MEMLOCK_BYTES,
        "nofile": FILES,
        "nproc": 0 if facts["root"] else PROCESSES,
        "stack": STACK_BYTES,
    }
    low = [name for name, least in enough.items() if below(pair(facts, name), least)]
    return [Finding(NAME, WARNING, text_of(name, pair(facts, name)), *told(name, facts["rdma"])) for name in low]


def pair(facts: Facts, name: str) -> tuple[int, int]:
    """Soft and hard limit."""
    soft, hard = facts[name]
    return soft, hard


def told(name: str, rdma: bool) -> tuple[str, str]:
    """What a low limit means, and what to do."""
    if name == "memlock" and not rdma:
        return "programs that lock memory fail; on a node with RDMA all communication does", f"ulimit -l unlimited; {TODO}"
    means, _, todo = WHY[name].partition("; ")
    return means, f"{todo}; {TODO}"


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    return [Trait(f"limit {name}", "unlimited" if facts[name][0] == UNLIMITED else facts[name][0]) for name in NUMBERS]


CHECK = Check(NAME, look, judge, traits, ("what works on the other nodes may fail there", TODO))
