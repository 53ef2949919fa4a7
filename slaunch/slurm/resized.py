"""A job may have lost or gained nodes since its shell began: `scontrol update` does not reach the shell's variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slaunch.allocation import hostlist
from slaunch.allocation.values import Shell
from slaunch.errors import AllocationError, MissingToolError
from slaunch.frozen import replace
from slaunch.slurm.client import ask, field

LIMIT_S = 5.0
TAKEN_S = 2.0
"""When a node is lost, people wait for the report."""
ILL = ("*", "DOWN", "FAIL", "NOT_RESPONDING", "POWER", "UNKNOWN")
"""In the state of a node that Slurm itself takes from jobs; "*" follows that of a silent one."""


def as_it_is_now(shell: Shell, ask: Callable[[Sequence[str], float], str] = ask) -> Shell:
    """Return the shell with the nodes that Slurm's controller says the job has now.

    Jobs of several components cannot be resized, and a controller that does not answer changes nothing.

    Args:
        shell: what the variables say.
        ask: how to run a command, within seconds.
    """
    if shell.allocation.launcher != "slurm" or shell.shape.het_groups:
        return shell
    now = nodes_of(shell.allocation.job, LIMIT_S, ask)
    if not now or set(now) == set(shell.allocation.nodes):
        return shell
    return with_nodes(shell, now)


def with_nodes(shell: Shell, nodes: tuple[str, ...]) -> Shell:
    """Return the shell with these nodes, and a line about it.

    Where the job has lost nodes, Slurm 22.05 counts the CPUs of a step that ran then as taken for ever: `_step_dealloc_lps: …
    unable to update job's core use information due to job resizing`. Steps have to overlap it. Where it has got some, nobody
    says how many CPUs it has on those: each agent takes its node's share.
    """
    was = len(shell.allocation.nodes) or shell.shape.nodes
    line = f"the job has been resized from {was} to {len(nodes)} nodes since SLURM_JOB_NODELIST was set: using those"
    allocation = replace(shell.allocation, nodes=nodes, tasks_per_node=(), warnings=(*shell.allocation.warnings, line))
    lost, got = set(shell.allocation.nodes) - set(nodes), set(nodes) - set(shell.allocation.nodes)
    cpus = 0 if got else shell.shape.cpus_per_task
    return Shell(allocation, replace(shell.shape, nodes=len(nodes), cpus_per_task=cpus, overlap=bool(lost), resized=True))


def nodes_of(job: str, limit_s: float, ask: Callable[[Sequence[str], float], str] = ask) -> tuple[str, ...]:
    """Return the nodes that a job has now, as the controller says within `limit_s`; () if it has none, or if that is not said."""
    try:
        listed = field(ask(("scontrol", "--oneliner", "show", "job", job), limit_s), "NodeList")
        return hostlist.expand(listed, "NodeList") if listed not in ("", "(null)") else ()
    except (AllocationError, MissingToolError):
        return ()


def taken(job: str, hosts: Sequence[str], ask: Callable[[Sequence[str], float], str] = ask) -> tuple[str, ...]:
    """Return those of these nodes that the job has been made smaller by, as far as the controller says so in time.

    A node that fails is taken from a job as well (`sbatch --no-kill`), but then it is down, or silent.
    """
    now = nodes_of(job, TAKEN_S, ask)
    away = [host for host in hosts if host not in now] if now else []
    try:
        return tuple(host for host in away if healthy(ask(("scontrol", "--oneliner", "show", "node", host), TAKEN_S)))
    except (AllocationError, MissingToolError):
        return ()


def healthy(node: str) -> bool:
    """Whether a node is well, by `scontrol --oneliner show node`."""
    state = field(node, "State")
    return bool(state) and not any(word in state for word in ILL)
