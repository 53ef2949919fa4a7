"""The report of a run, for programs."""

from __future__ import annotations

import json
import os

from slaunch.agent.values import RunReport
from slaunch.frozen import asdict

FORMAT = 1
"""Raised when a field changes its meaning or goes; new fields may come at any time."""


NAME = "report.json"
"""Name of the report in the directory of the logs; the last run's."""


def write_json(report: RunReport) -> str:
    """Write the report beside the logs. What kept it from being written, in a line; "" if nothing did."""
    path = os.path.join(report.log_dir, NAME)
    further = attempt_after(path, report)
    if further:
        return f"{path} is the report of attempt {further}, with which other nodes have gone on"
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(render_json(report))
        os.replace(part, path)
    except OSError as error:
        return f"{path} was not written: {error.strerror}"
    return ""


def attempt_after(path: str, report: RunReport) -> int:
    """The attempt with which this very run has ended by now, if it went on without a part that was cut off, and that part tells
    of an earlier attempt; else 0. The report of a run that was over before this one began is to be overwritten."""
    if not report.verdict.parted:
        return 0
    try:
        with open(path, encoding="utf-8") as file:
            there = json.load(file)
        same = there["job"] == report.job and there["ended_s"] > report.started_s
        return int(there["attempt"]) if same and there["attempt"] > report.attempt else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def render_json(report: RunReport) -> str:
    """The report as one JSON object."""
    return json.dumps({"format": FORMAT, **asdict(report)}, indent=2, sort_keys=True) + "\n"
