"""Whole searches on this machine, from the command line."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.jobs import PROGRAMS
from support.studies import raw

TUNED = os.path.join(PROGRAMS, "tuned.py")
Done = subprocess.CompletedProcess[str]
SIZES = {"dp_degree": "auto", "micro_batch_size": [1, 2, 4, 8], "assume_slower": False}


def command(folder: Path, keys: dict[str, Any], args: list[str], workers: int) -> list[str]:
    """Write the configuration, and return the command that tunes by it."""
    config = folder / "tuner.json"
    config.write_text(json.dumps(raw(**keys)))
    return [sys.executable, "-m", "slaunch", "tune", str(config), "--nproc-per-node", str(workers), *args]


def tune(folder: Path, keys: dict[str, Any], *args: str, workers: int = 2, code: int = 0, **env: str) -> Done:
    words = command(folder, keys, list(args) or [TUNED], workers)
    done = subprocess.run(words, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, done.stderr
    return done


def history(folder: Path, name: str = "tuner_history.csv") -> list[dict[str, str]]:
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


def journal(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "tuner_journal.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]
