"""What a role means to the agent: the name of its log file, and whether it serves others."""

from __future__ import annotations

from slaunch.plan.seat import Seat

NAMES = {"worker": "workerlog", "trainer": "workerlog", "server": "serverlog"}
"""Log files as Paddle's launchers name them; other roles have `<role>log`."""

CLIENTS = ("worker", "trainer")
"""Roles whose end is the end of the job; all others serve them."""


def log_name(seat: Seat) -> str:
    """Name of a worker's log file: by its number among all workers of its role, so that nodes may share the directory."""
    return f"{NAMES.get(seat.role, seat.role + 'log')}.{seat.number}"


def serves(role: str) -> bool:
    """Whether workers of this role are ended when all others have ended."""
    return role not in CLIENTS
