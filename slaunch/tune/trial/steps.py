"""Steps of the own Slurm job, by name: found and ended. The controller is asked once a second at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from slaunch.errors import AllocationError, MissingToolError
from slaunch.slurm.client import ask

Ask = Callable[[Sequence[str]], str]
GONE_S = 60.0
"""How long a cancelled step may take to go: Slurm kills its tasks, waits for them, and cleans up."""
PAUSE_S = 1.0
"""Between two questions."""


def steps_named(job: str, name: str, ask_slurm: Ask = ask) -> tuple[str, ...]:
    """Ids of the job's steps whose name begins with `name`.

    Raises:
        AllocationError: Slurm does not answer.
    """
    answer = ask_slurm(("squeue", "--steps", f"--jobs={job}", "--noheader", "--format=%i %j"))
    rows = [line.split(None, 1) for line in answer.splitlines() if line.strip()]
    return tuple(row[0] for row in rows if len(row) == 2 and row[1].startswith(name))


def cancel(ids: Sequence[str], words: Sequence[str] = (), ask_slurm: Ask = ask) -> None:
    """End these steps; one that has just ended by itself is no error. `words`: further arguments of scancel."""
    for step in ids:
        try:
            ask_slurm(("scancel", *words, step))
        except AllocationError:
            continue


def ask_steps(job: str, name: str, ask_slurm: Ask = ask) -> bool:
    """Send SIGTERM to the tasks of the job's steps of this name, as scancel alone would kill them; whether there are any."""
    try:
        ids = steps_named(job, name, ask_slurm)
        cancel(ids, ("--signal=TERM",), ask_slurm)
    except (AllocationError, MissingToolError):
        return False
    return bool(ids)


def end_steps(job: str, name: str, gone_s: float = GONE_S, ask_slurm: Ask = ask) -> str:
    """End the job's steps of this name and wait until they are gone; what is left in words, "" if nothing is."""
    try:
        ids = steps_named(job, name, ask_slurm)
        if not ids:
            return ""
        cancel(ids, (), ask_slurm)
        deadline = time.monotonic() + gone_s
        while time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            ids = steps_named(job, name, ask_slurm)
            if not ids:
                return ""
    except (AllocationError, MissingToolError) as error:
        return f"Slurm could not be asked for step {name}: {error.seen}"
    return f"step {', '.join(ids)} is still there {gone_s:.0f} s after scancel"
