"""The end of a job: its report, and its way back into the queue."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from slaunch.agent.values import RunReport
from slaunch.frozen import replace
from slaunch.jobs import LOGS
from slaunch.options import Options
from slaunch.report.reason import with_reason


def conclude(report: RunReport, options: Options, env: Mapping[str, str], job: str, restarts: int) -> int:
    """Tell how the job ended, and have it put back into the queue if the user wants that; the exit code.

    Args:
        report: the run.
        options: the user's wishes.
        env: this process's environment.
        job: the job that may be put back, as Slurm's tools take it; "" if it may not.
        restarts: how often it has been put back.
    """
    early = report.verdict.outcome != "success" or report.verdict.asked is not None
    report, why = with_reason(report, env, bool(job) and early)
    if not job:
        tell(report)
        return report.code
    from slaunch.report import handover

    report, wanted = handover.prepare(report, why, options, (ledger(options, job), job, restarts))
    tell(report)
    if wanted:
        handover.ask(job, env)
    return report.code


def leave(report: RunReport, env: Mapping[str, str], step: str) -> None:
    """See to it that srun does not wait for nodes that are dead, and does not lose the report of a job that has lost some.

    A part that is cut off must not have the step ended: others may go on in it.

    Args:
        report: the run.
        env: this process's environment.
        step: the step of Slurm's of which this process is a task; "" if of none.
    """
    lost = [lost for verdict in (*(ended.verdict for ended in report.earlier), report.verdict) for lost in verdict.lost]
    if not step or not lost:
        return
    from slaunch.slurm import farewell

    alive = report.verdict.outcome != "signal" and not report.verdict.parted
    note = farewell.arrange(env) if alive and any(each.silent for each in lost) else ""
    if note:
        print(f"slaunch: note: {note}", file=sys.stderr, flush=True)
    farewell.linger()


def tell(report: RunReport) -> None:
    """Write the report beside the logs, and print the closing block on the console."""
    from slaunch.report.json import write_json
    from slaunch.report.text import render

    failed = write_json(report)
    text = render(replace(report, notes=(*report.notes, failed)) if failed else report, colour=sys.stderr.isatty())
    if text:
        print(text, file=sys.stderr, flush=True)


def ledger(options: Options, job: str) -> str:
    """Path of the file that counts how often a job has been put back into the queue."""
    from slaunch.slurm.requeue import path_of

    return path_of(os.path.abspath(options.log_dir or LOGS), job)


def begin_ledger(path: str, job: str, restarts: int) -> None:
    """Note that a run begins."""
    from slaunch.slurm import requeue

    failed = requeue.write(path, requeue.at_start(requeue.read(path, job), job, restarts))
    if failed:
        print(f"slaunch: note: {failed}", file=sys.stderr, flush=True)
