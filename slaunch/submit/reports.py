"""`slaunch report JOB`: how a run ended, long after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from slaunch.errors import AllocationError
from slaunch.jobs import Run, find
from slaunch.report.revive import read_report
from slaunch.report.text import render


def tell(job: str, env: Mapping[str, str], as_json: bool) -> int:
    """Print the report of a job's runs, oldest first; 0 if there is one.

    Args:
        job: its id, its name, or a directory of logs; "12_3" a task of an array, "12" all its tasks.
        env: for the folder where runs are remembered.
        as_json: as the file has it, one object for each run; else as it was told.

    Raises:
        AllocationError: nothing is known of such a job, or it has not ended.
    """
    runs = find(job, env, os.getcwd())
    ended = [run for run in runs if os.path.exists(run.report)]
    if not ended:
        raise nothing(job, runs)
    for run in ended:
        if as_json:
            with open(run.report, encoding="utf-8") as file:
                sys.stdout.write(file.read())
        else:
            print(*head(run, len(ended)), render(read_report(run.report), colour=sys.stdout.isatty()), sep="\n")
    return 0


def head(run: Run, several: int) -> tuple[str, ...]:
    """Which run it is, where there are several."""
    return (f"run {run.id}:",) if several > 1 else ()


def nothing(job: str, runs: Sequence[Run]) -> AllocationError:
    """The error of a job without a report."""
    if not runs:
        seen = "no run of that id or name is remembered, nor has slaunch-logs here a folder for it"
        return AllocationError(f"find the report of job {job}", seen, "name the directory of its logs instead")
    seen = f"{', '.join(run.report for run in runs)}: not there; the run goes on, or it was ended before it could tell"
    return AllocationError(f"find the report of job {job}", seen, f"slaunch status {job}; slaunch logs {job}")
