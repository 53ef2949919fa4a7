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
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(render_json(report))
        os.replace(part, path)
    except OSError as error:
        return f"{path} was not written: {error.strerror}"
    return ""


def render_json(report: RunReport) -> str:
    """The report as one JSON object."""
    return json.dumps({"format": FORMAT, **asdict(report)}, indent=2, sort_keys=True) + "\n"
