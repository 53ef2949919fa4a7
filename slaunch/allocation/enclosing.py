"""The scheduler's job around this process, whatever has started it there: ranks and places are that launcher's to tell."""

from __future__ import annotations

from slaunch.allocation.jobid import flux_job, lsf_job, pbs_job, slurm_job
from slaunch.allocation.reader import Env


def enclosing(env: Env) -> tuple[str, int]:
    """Return the id of the scheduler's job around this process ("" if none) and how often it was requeued."""
    return slurm_job(env) or pbs_job(env) or lsf_job(env) or flux_job(env), restarts(env)


def job_nodes(env: Env) -> tuple[str, ...]:
    """Return the nodes of the Slurm job around this process, by Slurm's names; () if there is none.

    Raises:
        AllocationError: the list is malformed.
    """
    from slaunch.allocation.hostlist import expand

    name = "SLURM_JOB_NODELIST"
    return expand(env[name], name) if env.get(name) else ()


def restarts(env: Env) -> int:
    """Return how often Slurm requeued this job."""
    count = env.get("SLURM_RESTART_COUNT", "")
    return int(count) if count.isdecimal() else 0
