"""What a result depends on beside its setting: program, arguments, model, machine, versions.

Results are used again only if all of these agree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from slaunch.frozen import asdict
from slaunch.options import Options, Program
from slaunch.tune.inject.apply import files_of
from slaunch.tune.values import Cluster, Study

FRAMEWORKS = ("torch", "paddlepaddle", "paddlepaddle-gpu", "jax", "tensorflow", "deepspeed", "accelerate", "lightning")
READ = 1 << 20


def fingerprint(study: Study, cluster: Cluster, options: Options) -> str:
    """16 hexadecimal digits that stand for all of it."""
    return digest(ingredients(study, cluster, options))


def ingredients(study: Study, cluster: Cluster, options: Options) -> dict[str, object]:
    """All of it, by name."""
    return {
        "program": program_digest(options.program),
        "kind": options.program.kind,
        "arguments": options.program.args,
        "files": {file: file_digest(file) for file in files_of(study)},
        "run_cmd": study.inject,
        "model": asdict(study.model),
        "metric": asdict(study.metric),
        "limits": (study.limits.trial_s, study.limits.count_cut),
        "cluster": asdict(cluster),
        "workers": (options.nproc_per_node, options.devices, options.container, options.python, options.contracts),
        "versions": versions(FRAMEWORKS),
    }


def digest(value: object) -> str:
    """16 hexadecimal digits for a value of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def program_digest(program: Program) -> str:
    """Of the program's content, where it is a file; else of its name."""
    return file_digest(program.target) or digest(program.target)


def file_digest(path: str) -> str:
    """Of a file's content; "" if it cannot be read."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(READ):
                found.update(block)
    except OSError:
        return ""
    return found.hexdigest()[:16]


def versions(names: Sequence[str], look: Callable[[str], str] | None = None) -> dict[str, str]:
    """Versions of those packages that are installed here."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names:
        try:
            found[name] = (look or version)(name)
        except PackageNotFoundError:
            continue
    return found
