"""Collective jobs: all workers are alike, and their contracts tell them everything."""

from __future__ import annotations

from slaunch.plan.modes import Mode

MODE = Mode("collective")
