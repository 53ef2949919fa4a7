"""How fast Python starts from this file system: with many nodes, importing packages may take minutes.

Facts: `start_s` (a bare interpreter), `slaunch_s` (one that imports a launch), `file_ms` (opening and reading the start of one
file of the packages, on average), `files` (how many that was).
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from typing import Any

from slaunch.doctor.values import WARNING, Check, Facts, Finding, Request

NAME = "imports"
SLOW_S = 5.0
SLOW_FILE_MS = 3.0
FILES = 300
FILES_S = 2.0
HEAVY_FILES = 2000
"""About so many files PyTorch opens when it is imported (counted with strace, PyTorch 2)."""
TODO = "copy the environment to a disk of the node (or into a container image, one file) before the start"


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Start two interpreters, and read some files."""
    start_s = timed("pass", "-I", "-S")
    slaunch_s = timed("import slaunch.launch")
    count, took_s = read_some(sysconfig.get_paths()["purelib"])
    return {
        "start_s": round(start_s, 3),
        "slaunch_s": round(slaunch_s, 3),
        "file_ms": round(1000 * took_s / count, 3) if count else 0.0,
        "files": count,
    }


def timed(code: str, *options: str) -> float:
    """Seconds that an interpreter takes to run some code."""
    begun = time.monotonic()
    subprocess.run((sys.executable, *options, "-c", code), check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return time.monotonic() - begun


def read_some(folder: str) -> tuple[int, float]:
    """Open some files of the packages and read their first page: how many, and the seconds that it took."""
    begun, count = time.monotonic(), 0
    for path in sources(folder):
        if count == FILES or time.monotonic() - begun > FILES_S:
            break
        try:
            with open(path, "rb") as file:
                file.read(4096)
        except OSError:
            continue
        count += 1
    return count, time.monotonic() - begun


def sources(folder: str) -> Iterator[str]:
    """Python files below a folder."""
    for place, _, files in os.walk(folder):
        yield from (os.path.join(place, name) for name in files if name.endswith(".py"))


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Whether it is slow."""
    found = []
    if facts["slaunch_s"] > SLOW_S:
        seen = f"Python with slaunch takes {facts['slaunch_s']:.1f} s to start (alone {facts['start_s']:.1f} s)"
        found.append(Finding(NAME, WARNING, seen, "each start of a job waits for that, and more for large packages", TODO))
    if facts["file_ms"] > SLOW_FILE_MS:
        whole_s = facts["file_ms"] * HEAVY_FILES / 1000
        seen = f"opening a file of {sys.prefix} takes {facts['file_ms']:.1f} ms"
        means = f"PyTorch, which opens some {HEAVY_FILES}, takes {whole_s:.0f} s to import, and longer when many nodes do so"
        found.append(Finding(NAME, WARNING, seen, means, TODO))
    return found


CHECK = Check(NAME, look, judge, limit_s=15.0, quick=False, asks="the file system with the Python packages")
