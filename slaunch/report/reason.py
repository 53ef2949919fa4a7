"""Why the scheduler stopped the job: looked up when a signal has ended it, as the signal alone does not tell."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.agent.values import RunReport
from slaunch.frozen import replace


def with_reason(report: RunReport, env: Mapping[str, str]) -> RunReport:
    """The report, with the scheduler's reason if the job was stopped by a signal and the scheduler tells."""
    job = env.get("SLURM_JOB_ID", "")
    if report.verdict.outcome != "signal" or not job:
        return report
    from slaunch.slurm.why import why_stopped

    return replace(report, reason=why_stopped(job))
