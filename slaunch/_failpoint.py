"""Named places in the code where a test can make slaunch fail, at a point that no outside fault can hit reliably.

`SLAUNCH_FAILPOINTS="agent.before_spawn=kill;agent.stopping=sleep:3"` arms two of them. Without the variable a failpoint costs one
look into an empty mapping. The names are listed in `docs/contributing/failpoints.md`.
"""

from __future__ import annotations

import os

VARIABLE = "SLAUNCH_FAILPOINTS"


def armed(text: str) -> dict[str, str]:
    """Failpoint name -> what it does, from the variable's text `name=action[;name=action …]`.

    Raises:
        ValueError: if an entry has no action.
    """
    points = {}
    for entry in filter(None, text.split(";")):
        name, _, action = entry.partition("=")
        if not action:
            raise ValueError(f"{VARIABLE}: {entry!r} has no action")
        points[name.strip()] = action.strip()
    return points


_armed = armed(os.environ.get(VARIABLE, ""))


class FailpointError(Exception):
    """Raised by a failpoint with the action `raise`."""


def failpoint(name: str) -> None:
    """Do what `SLAUNCH_FAILPOINTS` asks for at the place called `name`; nothing unless it is named there."""
    if name in _armed:
        act(name, _armed[name])


def act(name: str, action: str) -> None:
    """Carry out one action: `exit:CODE`, `kill`, `stop`, `raise`, `sleep:SECONDS`."""
    import signal
    import time

    verb, _, value = action.partition(":")
    if verb == "exit":
        os._exit(int(value or 1))
    elif verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif verb == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif verb == "sleep":
        time.sleep(float(value or 1))
    elif verb == "raise":
        raise FailpointError(name)
    else:
        raise ValueError(f"{VARIABLE}: unknown action {action!r} at {name}")
