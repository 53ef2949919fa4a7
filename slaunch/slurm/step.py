"""The srun command by which slaunch starts its own step. Pure: nothing is run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.allocation.values import Shell, StepCall, StepShape

STALE = (
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_",
    "SLURM_NNODES",
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "SLURM_MEM_",
    "SLURM_GPUS",
    "SLURM_GRES",
    "SLURM_TRES_",
    "SLURM_STEP",
    "SLURM_DISTRIBUTION",
    "SLURM_HOSTFILE",
    "SLURM_EXPORT_ENV",
    "SLURM_MPI_TYPE",
    "PMI",
)
"""Starts of variables that srun would read as options beside the ones given here, or that would reach the tasks as their own."""

KEPT = ("SLURM_GPUS_ON_NODE",)


def step_call(shell: Shell, env: Mapping[str, str], inner: Sequence[str], extra: Sequence[str] = (), mpi: str = "") -> StepCall:
    """Return the srun command that runs `inner` as one task on each node (or as the shape says), and its environment.

    Args:
        shell: where we are.
        env: this process's environment.
        inner: the command of each task.
        extra: further srun arguments; they come last, so they win.
        mpi: PMI plug-in, e.g. "pmix"; empty = the site's default.
    """
    common = (*fixed(mpi), *extra)
    groups = shell.shape.het_groups
    if not groups:
        argv = ("srun", *common, *shape_args(shell.shape), *inner)
    else:
        parts = [
            (*common, f"--het-group={group}", *shape_args(part), *inner)
            for group, part in zip(groups, shell.shape.parts, strict=True)
        ]
        argv = ("srun", *parts[0])
        for part in parts[1:]:
            argv = (*argv, ":", *part)
    return StepCall(argv, clean(env))


def fixed(mpi: str) -> tuple[str, ...]:
    """Return the options that do not depend on the job."""
    return (
        "--export=ALL",
        "--input=none",
        "--cpu-bind=none",
        "--mem=0",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--no-kill",
        *((f"--mpi={mpi}",) if mpi else ()),
    )


def shape_args(shape: StepShape) -> tuple[str, ...]:
    """Return the options that ask for nodes, tasks, CPUs and GPUs."""
    cpus = (f"--cpus-per-task={shape.cpus_per_task}",) if shape.cpus_per_task else ()
    return (
        f"--nodes={shape.nodes}",
        f"--ntasks={shape.nodes * shape.tasks_per_node}",
        f"--ntasks-per-node={shape.tasks_per_node}",
        *cpus,
        *shape.gpu_args,
    )


def clean(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that would change or contradict the step."""
    return {name: value for name, value in env.items() if name in KEPT or not name.startswith(STALE)}
