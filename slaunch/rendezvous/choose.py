"""Which way to meet."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.allocation.values import Task
from slaunch.errors import MissingToolError, UsageError
from slaunch.frozen import dataclass
from slaunch.options import Options
from slaunch.rendezvous.endpoints import ETCD, parse_master
from slaunch.rendezvous.resolve import LIMIT_S, resolve_any
from slaunch.rendezvous.ways import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.rendezvous.pmi import Interface


@dataclass(frozen=True)
class Choice:
    """The way to meet.

    Attributes:
        ways: ways to try, in this order; the next one is tried only if all tasks fail at the one before.
        reason: one line for the user.
        library: the MPI library that mpi4py is to load, a file; "" = its own choice.
    """

    ways: tuple[str, ...]
    reason: str
    library: str = ""


def choose(task: Task, options: Options, env: Mapping[str, str]) -> Choice:
    """Decide how to meet, from what is alike on all tasks of a healthy job.

    Args:
        task: this task.
        options: what the user asked for.
        env: the environment.

    Raises:
        UsageError: there is no way of that name.
        MissingToolError: no way can work here.
    """
    way = options.rendezvous
    if way != "auto":
        find(way)
    if task.slot.size == 1:
        return by_hand(way, options)
    if way == "auto":
        return auto(task, env)
    if way != "mpi":
        return Choice((way,), f"--rendezvous {way}")
    from slaunch.rendezvous.pmi import read_interface

    return Choice((way,), f"--rendezvous {way}", library_for(read_interface(env), env))


def library_for(interface: Interface, env: Mapping[str, str]) -> str:
    """A library that understands the launcher, the site's own first; "" where mpi4py's own choice stands."""
    from slaunch.rendezvous.library import suitable_library
    from slaunch.rendezvous.pmi import fits

    found = suitable_library(env, lambda library: fits(library, interface))
    return found.where if found else ""


def by_hand(way: str, options: Options) -> Choice:
    """One task that no launcher has peers for: it meets others only where the user speaks of more nodes.

    Raises:
        UsageError: it is to meet somebody on another machine, and nobody says how many they are.
    """
    least, most = options.nnodes
    if not most and options.master and elsewhere(options.master):
        source = options.origins.get("master", "--master")
        seen = f"{source}={options.master}, which is another machine, without a number of nodes"
        raise UsageError("know how many nodes meet", seen, "give all of them --nnodes N, too")
    if most <= 1 or (least <= 1 and not options.master):
        return Choice(("none",), "one task only")
    if options.master.startswith(ETCD) or way == "etcd":
        return Choice(("etcd",), f"--master {options.master}")
    wanted = str(least) if least == most else f"{least}:{most}"
    return Choice(("tcp",), f"--master {options.master}" if options.master else f"--nnodes {wanted} without a scheduler")


def elsewhere(master: str) -> bool:
    """Whether nodes are to meet on another machine: its address is none of this one's. An etcd may be anywhere."""
    if master.startswith(ETCD):
        return False
    found = resolve_any(parse_master(master)[0][0], LIMIT_S)
    return bool(found) and not any(map(own, found))


def own(ip: str) -> bool:
    """Whether an address is one of this machine's: only those can be bound."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((ip, 0))
        except OSError:
            return False
    return True


def auto(task: Task, env: Mapping[str, str]) -> Choice:
    """MPI where library and process manager match, else the first node's port.

    Where tasks share a node, each becomes its worker with the process manager's identity, which serves for one MPI_Init only
    (MPICH and Open MPI 4 abort at a second one): there the meeting leaves it to the program, if the nodes are known.
    """
    if task.allocation.nodes and any(count > 1 for count in task.allocation.tasks_per_node):
        return Choice(("slurm",), "each task becomes its worker, and may want MPI for itself")
    from slaunch.rendezvous.library import Library, find_library, kind_of
    from slaunch.rendezvous.pmi import NONE, fits, read_interface

    interface = read_interface(env)
    path = library_for(interface, env)
    library = Library(kind_of(path), path) if path else find_library(env)
    if fits(library, interface):
        reason = f"mpi4py's {library.kind} ({library.where}) understands {interface.kind} ({interface.evidence})"
        return Choice(("mpi", "slurm") if task.allocation.nodes else ("mpi",), reason, path)
    if library.kind:
        offered = "offers no interface to MPI" if interface.kind == NONE else f"speaks {interface.kind} ({interface.evidence})"
        why = f"mpi4py's library is {library.kind} ({library.where}), but the launcher {offered}"
    else:
        why = library.where
    if task.allocation.nodes:
        return Choice(("slurm",), why)
    raise MissingToolError(
        "find a way for the tasks to meet",
        f"{why}; and the {task.allocation.launcher} launcher does not tell which nodes take part",
        "install mpi4py for the MPI library that started the tasks, or start them with srun",
    )
