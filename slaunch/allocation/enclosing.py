"""The job around an MPI launcher: its id and restarts name the run; its ranks and nodes are not used."""

from __future__ import annotations

from slaunch.allocation.jobid import flux_job, lsf_job, pbs_job, slurm_job
from slaunch.allocation.reader import Env


def enclosing(env: Env) -> tuple[str, int]:
    """Return the id of the scheduler's job around this process ("" if none) and how often it was requeued."""
    return slurm_job(env) or pbs_job(env) or lsf_job(env) or flux_job(env), restarts(env)


def restarts(env: Env) -> int:
    """Return how often Slurm requeued this job."""
    count = env.get("SLURM_RESTART_COUNT", "")
    return int(count) if count.isdecimal() else 0
