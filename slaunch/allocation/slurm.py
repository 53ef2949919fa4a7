"""Slurm: which of a job step's task, a batch script and an allocation shell this process is (srun and sbatch manuals)."""

from __future__ import annotations

from slaunch.allocation.nesting import holds_proxies, in_step, mpi_world, stands_in_step
from slaunch.allocation.reader import MPI, SHELL, STEP, Env, Given, Reader, evidence
from slaunch.allocation.values import Shell, Sighting, Task


def sight(env: Env) -> Sighting:
    """See a Slurm job. The job's name decides nothing; only a step that srun started has tasks."""
    task = in_step(env)
    seen = evidence(
        env,
        SLURM_JOB_ID="the job",
        SLURM_JOBID="the job (old spelling)",
        SLURM_STEP_ID="the step" if task else "a step of Slurm's own (batch script or interactive shell)",
        SLURM_STEP_NUM_TASKS="tasks in the step",
        SLURM_STEP_NODELIST="nodes of the step",
        SLURM_JOB_NODELIST="nodes of the job",
        SLURM_PROCID="rank in the step" if task else "always 0 in a batch script",
        SLURM_NTASKS="tasks in the step" if task else "tasks asked for, not started",
        SLURM_NTASKS_PER_NODE="tasks per node asked for",
        SLURM_NNODES="nodes",
        SLURM_NODELIST="nodes",
    )
    return Sighting("slurm", depth(env) if task else SHELL, seen)


def depth(env: Env) -> int:
    """Return the step's depth: as deep as an MPI launcher, if it cannot be the one around the MPI variables that are here."""
    world = mpi_world(env)
    return MPI if world and not holds_proxies(env, world) else STEP


def read(given: Given) -> Task | Shell:
    """Return this task's place in its step, or what a step started from this shell should ask for."""
    if stands_in_step(given):
        from slaunch.allocation.slurm_task import read_task

        return read_task(given)
    from slaunch.allocation.slurm_shell import read_shell

    return read_shell(given.env)


READER = Reader("slurm", ("SLURM_PROCID",), sight, read)
