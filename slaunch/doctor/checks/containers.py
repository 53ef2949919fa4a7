"""Container runtimes.

Facts: `runtimes` (version by name), `pyxis` (srun takes --container-image), `namespaces` (user namespaces are allowed).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import NOTE, Check, Facts, Finding, Request, Trait
from slaunch.errors import SlaunchError
from slaunch.node.files import read_int
from slaunch.slurm.client import ask

NAME = "containers"
RUNTIMES = {
    "apptainer": ("--version",),
    "singularity": ("--version",),
    "enroot": ("version",),
    "podman": ("--version",),
    "docker": ("--version",),
    "shifter": ("--version",),
}
UNPRIVILEGED = ("apptainer", "enroot", "podman")
"""Runtimes that need user namespaces where they are not installed setuid."""
LIMIT_S = 4.0


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Ask each runtime on PATH for its version."""
    folders = [folder for folder in env.get("PATH", "").split(":") if folder]
    there = [name for name in RUNTIMES if any(os.access(f"{folder}/{name}", os.X_OK) for folder in folders)]
    most = read_int("/proc/sys/user/max_user_namespaces", 0)
    allowed = read_int("/proc/sys/kernel/unprivileged_userns_clone", 1)  # Debian's own switch
    return {
        "runtimes": {name: version(told((name, *RUNTIMES[name]))) for name in there},
        "pyxis": "--container-image" in told(("srun", "--help")),
        "namespaces": most > 0 and allowed > 0,
    }


def told(argv: tuple[str, ...]) -> str:
    """What a command prints; "" if it fails."""
    try:
        return ask(argv, LIMIT_S)
    except SlaunchError:
        return ""


def version(text: str) -> str:
    """The first number with dots in a text."""
    match = re.search(r"\d+(\.\d+)+[^\s,]*", text)
    return match[0] if match else "unknown"


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Whether what is there can run."""
    there = [name for name in UNPRIVILEGED if name in facts["runtimes"]]
    if not there or facts["namespaces"]:
        return []
    seen = f"{', '.join(there)} is there, and user namespaces are switched off (sysctl user.max_user_namespaces)"
    means = "containers run only where the runtime is installed setuid"
    return [Finding(NAME, NOTE, seen, means, "if they do not start, tell the administrator")]


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    runtimes = [Trait(name, facts["runtimes"].get(name, "not installed")) for name in RUNTIMES]
    return [*runtimes, Trait("pyxis", "there" if facts["pyxis"] else "not there")]


CHECK = Check(
    NAME,
    look,
    judge,
    traits,
    ("jobs in containers fail on that node, or run in another way", "tell the administrator"),
    limit_s=15.0,
    quick=False,
    asks="a container runtime",
)
