"""A job may have lost or gained nodes since its shell began: `scontrol update` does not reach the shell's variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slaunch.allocation import hostlist
from slaunch.allocation.values import Shell
from slaunch.errors import AllocationError, MissingToolError
from slaunch.frozen import replace
from slaunch.slurm.client import ask, field

LIMIT_S = 5.0


def as_it_is_now(shell: Shell, ask: Callable[[Sequence[str], float], str] = ask) -> Shell:
    """Return the shell with the nodes that Slurm's controller says the job has now.

    Jobs of several components cannot be resized, and a controller that does not answer changes nothing.

    Args:
        shell: what the variables say.
        ask: how to run a command, within seconds.
    """
    if shell.allocation.launcher != "slurm" or shell.shape.het_groups:
        return shell
    try:
        answer = ask(("scontrol", "--oneliner", "show", "job", shell.allocation.job), LIMIT_S)
        listed = field(answer, "NodeList")
        now = hostlist.expand(listed, "NodeList") if listed not in ("", "(null)") else ()
    except (AllocationError, MissingToolError):
        return shell
    if not now or set(now) == set(shell.allocation.nodes):
        return shell
    return with_nodes(shell, now)


def with_nodes(shell: Shell, nodes: tuple[str, ...]) -> Shell:
    """Return the shell with these nodes, and a line about it.

    Where the job has lost nodes, Slurm 22.05 counts the CPUs of a step that ran then as taken for ever: `_step_dealloc_lps: …
    unable to update job's core use information due to job resizing`. Steps have to overlap it.
    """
    was = len(shell.allocation.nodes) or shell.shape.nodes
    line = f"the job has been resized from {was} to {len(nodes)} nodes since SLURM_JOB_NODELIST was set: using those"
    allocation = replace(shell.allocation, nodes=nodes, tasks_per_node=(), warnings=(*shell.allocation.warnings, line))
    return Shell(allocation, replace(shell.shape, nodes=len(nodes), overlap=not set(nodes) >= set(shell.allocation.nodes)))
