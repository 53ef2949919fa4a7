"""Which of two launchers is inside the other, from what they leave in the environment.

Recorded on Slurm 22.05 with Open MPI 4 and MPICH (tests/data/environments):

* `mpirun` in a job starts one proxy per node by its own srun, so SLURM_PROCID … of *that* step stand beside the MPI variables.
* `srun` inside `mpirun` keeps mpirun's variables; with --mpi=pmi2 or pmix it overwrites PMI_RANK, PMI_SIZE or PMIX_RANK.
"""

from __future__ import annotations

from slaunch.allocation.reader import Env

SPECIAL_STEPS = 0xFFFFFFF0
"""Ids from here up are Slurm's own steps (batch script, extern, interactive): slurm.h, SLURM_BATCH_SCRIPT and its neighbours."""


def in_step(env: Env) -> bool:
    """Say whether this process belongs to a job step that srun started, other than the batch script and salloc's own shell."""
    step = env.get("SLURM_STEP_ID") or env.get("SLURM_STEPID") or ""
    return step.isdecimal() and int(step) < SPECIAL_STEPS and bool(env.get("SLURM_PROCID"))


def slurm_serves_pmi(env: Env) -> bool:
    """Say whether the PMI variables here are those of the Slurm step itself."""
    if not in_step(env):
        return False
    step = f"{env.get('SLURM_JOB_ID', '')}.{env.get('SLURM_STEP_ID', '')}"
    if env.get("PMIX_NAMESPACE") == f"slurm.pmix.{step}":
        return True
    return env.get("PMI_JOBID") == step and env.get("PMI_SIZE") == step_size(env)


def step_size(env: Env) -> str:
    """Return the number of the step's tasks, as text."""
    return env.get("SLURM_STEP_NUM_TASKS") or env.get("SLURM_NTASKS") or ""


def holds_proxies(env: Env, world: str) -> bool:
    """Say whether the Slurm step can be the one in which an MPI launcher of `world` ranks stands.

    It is either a step of one task, in which mpirun was started, or the step of mpirun's own proxies: one on each node, and
    never more proxies than ranks.
    """
    if not in_step(env) or step_size(env) == "1":
        return True
    counts = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE") or ""
    one_each = counts.split("(", 1)[0] == "1" and "," not in counts
    return one_each and world.isdecimal() and int(step_size(env) or 0) <= int(world)
