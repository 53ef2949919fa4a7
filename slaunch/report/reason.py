"""Why the scheduler stopped the job: looked up when it has been stopped, as the signal alone does not tell."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.agent.values import RunReport
from slaunch.allocation.enclosing import restarts
from slaunch.frozen import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.slurm.why import Why


def with_reason(report: RunReport, env: Mapping[str, str], wanted: bool = False) -> tuple[RunReport, Why]:
    """The report, with the scheduler's reason if the job was stopped by a signal and the scheduler tells; and what it told.

    Args:
        report: the run.
        env: this process's environment.
        wanted: it matters also after another end.
    """
    from slaunch.slurm.why import Why, why_stopped

    job = env.get("SLURM_JOB_ID", "")
    if not job or not (wanted or report.verdict.outcome == "signal"):
        return report, Why()
    why = why_stopped(job, restarts(env))
    asked = report.verdict.outcome == "signal" or report.verdict.asked is not None
    return replace(report, reason=why.text if asked else ""), why
