"""Flux: the tasks of a job (flux-environment(7)). Flux usually runs inside a step of another scheduler."""

from __future__ import annotations

from slaunch.allocation.jobid import flux_job
from slaunch.allocation.reader import HINT, INNER_STEP, Env, Given, Reader, check, evidence, number, shown
from slaunch.allocation.values import Allocation, Sighting, Slot, Task
from slaunch.errors import AllocationError


def sight(env: Env) -> Sighting:
    """See a Flux task, or a shell in which Flux commands work (`flux alloc`, `flux batch`)."""
    if "FLUX_TASK_RANK" in env:
        seen = evidence(
            env,
            FLUX_JOB_ID="the job",
            FLUX_TASK_RANK="rank in the job",
            FLUX_JOB_SIZE="its tasks",
            FLUX_TASK_LOCAL_ID="rank on this node",
            FLUX_JOB_NNODES="its nodes",
        )
        return Sighting("flux", INNER_STEP, seen)
    return Sighting("flux", HINT, evidence(env, FLUX_URI="a Flux instance, but no task of a job"))


def read(given: Given) -> Task:
    """Return this task's place. Flux does not tell the host names in variables; they are learnt when the tasks meet.

    Raises:
        AllocationError: this is a shell, or the variables contradict each other.
    """
    env = given.env
    if "FLUX_TASK_RANK" not in env:
        raise AllocationError(
            "find this process's place in Flux",
            f"{shown(env, 'FLUX_URI')}, but FLUX_TASK_RANK is not set: this is a shell, not a task",
            "run `flux run -N NODES -n NODES --exclusive slaunch …` here; or --scheduler plain to use this machine alone",
        )
    rank, size, local = number(env, "FLUX_TASK_RANK"), number(env, "FLUX_JOB_SIZE"), number(env, "FLUX_TASK_LOCAL_ID")
    nodes = number(env, "FLUX_JOB_NNODES")
    told = shown(env, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_NNODES")
    check(rank < size and 0 < nodes <= size and local <= size - nodes, told)
    hosts = (given.host,) if nodes == 1 and given.host else ()
    counts = (size,) * len(hosts)
    allocation = Allocation("flux", flux_job(env), nodes=hosts, tasks_per_node=counts, evidence=sight(env).evidence)
    return Task(allocation, Slot(rank, size, local))


READER = Reader("flux", ("FLUX_TASK_RANK",), sight, read)
