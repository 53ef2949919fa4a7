"""The report of a run, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from slaunch.agent.values import RunReport

FORMAT = 1
"""Raised when a field changes its meaning or goes; new fields may come at any time."""


def render_json(report: RunReport) -> str:
    """The report as one JSON object."""
    return json.dumps({"format": FORMAT, **asdict(report)}, indent=2, sort_keys=True) + "\n"
