"""To which job a process belongs, by its environment."""

from __future__ import annotations


def variable(pid: int, *names: str) -> tuple[str, ...]:
    """Variables of a process at its start; "" for those that it does not have, or that we may not read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = file.read().decode(errors="replace")
    except OSError:
        return ("",) * len(names)
    found = dict(part.partition("=")[::2] for part in text.split("\0"))
    return tuple(found.get(name, "") for name in names)


def job_of(pid: int) -> str:
    """The Slurm job of a process; "" if it has none, or we may not know."""
    return variable(pid, "SLURM_JOB_ID")[0]
