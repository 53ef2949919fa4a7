"""Environments of real launchers, recorded by tests/tools/record_env, and of documented ones that cannot run here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
ENVIRONMENTS = DATA / "environments"
RECORDED = sorted(path.stem for path in ENVIRONMENTS.glob("*.json"))
DOCUMENTED = sorted(f"documented/{path.stem}" for path in ENVIRONMENTS.glob("documented/*.json"))


@dataclass(frozen=True)
class Process:
    """One process that a launcher started: its host, its variables, and the files that these name."""

    host: str
    env: Mapping[str, str]
    read_text: Callable[[str], str]


def processes(name: str) -> list[Process]:
    """All processes of one recording."""
    held = json.loads((ENVIRONMENTS / f"{name}.json").read_text(encoding="utf-8"))
    read_text = files(held.get("files", {}))
    return [Process(task["host"], task["env"], read_text) for task in held["tasks"]]


def vectors(name: str) -> list[dict]:
    """The cases of one file of tests/data/vectors."""
    return json.loads((DATA / "vectors" / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def files(contents: Mapping[str, str]) -> Callable[[str], str]:
    """A file system of these files only."""

    def read_text(path: str) -> str:
        if path not in contents:
            raise FileNotFoundError(2, "No such file or directory", path)
        return contents[path]

    return read_text


NO_FILES = files({})
