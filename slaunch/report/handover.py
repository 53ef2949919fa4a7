"""Whether a job goes back into the queue when its run has ended, as a pure decision and the few steps that follow from it."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from slaunch.agent.policy import COMPLETE, is_elastic
from slaunch.agent.values import RunReport
from slaunch.errors import RequeueError, SlaunchError
from slaunch.frozen import dataclass, replace
from slaunch.options import Options
from slaunch.report.errors import render_error
from slaunch.slurm import batch, requeue
from slaunch.slurm.requeue import Ledger
from slaunch.slurm.why import Why

NEAR_S = 600.0
"""A request to stop so shortly before the time limit is a warning of it (`sbatch --signal=TERM@300`)."""
FAILED = ("failure", "hang", "lost")


@dataclass(frozen=True)
class Handover:
    """What follows from a run's end.

    Attributes:
        ledger: what is to be remembered.
        text: for the report; "" if there is nothing to tell.
        ask: Slurm is to be asked for a requeue.
        unfinished: the workers ended well, but were asked to before their work was done.
    """

    ledger: Ledger
    text: str = ""
    ask: bool = False
    unfinished: bool = False


def decide(report: RunReport, why: Why, ledger: Ledger, options: Options, restarts: int) -> Handover:
    """What follows from the run's end.

    Args:
        report: the run.
        why: what Slurm says of it.
        ledger: the job's, from before this run.
        options: the user's wishes.
        restarts: how often the job had been requeued before this run.
    """
    kind = kind_of(report, why, options)
    if not kind:
        return Handover(ledger)
    unfinished = report.verdict.outcome == "success"
    ledger = requeue.with_run(ledger, kind, report.verdict.progress)
    if why.queued:
        counted = requeue.counted(ledger, "preempt" if why.kind == "preemption" else "other", -1)
        return Handover(counted, why.text, unfinished=unfinished)
    refused = requeue.refusal(kind, ledger, options.requeue, options.max_no_progress)
    if refused:
        return Handover(ledger, refused, unfinished=unfinished)
    ledger = requeue.counted(ledger, kind, restarts)
    text = f"the job goes back into the queue ({getattr(ledger, kind)}. time {requeue.COUNTS[kind]})"
    return Handover(ledger, text, True, unfinished)


def kind_of(report: RunReport, why: Why, options: Options) -> str:
    """What kind of end it was, as requeues are counted; "" if none can follow."""
    verdict = report.verdict
    ended_well = verdict.outcome == "success" and verdict.asked is None
    taken = verdict.parted and is_elastic(options) and not why.queued  # the others may go on in the job
    if taken or why.kind == "cancel" or ended_well or verdict.progress >= COMPLETE or verdict.outcome in ("time", "start"):
        return ""
    if why.kind == "preemption" or why.queued:
        return "preempt"
    if why.kind == "timeout" or verdict.code == RequeueError.exit_code:
        return "timeout"
    if verdict.outcome == "success":
        return "timeout"
    if verdict.outcome == "signal":
        return "timeout" if why.left_s < max(NEAR_S, options.warn_before_end_s) else ""
    final = verdict.code in options.no_restart_codes or (verdict.first is not None and verdict.first.cause == "start")
    return "failure" if verdict.outcome in FAILED and not final else ""


def prepare(report: RunReport, why: Why | None, options: Options, place: tuple[str, str, int]) -> tuple[RunReport, bool]:
    """Decide, and write it down before anything is asked of Slurm: the report with what follows, and whether to ask.

    Args:
        place: path of the job's ledger, the job, and how often it has been requeued.
    """
    path, job, restarts = place
    ledger = requeue.read(path, job) or requeue.at_start(None, job, restarts)
    hand = decide(report, why or Why(), ledger, options, restarts)
    failed = requeue.write(path, hand.ledger) if hand.text else ""
    code = RequeueError.exit_code if hand.unfinished or hand.ask else report.code
    notes = (*report.notes, failed) if failed else report.notes
    return replace(report, queue=hand.text, code=code, notes=notes), hand.ask


def ask(job: str, env: Mapping[str, str]) -> None:
    """Have the job requeued: by the process in the batch script if there is one, else now. Slurm then ends this process."""
    if batch.VARIABLE not in env:
        try:
            requeue.ask_slurm(job)
        except SlaunchError as error:
            print(render_error(error, colour=sys.stderr.isatty()), file=sys.stderr, flush=True)
