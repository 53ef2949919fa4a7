"""What Slurm's controller knows of a job, asked by its id. No accounting is needed; the controller forgets jobs some minutes
after their end (MinJobAge)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from slaunch.errors import AllocationError, MissingToolError
from slaunch.frozen import dataclass
from slaunch.slurm.client import ask

ENDED = frozenset(
    ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED")
)
"""States of a job that runs no more (squeue manual, "JOB STATE CODES")."""
PASSING = frozenset(("PREEMPTED", "NODE_FAIL", "BOOT_FAIL"))
"""Those of them that a job may have for a moment before it is back in the queue."""
CODES = {
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), 124),
    **dict.fromkeys(("CANCELLED", "PREEMPTED"), 143),
    **dict.fromkeys(("NODE_FAIL", "BOOT_FAIL"), 75),
    "OUT_OF_MEMORY": 137,
}
"""Exit codes of jobs that Slurm ended; as slaunch's own where it has such an error, else as of a process that a signal ended."""


@dataclass(frozen=True)
class Record:
    """A job, a task of an array, or a component of a heterogeneous job.

    Attributes:
        id: as Slurm's tools take it: "12", "12_3", "12_[4-9]", "12+1".
        state: e.g. "RUNNING".
        reason: why it is in that state; "None" if there is none.
        restarts: how often it has been put back into the queue.
        exit: its exit code, as a shell gives it.
        output, errors: files of the script's output, absolute.
        nodes: its nodes, as Slurm lists them; "" = none yet.
        name: the job's name.
    """

    id: str
    state: str
    reason: str = ""
    restarts: int = 0
    exit: int = 0
    output: str = ""
    errors: str = ""
    nodes: str = ""
    name: str = ""

    @property
    def ended(self) -> bool:
        """Whether it runs no more."""
        return self.state in ENDED

    @property
    def code(self) -> int:
        """Exit code of a job that has ended: not 0 unless it has completed."""
        if self.state == "COMPLETED":
            return 0
        return CODES.get(self.state) or self.exit or 1


def look(job: str, cluster: str = "", ask: Callable[[Sequence[str]], str] = ask) -> tuple[Record, ...]:
    """All records of a job, in one question; () if the controller does not know it.

    Raises:
        AllocationError: it does not answer.
        MissingToolError: there is no scontrol.
    """
    where = (f"--clusters={cluster}",) if cluster else ()
    try:
        text = ask(("scontrol", "--oneliner", *where, "show", "job", job))
    except AllocationError as error:
        if "Invalid job id" in error.seen:
            return ()
        raise
    return tuple(parse(line) for line in text.splitlines() if line.startswith("JobId="))


def past(job: str, cluster: str = "", ask: Callable[[Sequence[str]], str] = ask) -> tuple[Record, ...]:
    """Records of a job that the controller has forgotten, from the accounting database; () where there is none, or it does not
    know the job."""
    where = (f"--clusters={cluster}",) if cluster else ()
    columns = "--format=JobID,State,ExitCode"
    try:
        text = ask(("sacct", *where, "--allocations", "--noheader", "--parsable2", columns, f"--jobs={job}"))
    except (AllocationError, MissingToolError):
        return ()
    rows = (line.split("|") for line in text.splitlines())
    return tuple(Record(row[0], row[1].split()[0], exit=code_in(row[2])) for row in rows if len(row) == 3 and row[1])


def parse(line: str) -> Record:
    """The record of one line of scontrol's."""
    found = {match[1]: match[2] for match in re.finditer(r"(?:^|\s)([A-Z][\w:/]*)=(.*?)(?=\s+[A-Z][\w:/]*=|\s*$)", line)}
    nodes = found.get("NodeList", "")
    return Record(
        id_of(found),
        found.get("JobState", ""),
        found.get("Reason", ""),
        int(found.get("Restarts") or 0),
        code_in(found.get("ExitCode", "0:0")),
        found.get("StdOut", ""),
        found.get("StdErr", ""),
        "" if nodes == "(null)" else nodes,
        found.get("JobName", ""),
    )


def code_in(text: str) -> int:
    """An exit code as a shell gives it, from Slurm's "CODE:SIGNAL"."""
    code, _, number = text.partition(":")
    return int(code) or (128 + int(number) if int(number or 0) else 0)


def id_of(found: dict[str, str]) -> str:
    """The id as Slurm's tools take it."""
    if "ArrayJobId" in found:
        task = found.get("ArrayTaskId", "")
        return f"{found['ArrayJobId']}_{f'[{task}]' if not task.isdecimal() else task}"
    if "HetJobId" in found:
        return f"{found['HetJobId']}+{found.get('HetJobOffset', '0')}"
    return found["JobId"]
