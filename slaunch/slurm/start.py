"""How slaunch starts its own agents from a shell: srun in a Slurm job, the site's MPI launcher elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from slaunch.allocation.values import Shell, StepCall
from slaunch.errors import MissingToolError
from slaunch.slurm.client import ask
from slaunch.slurm.step import step_call

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "pbs": ("mpiexec", "mpirun"),
    "lsf": ("jsrun", "mpirun", "mpiexec"),
    "hostfile": ("mpirun", "mpiexec"),
}
"""Launchers to look for, by the reader that found the shell. On Cray systems with PBS, mpiexec is PALS."""


def start_call(
    shell: Shell,
    env: Mapping[str, str],
    inner: Sequence[str],
    extra: Sequence[str] = (),
    version: Callable[[Sequence[str]], str] = ask,
) -> StepCall:
    """Return the command that runs `inner` once on each node of the shell's allocation, and its environment.

    Args:
        shell: where we are.
        env: this process's environment.
        inner: the command of each agent.
        extra: further arguments for srun or mpirun.
        version: how to run `mpirun --version`.

    Raises:
        MissingToolError: there is no MPI launcher on PATH.
        AllocationError: the launcher is unknown, or it would refuse to run.
    """
    if shell.allocation.launcher not in PROGRAMS:
        return step_call(shell, env, inner, extra)
    from slaunch.allocation.mpirun import Launcher, flavour, mpirun_call

    program = find(PROGRAMS[shell.allocation.launcher], env.get("PATH", ""))
    kind = "jsrun" if program == "jsrun" else flavour(version((program, "--version")), program)
    return mpirun_call(Launcher(program, kind, root=os.getuid() == 0), shell, env, inner, extra)


def find(programs: Sequence[str], path: str) -> str:
    """Return the first of these programs that is on PATH.

    Raises:
        MissingToolError: none is.
    """
    for program in programs:
        if any(os.access(f"{folder}/{program}", os.X_OK) for folder in path.split(":") if folder):
            return program
    raise MissingToolError(
        "start slaunch on the job's other nodes",
        f"none of {', '.join(programs)} on PATH={path}",
        "load the site's MPI module, or start slaunch by its launcher yourself, one process per node",
    )
