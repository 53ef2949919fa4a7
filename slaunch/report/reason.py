"""Why the scheduler stopped the job, or took nodes from it: looked up afterwards, as a signal or silence does not tell."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.agent.values import RunReport, Verdict
from slaunch.allocation.enclosing import restarts
from slaunch.frozen import replace

SMALLER = "Slurm job {} was made smaller, and no longer has that node (scontrol update)"
"""Why an agent is lost that Slurm has killed."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.slurm.why import Why


def with_reason(report: RunReport, env: Mapping[str, str], wanted: bool = False) -> tuple[RunReport, Why | None]:
    """The report, with the scheduler's reason if the job was stopped by a signal and the scheduler tells; and what it told, None
    where it was not asked.

    Args:
        report: the run.
        env: this process's environment.
        wanted: it matters also after another end.
    """
    job = env.get("SLURM_JOB_ID", "")
    if job and report.verdict.outcome == "lost":
        report = replace(report, verdict=with_taken(report.verdict, job))
    if not job or not (wanted or report.verdict.outcome == "signal"):
        return report, None
    from slaunch.slurm.why import why_stopped

    why = why_stopped(job, restarts(env))
    asked = report.verdict.outcome == "signal" or report.verdict.asked is not None
    return replace(report, reason=why.text if asked else ""), why


def with_taken(verdict: Verdict, job: str) -> Verdict:
    """The verdict, with what became of nodes that were taken from the job on purpose."""
    from slaunch.slurm.resized import taken

    away = taken(job, tuple(lost.host for lost in verdict.lost))
    lost = tuple(replace(each, why=SMALLER.format(job)) if each.host in away else each for each in verdict.lost)
    return replace(verdict, lost=lost)
