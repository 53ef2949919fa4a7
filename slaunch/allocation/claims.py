"""What the user says of nodes although the launcher knows: it must agree, and where it is not needed it is left aside."""

from __future__ import annotations

from slaunch.allocation.values import Shell, Task
from slaunch.errors import AllocationError, RendezvousError
from slaunch.frozen import replace
from slaunch.options import Options

LOOPBACK = ("127.", "localhost", "[::1]")
"""How addresses begin that no other machine can reach."""


def heed(standing: Task | Shell, options: Options) -> tuple[Task | Shell, Options]:
    """Check the number of nodes that the user wants, and return what follows from it.

    A machine alone is let through: nodes that are started by hand meet later. A step that slaunch starts itself gets as many
    nodes as the user wants, at most all. An address to meet at is dropped, with a note, where a launcher started all tasks; one
    without a number of nodes gets a note.

    Raises:
        AllocationError: the launcher has fewer or more nodes than the user says.
    """
    if options.nnodes != (0, 0) and not options.join:  # else it is the number of another step's
        standing = check_nodes(standing, options)
    started = isinstance(standing, Shell) or standing.slot.size > 1
    if options.master and options.rendezvous == "auto" and started:
        source = options.origins.get("master", "--master")
        note = f"{source}={options.master}: not needed, {standing.allocation.launcher} started all tasks"
        options = replace(options, master="", notes=(*options.notes, note))
    elif options.master and not started and options.nnodes == (0, 0) and not options.master.startswith(LOOPBACK):
        source = options.origins.get("master", "--master")
        todo = "this job is of one node; --nnodes N makes N nodes meet there"
        note = f"{source}={options.master} without a number of nodes: {todo}"
        options = replace(options, notes=(*options.notes, note))
    return standing, options


def check_nodes(standing: Task | Shell, options: Options) -> Task | Shell:
    """Compare with the launcher's number of nodes; of a shell's, take what is wanted."""
    least, most = options.nnodes
    if isinstance(standing, Shell):
        known = standing.shape.nodes
        if least > known or (most < known and standing.shape.het_groups):
            raise disagreement(standing, options, known)
        return replace(standing, shape=replace(standing.shape, nodes=min(most + options.spares, known)))
    known = len(standing.allocation.nodes)
    alone = standing.slot.size == 1 and known <= 1
    too_many = known > most + options.spares and least == most  # beyond a range they wait
    if known and not alone and (known < least or too_many):
        raise disagreement(standing, options, known)
    return standing


def check_met(met: int, options: Options) -> None:
    """Refuse a meeting of another number of nodes than the user wants, where the launcher did not tell it before.

    Raises:
        RendezvousError: more or fewer nodes have met.
    """
    least, most = options.nnodes
    if options.nnodes != (0, 0) and not least <= met <= most:
        raise RendezvousError(
            f"start on {wanted(options)} nodes",
            f"{source(options)}, but the tasks that met are on {met}",
            "start one task on each of the nodes that you want, or correct the number",
        )


def check_rank(task: Task, options: Options) -> None:
    """Refuse a node number that differs from the launcher's (P13).

    A number that a script passes is often one that the batch shell expanded too early, so that every node claims the same.

    Raises:
        AllocationError: they differ.
    """
    given, known = options.node_rank, task.slot.node
    if given >= 0 and task.slot.size > 1 and task.allocation.nodes and given != known:
        raise AllocationError(
            "number the nodes",
            f"{options.origins.get('node_rank', 'node_rank')}={given}, but {task.allocation.launcher} says this is node {known}",
            "leave it out: slaunch reads it from the launcher (in double quotes a shell expands such a variable too early)",
        )


def disagreement(standing: Task | Shell, options: Options, known: int) -> AllocationError:
    """The error of two different numbers of nodes."""
    return AllocationError(
        f"start on {wanted(options)} nodes",
        f"{source(options)}, but {standing.allocation.launcher} has {known}",
        "leave it out: slaunch reads it from the launcher; or ask the scheduler for another number",
    )


def wanted(options: Options) -> str:
    """The number of nodes as the user gave it."""
    least, most = options.nnodes
    return str(least) if least == most else f"{least}:{most}"


def source(options: Options) -> str:
    """The option and its value."""
    return f"{options.origins.get('nnodes', 'nnodes')}={wanted(options)}"
