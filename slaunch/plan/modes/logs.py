"""What a role means to the agent: the name of its log file, and whether it serves others."""

from __future__ import annotations

from slaunch.plan.seat import Seat

NAMES = {"worker": "workerlog", "trainer": "workerlog", "server": "serverlog"}
"""Log files as Paddle's launchers name them; other roles have `<role>log`."""

CLIENTS = ("worker", "trainer")
"""Roles whose end is the end of the job; all others serve them."""


def log_name(seat: Seat) -> str:
    """Name of a worker's log file: the user's, else by its number among all workers of its role, so that nodes may share the
    directory.
    """
    if seat.options.log_name:
        return filled(seat, "out")
    return f"{NAMES.get(seat.role, seat.role + 'log')}.{seat.number}"


def err_name(seat: Seat) -> str:
    """Name of the file for its errors; "" where they go to the same file."""
    if "{stream" in seat.options.log_name:
        return filled(seat, "err")
    return f"{log_name(seat)}.err" if seat.options.tee_stream != "both" else ""


def filled(seat: Seat, stream: str) -> str:
    """The user's template with the worker's values. `number` counts the workers of a role, as `rank` counts all."""
    return seat.options.log_name.format_map(
        {
            "rank": seat.rank,
            "local_rank": seat.local_rank,
            "node": seat.node.index,
            "host": seat.node.host,
            "attempt": seat.plan.attempt,
            "role": seat.role,
            "number": seat.number,
            "job": seat.plan.job.replace("/", "_"),
            "stream": stream,
        }
    )


def serves(role: str) -> bool:
    """Whether workers of this role are ended when all others have ended."""
    return role not in CLIENTS
