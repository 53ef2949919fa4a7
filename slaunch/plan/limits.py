"""Keeps each variable below the kernel's limit for one string (128 KiB, `MAX_ARG_STRLEN`)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from slaunch.errors import PlanError, UsageError
from slaunch.plan.seat import Seat
from slaunch.plan.values import EnvFile

KERNEL_LIMIT = 128 * 1024
"""Bytes of one `NAME=value` with its end mark; execve refuses longer ones with E2BIG (execve(2))."""

PADDLE_LISTS = ("PADDLE_TRAINER_ENDPOINTS", "TRAINER_IP_PORT_LIST")
"""Paddle's workers also look for these in the file that PADDLE_BACKUP_ENV_PATH names (`paddle/distributed/backup_env.py`)."""


def fit(seat: Seat, values: dict[str, str], env: Mapping[str, str]) -> tuple[dict[str, str], tuple[EnvFile, ...]]:
    """Move Paddle's long lists into a file; nothing else may be too long.

    Paddle's launcher writes the whole environment, secrets included, into one file per worker. Its worker code needs only the
    lists that were left out, which are the same for all.

    Raises:
        PlanError: if a variable is too long for the kernel.
        UsageError: if PADDLE_ENV_LIMIT_LEN is not a number.
    """
    limit = length_limit(env)
    long = {name: values[name] for name in PADDLE_LISTS if len(values.get(name, "")) >= limit}
    fitting = {name: value for name, value in values.items() if name not in long}
    for name, value in fitting.items():
        check(name, value)
    if not long:
        return fitting, ()
    text = json.dumps(long, indent=4, sort_keys=True)
    return fitting, (EnvFile("PADDLE_BACKUP_ENV_PATH", "backup_env.json", text),)


def length_limit(env: Mapping[str, str]) -> int:
    """Length from which a list goes to the file: PADDLE_ENV_LIMIT_LEN, as in Paddle's launcher, but below the kernel's limit."""
    text = env.get("PADDLE_ENV_LIMIT_LEN", "48000")
    if not text.isdecimal():
        raise UsageError("read the length limit of variables", f"PADDLE_ENV_LIMIT_LEN={text!r}", "give a number of characters")
    return min(int(text), KERNEL_LIMIT - 64)


def check(name: str, value: str) -> None:
    """Refuse a variable that execve would refuse."""
    size = len(name.encode()) + len(value.encode()) + 2
    if size > KERNEL_LIMIT:
        raise PlanError(
            f"set {name} for the workers",
            f"{size} bytes, but the kernel takes {KERNEL_LIMIT} for one variable",
            "leave out the contract that sets it (--contracts), or use fewer workers",
        )
