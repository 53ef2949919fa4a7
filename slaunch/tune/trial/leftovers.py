"""Ends what a killed tuner left running: the one trial that its journal has begun and not ended. Nothing else is touched."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence

from slaunch.tune.trial.place import INSIDE
from slaunch.tune.trial.run import KILL_S
from slaunch.tune.trial.steps import end_steps

Event = Mapping[str, object]


def unfinished(events: Sequence[Event]) -> Event | None:
    """The start of a trial that nothing follows."""
    last = [event for event in events if event.get("event") in ("start", "trial")]
    return last[-1] if last and last[-1]["event"] == "start" else None


def clear(events: Sequence[Event], slurm_job: str, grace_s: float) -> str:
    """End the unfinished trial, if it still runs, and wait for it. What is left in words; "" if nothing is."""
    event = unfinished(events)
    if event is None:
        return ""
    if event.get("step"):
        return end_steps(slurm_job, str(event["step"])) if event.get("slurm_job") == slurm_job else ""
    pid = event.get("pid")
    if not isinstance(pid, int) or event.get("host") != os.uname().nodename or not is_trial(pid, str(event["folder"])):
        return ""
    return end_process(pid, str(event["folder"]), grace_s)


def is_trial(pid: int, folder: str) -> bool:
    """Whether this process is a trial's launcher with this folder: the number alone may be another's by now."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        return False
    return INSIDE.encode() in words and folder.encode() in words


def end_process(pid: int, folder: str, grace_s: float) -> str:
    """Ask a trial's launcher to stop, and kill its group if it does not."""
    os.kill(pid, signal.SIGTERM)
    if gone(pid, folder, grace_s + KILL_S):
        return ""
    os.killpg(pid, signal.SIGKILL)
    return "" if gone(pid, folder, KILL_S) else f"process {pid} of {folder} cannot be killed"


def gone(pid: int, folder: str, patience_s: float) -> bool:
    """Wait until it has ended."""
    deadline = time.monotonic() + patience_s
    while is_trial(pid, folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
