"""What Paddle's older launcher left and showed beside its workers' logs: a file of all endpoints, and a table of variables."""

from __future__ import annotations

import os
from collections.abc import Mapping

from slaunch.plan.endpoints import endpoints
from slaunch.plan.values import Plan, WorkerSpec
from slaunch.report.redact import redact_env

NAME = "endpoints.log"
TITLE = "PADDLE_TRAINER_ENDPOINTS: "
"""First line of the file, as there."""


def write_endpoints(plan: Plan) -> None:
    """All workers' endpoints, one a line, in order of rank, beside the logs.

    Raises:
        OSError: the file cannot be written.
    """
    os.makedirs(plan.log_dir, exist_ok=True)
    with open(os.path.join(plan.log_dir, NAME), "w", encoding="utf-8") as file:
        file.write("\n".join((TITLE, *endpoints(plan), "")))


def table(spec: WorkerSpec) -> tuple[str, ...]:
    """What slaunch sets for a worker, framed, by name; secrets are hidden."""
    rows = sorted(redact_env(spec.set_env).items())
    return framed({f"Variable of rank {spec.rank}": "Value", **dict(rows)})


def framed(rows: Mapping[str, str]) -> tuple[str, ...]:
    """Two columns in a frame; the first row is the head."""
    names, values = max(map(len, rows)), max(map(len, rows.values()))
    line = f"+{'-' * (names + 2)}+{'-' * (values + 2)}+"
    body = [f"| {name.ljust(names)} | {value.ljust(values)} |" for name, value in rows.items()]
    return (line, body[0], line, *body[1:], line)
