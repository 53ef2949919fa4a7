"""Which of two launchers is inside the other, from what they leave in the environment.

Recorded on Slurm 22.05 with Open MPI 4 and 5, MPICH and Intel MPI (tests/data/environments):

* `mpirun` in a job starts one proxy per node by its own srun, so SLURM_PROCID … of *that* step stand beside the MPI variables.
* `srun` inside `mpirun` keeps mpirun's variables; with --mpi=pmi2 or pmix it overwrites PMI_RANK, PMI_SIZE or PMIX_RANK.
* `sbatch` and `salloc` inside a step keep the step's variables, and so look like a task of it.
"""

from __future__ import annotations

from collections.abc import Callable

from slaunch.allocation import counts, hostlist
from slaunch.allocation.reader import Env, Given, check, shown
from slaunch.errors import AllocationError

SPECIAL_STEPS = 0xFFFFFFF0
"""Ids from here up are Slurm's own steps (batch script, extern, interactive): slurm.h, SLURM_BATCH_SCRIPT and its neighbours."""


def in_step(env: Env) -> bool:
    """Say whether this process belongs to a job step that srun started, other than the batch script and salloc's own shell."""
    return has_step(env) and not stale_step(env)


def has_step(env: Env) -> bool:
    """Say whether there are variables of a step that srun started, of this job or of one outside."""
    step = env.get("SLURM_STEP_ID") or env.get("SLURM_STEPID") or ""
    return step.isdecimal() and int(step) < SPECIAL_STEPS and bool(env.get("SLURM_PROCID"))


def stale_step(env: Env) -> bool:
    """Say whether the step variables contradict the job's, as they do in a shell that was submitted from inside a step.

    In a step, srun sets SLURM_NNODES and SLURM_TASKS_PER_NODE to the step's own (unless told `--preserve-env`).
    """
    pairs = [("SLURM_STEP_NUM_NODES", "SLURM_NNODES"), ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")]
    if env.get("SLURM_STEP_NUM_NODES") == env.get("SLURM_JOB_NUM_NODES"):
        pairs.append(("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"))
    return any(env.get(step) and env.get(job) and env[step] != env[job] and well_formed(env, step) for step, job in pairs)


def well_formed(env: Env, name: str) -> bool:
    """Say whether a variable can be read at all; if not, that is an error of its own and tells nothing about nesting."""
    try:
        (hostlist.expand if name.endswith("NODELIST") else counts.expand)(env[name], name)
    except AllocationError:
        return False
    return True


def stands_in_step(given: Given) -> bool:
    """Decide between task and shell; where the variables contradict each other, the control group decides.

    Raises:
        AllocationError: they contradict each other, and this process can be neither.
    """
    env = given.env
    if not has_step(env) or not stale_step(env):
        return has_step(env)
    step = cgroup_step(given.read_text)
    if step:
        return step.isdecimal()
    check(
        env.get("SLURM_PROCID") == "0",  # a batch script's is always 0
        shown(env, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_PROCID"),
        "step and job disagree, as with `srun --preserve-env`: leave that option out",
    )
    return False


def cgroup_step(read_text: Callable[[str], str]) -> str:
    """Return the step that Slurm's control group of this process belongs to: "0", "batch", "interactive"; "" if not told."""
    try:
        _, found, rest = read_text("/proc/self/cgroup").partition("/step_")
    except OSError:
        return ""
    return rest.split("/", 1)[0].split("\n", 1)[0] if found else ""


def slurm_serves_pmi(env: Env) -> bool:
    """Say whether the PMI variables here are those of the Slurm step itself."""
    if not in_step(env):
        return False
    step = f"{env.get('SLURM_JOB_ID', '')}.{env.get('SLURM_STEP_ID', '')}"
    if env.get("PMIX_NAMESPACE") == f"slurm.pmix.{step}" or env.get("PALS_APID") == step:
        return True
    return env.get("PMI_JOBID") == step and env.get("PMI_SIZE") == step_size(env)


def from_slurm(env: Env) -> bool:
    """Say whether the PMI variables here were made by a Slurm step, this one or one outside that left them."""
    job, dot, step = (env.get("PALS_APID") or env.get("PMI_JOBID") or "").partition(".")
    of_a_step = bool(dot) and job.isdecimal() and step.isdecimal()
    return of_a_step or env.get("PMIX_NAMESPACE", "").startswith("slurm.pmix.") or slurm_serves_pmi(env)


def step_size(env: Env) -> str:
    """Return the number of the step's tasks, as text."""
    return env.get("SLURM_STEP_NUM_TASKS") or env.get("SLURM_NTASKS") or ""


def mpi_world(env: Env) -> str:
    """Return the size of the world of an MPI launcher, as text; "" if there is none."""
    hydra = env.get("PMI_SIZE") if "MPI_LOCALRANKID" in env else ""
    return env.get("OMPI_COMM_WORLD_SIZE") or env.get("MV2_COMM_WORLD_SIZE") or hydra or ""


def holds_proxies(env: Env, world: str) -> bool:
    """Say whether the Slurm step can be the one in which an MPI launcher of `world` ranks stands.

    It is either a step of one task, in which mpirun was started, or the step of mpirun's own proxies: one on each node, and
    never more proxies than ranks.
    """
    if not in_step(env) or step_size(env) == "1":
        return True
    counts = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE") or ""
    one_each = counts.split("(", 1)[0] == "1" and "," not in counts
    numbers = world.isdecimal() and step_size(env).isdecimal()
    return one_each and numbers and int(step_size(env)) <= int(world)


def srun_inside(env: Env, world: str, started: str = "") -> bool:
    """Say whether a srun below the MPI launcher started this process, so that the step is the innermost.

    Args:
        env: the environment.
        world: size of the MPI launcher's world, as text.
        started: the program that the MPI launcher started, where it tells.
    """
    if slurm_serves_pmi(env) or started.rpartition("/")[2] == "srun":
        return True
    return world == "1" and not holds_proxies(env, world)
