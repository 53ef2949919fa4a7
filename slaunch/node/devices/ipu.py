"""Graphcore IPUs: a count, not a list."""

from __future__ import annotations

from slaunch.node.devices.listed import look_at
from slaunch.node.devices.values import Found, View


def look(view: View) -> Found:
    """One for each `/dev/ipu<n>`."""
    return look_at(view, "ipu", (), "dev", r"ipu(\d+)")
