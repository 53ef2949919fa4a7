"""The job around an MPI launcher: its id and restarts name the run; its ranks and nodes are not used."""

from __future__ import annotations

from slaunch.allocation.jobid import slurm_job
from slaunch.allocation.reader import Env


def enclosing(env: Env) -> tuple[str, int]:
    """Return the id of the scheduler's job around this process ("" if none) and how often it was requeued."""
    slurm = slurm_job(env)
    if slurm:
        return slurm, restarts(env)
    for name in ("PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"):
        if env.get(name):
            return env[name], 0
    return "", 0


def restarts(env: Env) -> int:
    """Return how often Slurm requeued this job."""
    count = env.get("SLURM_RESTART_COUNT", "")
    return int(count) if count.isdecimal() else 0
