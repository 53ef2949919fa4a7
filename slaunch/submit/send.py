"""To sbatch with a script, and a record of it for later."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from slaunch.errors import AllocationError, MissingToolError
from slaunch.frozen import asdict, dataclass, names, replace
from slaunch.jobs import LOGS, folder
from slaunch.submit.env import for_job
from slaunch.submit.values import Submitted

LIMIT_S = 120.0
"""How long a busy controller may take to answer sbatch."""
KEPT = 1000
"""Submitted jobs that are remembered."""


@dataclass(frozen=True)
class Answer:
    """What sbatch said when it was asked whether a script would do."""

    text: str
    cpus: int = 0
    nodes: int = 0

    @property
    def note(self) -> str:
        """What the user may not have meant; "" if nothing."""
        if not self.cpus or self.cpus > self.nodes:
            return ""
        return "the job has one CPU on each node: --exclusive, --cpus-per-task=N or --cpus-per-gpu=N would ask for more"


def check(script: str, extra: Sequence[str], env: Mapping[str, str]) -> Answer:
    """Ask sbatch whether it would take the script.

    Raises:
        AllocationError: it would not.
        MissingToolError: there is no sbatch.
    """
    from slaunch.allocation import hostlist

    _, said = sbatch(("sbatch", *extra, "--test-only"), script, env)
    match = re.search(r"using (\d+) processors on nodes (\S+)", said)
    nodes = len(hostlist.expand(match[2], "sbatch --test-only")) if match else 0
    return Answer(said.strip(), int(match[1]) if match else 0, nodes)


def submit(script: str, extra: Sequence[str], env: Mapping[str, str]) -> tuple[str, str, tuple[str, ...]]:
    """Submit the script: the job's id, its cluster ("" = the only one), and the command that took it.

    Raises:
        AllocationError: sbatch refuses it, or its answer is not understood.
        MissingToolError: there is no sbatch.
    """
    command = ("sbatch", *extra, "--parsable")
    out, _ = sbatch(command, script, env)
    match = re.search(r"^(\d+)(?:;(\S+))?$", out.strip(), re.MULTILINE)
    if not match:
        raise AllocationError("submit the job", f"sbatch answered {out.strip()!r}", "see with `squeue --me` whether it is there")
    return match[1], match[2] or "", command


def sbatch(command: Sequence[str], script: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Run sbatch with the script as its standard input; what it printed on both channels."""
    import subprocess

    wanted = "have sbatch check the script" if "--test-only" in command else "submit the job"
    try:
        done = subprocess.run(
            command, input=script, env=for_job(env), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except FileNotFoundError:
        raise MissingToolError(wanted, "no program sbatch on PATH", "go to a login node of the cluster") from None
    except subprocess.TimeoutExpired:
        todo = "see whether the controller is up: `scontrol ping`"
        raise AllocationError(wanted, f"no answer from sbatch within {LIMIT_S:g} s", todo) from None
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise AllocationError(wanted, said, "change the options; --dry-run shows the script")
    return done.stdout, done.stderr


def remember(job: Submitted, env: Mapping[str, str]) -> tuple[Submitted, str]:
    """Put the script beside the job's logs and write the job down; also gives what kept that from being done, in a line."""
    path = os.path.join(job.folder, LOGS, f"{job.id}.sbatch")
    problem = ""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(job.script)
        job = replace(job, saved=path)
    except OSError as error:
        problem = f"{path} was not written: {error.strerror}"
    place = records(env)
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        with open(os.open(record(place, job.id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(job), file)
        forget(place)
    except OSError as error:
        problem = problem or f"{place}: {error.strerror}"
    return job, problem


def recall(job: str, env: Mapping[str, str]) -> Submitted | None:
    """A job that was submitted, by its id, also one task's of an array; None if it is not known."""
    try:
        with open(record(records(env), re.split(r"[_.+]", job)[0]), encoding="utf-8") as file:
            fields = json.load(file)
        known: dict[str, Any] = {name: fields[name] for name in names(Submitted) if name in fields}
        known |= {name: tuple(known[name]) for name in ("command", "sbatch") if name in known}
        return replace(Submitted("", "", "", "", (), (), "", 0.0), **known)
    except (OSError, ValueError, TypeError):
        return None


def records(env: Mapping[str, str]) -> str:
    """The folder where submitted jobs are written down."""
    return os.path.join(os.path.dirname(folder(env)) or "/nonexistent", "submitted")


def record(place: str, job: str) -> str:
    """The file of one job."""
    return os.path.join(place, f"{job}.json")


def forget(place: str) -> None:
    """Remove the oldest records where there are too many."""
    paths = [os.path.join(place, name) for name in os.listdir(place)]
    for path in sorted(paths, key=os.path.getmtime)[: max(0, len(paths) - KEPT)]:
        os.unlink(path)


