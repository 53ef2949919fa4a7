"""Runs code against the stand-in NVML library, built from C once per test run."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from support.machines import DATA

SOURCE = os.path.join(os.path.dirname(DATA), "edge", "nvml", "nvml.c")


@functools.lru_cache(maxsize=1)
def library() -> tempfile.TemporaryDirectory[str]:
    """A folder with the library; it goes when the test run ends."""
    folder = tempfile.TemporaryDirectory(prefix="slaunch-nvml-")
    target = os.path.join(folder.name, "libnvidia-ml.so.1")
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-o", target, SOURCE], check=True, timeout=60)
    return folder


def environment(recording: str) -> dict[str, str]:
    """Variables under which the driver answers as recorded."""
    return {"LD_LIBRARY_PATH": library().name, "NVML_RECORDING": f"{DATA}/nvml/{recording}"}


LOOK = """
import dataclasses, json, sys
from slaunch.node.devices.table import find
from slaunch.node.devices.values import View
print(json.dumps(dataclasses.asdict(find(View(json.loads(sys.argv[1]), sys.argv[2])))))
"""


def look(recording: str, env: Mapping[str, str], root: str) -> dict[str, Any]:
    """What is found on a machine whose driver answers as recorded, as a dictionary."""
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK, json.dumps(dict(env)), root],
        env={"PATH": os.environ["PATH"], **(environment(recording) if recording else {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found
