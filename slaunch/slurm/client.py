"""Small questions to Slurm's own tools, each with a limited time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slaunch.errors import AllocationError, MissingToolError

LIMIT_S = 10.0


def ask(argv: Sequence[str], limit_s: float = LIMIT_S) -> str:
    """Run a command and return what it printed.

    Args:
        argv: the command.
        limit_s: seconds after which it is ended.

    Raises:
        MissingToolError: there is no such program.
        AllocationError: it failed, or did not answer in time.
    """
    import subprocess

    command = " ".join(argv)
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, check=False)
    except FileNotFoundError:
        raise MissingToolError(
            f"run `{command}`", f"no program {argv[0]} on PATH", "add it to PATH, or bind it into the container"
        ) from None
    except subprocess.TimeoutExpired:
        raise AllocationError(f"run `{command}`", f"no answer within {limit_s:g} s", "see whether the controller is up") from None
    if done.returncode:
        raise AllocationError(f"run `{command}`", done.stderr.strip() or f"exit code {done.returncode}", "run it by hand")
    return done.stdout


def node_address(name: str, limit_s: float = 5.0) -> str:
    """Return the address of a node in Slurm's configuration (NodeAddr), a name or a number; "" if Slurm cannot be asked."""
    try:
        return field(ask(("scontrol", "--oneliner", "show", "node", name), limit_s), "NodeAddr")
    except (AllocationError, MissingToolError):
        return ""


def time_left_s(job: str) -> float:
    """Return the seconds until the job's time limit; infinite if it has none.

    Raises:
        MissingToolError: squeue is not there.
        AllocationError: it failed, or its answer is not understood.
    """
    return duration_s(ask(("squeue", "--noheader", f"--jobs={job}", "--format=%L")).strip())


def version() -> tuple[int, int, int]:
    """Return Slurm's version, e.g. (22, 5, 8).

    Raises:
        MissingToolError: srun is not there.
        AllocationError: it failed, or its answer is not understood.
    """
    return parse_version(ask(("srun", "--version")))


def parse_version(text: str) -> tuple[int, int, int]:
    """Return the version in srun's answer, e.g. "slurm-wlm 22.05.8".

    Raises:
        AllocationError: there is none.
    """
    match = re.search(r"\b([0-9]+)\.([0-9]+)\.([0-9]+)", text)
    if not match:
        raise AllocationError("read Slurm's version", f"srun answered {text.strip()!r}", "run `srun --version` by hand")
    return int(match[1]), int(match[2]), int(match[3])


def field(text: str, name: str) -> str:
    """Return the value of `name=value` in a line of `scontrol --oneliner`; "" if it is not there."""
    match = re.search(rf"(?:^|\s){name}=(\S*)", text)
    return match[1] if match else ""


def duration_s(text: str) -> float:
    """Return the seconds in squeue's notation: days-hours:minutes:seconds, the larger parts left out where zero.

    Raises:
        AllocationError: the text is no duration.
    """
    if text in ("UNLIMITED", "NOT_SET"):
        return float("inf")
    match = re.fullmatch(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)", text)
    if not match:
        raise AllocationError("read the job's remaining time", f"squeue answered {text!r}", "run `squeue` by hand")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
