"""The srun command by which slaunch starts its own step. Pure: nothing is run here.

The step is one agent on each node with the node's whole share of the job. Every option that a variable could set is given
explicitly, and the variables that srun would read beside them are removed, so that what the batch script or an outer step left
behind cannot change or contradict the step. On purpose:

* `--kill-on-bad-exit=0 --wait=0`: the agents watch each other and end the job with one verdict; srun must not end it first.
* `--disable-status`: the first Ctrl-C reaches the agents, which stop the job in good order; by default srun spends it on a status
  line and kills the step at the second.
* `--no-kill`: when a node fails, the agents on the others live on and say which node it was.
* `--cpu-bind=none`: the agent binds its workers itself, within the CPUs that it finds.
* `--mem=0`: all of the job's memory on each node.
* `--export=ALL`: also after `#SBATCH --export=NONE`.
* `--immediate`: an error after a minute where the nodes are held by another step, instead of waiting for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.allocation.values import Shell, StepCall, StepShape

WAIT_S = 60
"""How long srun may wait for nodes that another step of the job still holds."""

FIXED = (
    "--export=ALL",
    "--input=none",
    "--cpu-bind=none",
    "--mem=0",
    "--kill-on-bad-exit=0",
    "--wait=0",
    "--no-kill",
    "--disable-status",
    f"--immediate={WAIT_S}",
)

STALE = (
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NNODES",
    "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_PER_",
    "SRUN_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "SLURM_MEM_",
    "SLURM_GPUS",
    "SLURM_GPU_BIND",
    "SLURM_TRES_",
    "SLURM_STEP_",
    "SLURM_STEPID",
    "SLURM_DISTRIBUTION",
    "SLURM_DIST_",
    "SLURM_HOSTFILE",
    "SLURM_ARBITRARY_NODELIST",
    "SLURM_EXACT",
    "SLURM_EXCLUSIVE",
    "SLURM_OVERCOMMIT",
    "SLURM_OVERLAP",
    "SLURM_EXPORT_ENV",
    "SLURM_MPI_TYPE",
    "SLURM_WAIT",
    "SLURM_KILL_BAD_EXIT",
    "SLURM_NO_KILL",
    "SLURM_IMMEDIATE",
    "SLURM_STDINMODE",
    "PMI_",
    "PMI2_",
    "PMIX_",
    "PALS_",
    "OMPI_COMM_WORLD_",
    "MPI_LOCAL",
)
"""Starts of variables that srun reads as options (srun manual, input environment variables), and of an outer step's or MPI
launcher's identity, which must not reach the tasks."""

SIZE = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_JOB_CPUS_PER_NODE")
"""The job's size, as it was when the shell began. srun 22.05 believes SLURM_JOB_NODELIST more than the controller: in a job that
has grown since then, "Only allocated 2 nodes asked for 3". Without it srun and slurmstepd set what is true."""

KEPT = ("PMIX_MCA_", "SLURM_GPUS_ON_NODE")
"""Exceptions: a user's PMIx settings, and a count that is no request."""


def step_call(shell: Shell, env: Mapping[str, str], inner: Sequence[str], extra: Sequence[str] = (), mpi: str = "") -> StepCall:
    """Return the srun command that runs `inner` as one task on each node (or as the shape says), and its environment.

    Args:
        shell: where we are.
        env: this process's environment.
        inner: the command of each task.
        extra: further srun arguments; they come last, so they win.
        mpi: PMI plug-in, e.g. "pmix"; empty = the site's default.
    """
    common = (*FIXED, *((f"--mpi={mpi}",) if mpi else ()))
    shape = shell.shape
    if not shape.het_groups:
        return StepCall(("srun", *common, *shape_args(shape), *extra, *inner), sized(clean(env), shape))
    components: list[str] = []
    for group, part in zip(shape.het_groups, shape.parts, strict=True):
        components += [":", *common, f"--het-group={group}", *shape_args(part), *extra, *inner]
    return StepCall(("srun", *components[1:]), clean(env))


def shape_args(shape: StepShape) -> tuple[str, ...]:
    """Return the options that ask for nodes, tasks, CPUs and GPUs.

    CPUs are given explicitly, since Slurm 22.05 to 23.02 does not hand `sbatch -c` on to srun; without a number a step has
    each node's whole share.
    """
    cpus = (f"--cpus-per-task={shape.cpus_per_task}",) if shape.cpus_per_task else ()
    return (
        f"--nodes={shape.nodes}",
        f"--ntasks={shape.nodes * shape.tasks_per_node}",
        f"--ntasks-per-node={shape.tasks_per_node}",
        *cpus,
        *shape.gpu_args,
        *(("--overlap",) if shape.overlap else ()),
    )


def clean(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that would change or contradict the step."""
    return {name: value for name, value in env.items() if name.startswith(KEPT) or not name.startswith(STALE)}


def sized(env: Mapping[str, str], shape: StepShape) -> dict[str, str]:
    """Return the environment without the job's old size, if that has changed."""
    if not shape.resized:
        return dict(env)
    return {**{name: value for name, value in env.items() if name not in SIZE}, "SLURM_JOB_NUM_NODES": str(shape.nodes)}
