"""The plan: what runs where, the same on every node."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.frozen import dataclass, field
from slaunch.node.values import Address, Device


@dataclass(frozen=True)
class NodePlan:
    """One node's part.

    Attributes:
        index: node number, 0 … in order of the lowest task rank on it.
        host: host name.
        address: the address that peers use for this node.
        first_rank: global rank of its first worker; ranks on a node are consecutive in local-rank order, except where tasks are
            workers and the scheduler spread them otherwise: then `ranks` tells.
        ranks: global ranks of its workers in local-rank order.
        ports: endpoint port of each worker, by local rank.
        spare_ports: further reserved ports (`SPARE_PORTS` of them).
        devices: devices of each worker, by local rank; () for a CPU worker.
        cpus: CPUs of each worker, by local rank; () = not bound.
        threads: physical cores of each worker, by local rank.
        visible: name of the visible-list variable on this node; "" if none.
        notes: what the user may want to know about the placement, one line each.
        views: labels that each worker's visible list is rewritten to, by local rank; () = the list is left as it is found.
        roles: role of each worker, by local rank, e.g. "server"; () = all are plain workers.
        numbers: its number among all workers of its role, by local rank.
        endpoints: endpoint that the user fixed for it, by local rank; () = the node's address and its port.
        memory: NUMA nodes of its memory, by local rank; () = left to the system, like all workers where there is no entry.
        memory_policy: "preferred" or "bind", for workers with such nodes.
        nics: names of the network cards near each worker's devices, by local rank; () = nothing is said of cards.
        nic_env: variables that tell libraries of them, by local rank, as (name, value).
    """

    index: int
    host: str
    address: Address
    first_rank: int
    ranks: tuple[int, ...]
    ports: tuple[int, ...]
    spare_ports: tuple[int, ...]
    devices: tuple[tuple[Device, ...], ...]
    cpus: tuple[tuple[int, ...], ...]
    threads: tuple[int, ...]
    visible: str
    views: tuple[tuple[str, ...], ...] = ()
    roles: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    endpoints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    memory: tuple[tuple[int, ...], ...] = ()
    memory_policy: str = ""
    nics: tuple[tuple[str, ...], ...] = ()
    nic_env: tuple[tuple[tuple[str, str], ...], ...] = ()


@dataclass(frozen=True)
class Command:
    """What some of the ranks run, where not all run the same.

    Attributes:
        name: as the user calls it.
        ranks: pairs (first, last) of global ranks; () = all that no other command has.
        argv: the command.
        env: variables that these workers get beside the others, as (name, value).
    """

    name: str
    ranks: tuple[tuple[int, int], ...]
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Plan:
    """The whole job. Workers are computed one by one by `plan.workers.worker`, so that a plan of 131,072 workers stays small.

    Attributes:
        job: the job's name, unique on the cluster while it runs.
        attempt: 0 at first, one more at each restart.
        mode: job mode by name.
        layout: "agent" (an agent per node starts the workers) or "task" (each task becomes its worker).
        world: number of workers.
        nodes: in node order.
        argv: command of each worker.
        contracts: names of the contracts in force.
        log_dir: absolute directory of the logs; "" if output is left to the launcher (layout "task").
        digest: SHA-256 of all other fields; what the nodes compare.
        commands: commands by rank where not all workers run the same; () = all run `argv`.
    """

    job: str
    attempt: int
    mode: str
    layout: str
    world: int
    nodes: tuple[NodePlan, ...]
    argv: tuple[str, ...]
    contracts: tuple[str, ...]
    log_dir: str
    digest: str
    commands: tuple[Command, ...] = ()

    def __hash__(self) -> int:
        """By digest, which covers all fields: a plan of 100,000 workers is a cheap dictionary key."""
        return hash(self.digest)


@dataclass(frozen=True)
class EnvFile:
    """A file that tells a worker what is too long for one variable. Who starts the worker provides it.

    Attributes:
        variable: the variable that is to hold the file's path.
        name: what it is called where somebody looks.
        text: the content, the same for all workers that share it.
    """

    variable: str
    name: str
    text: str


@dataclass(frozen=True)
class WorkerSpec:
    """One worker, ready to start.

    Attributes:
        rank, local_rank, node: its numbers.
        argv: its command.
        set_env: variables to set.
        drop_env: variables to remove from what it inherits (before `set_env` is applied).
        cpus: CPUs to bind to; () = leave as is.
        devices: its devices.
        log_name: file name within the log directory, e.g. "workerlog.5".
        err_name: likewise of the file for its errors; "" where they go to the same one.
        files: files to write before it starts, each with the variable that names it.
        origins: which contract or rule made each variable of `set_env` and `drop_env`, e.g. "torch", "hygiene: task identity".
        role: its role; "worker" where all are alike.
        service: it serves others and is ended when all workers that are no services have ended.
        first: it runs alone, before the node's other workers start, and must succeed.
        memory: NUMA nodes that its memory comes from; () = left to the system.
        memory_policy: "preferred" (these as long as they have room) or "bind" (nowhere else).
    """

    rank: int
    local_rank: int
    node: int
    argv: tuple[str, ...]
    set_env: Mapping[str, str]
    drop_env: tuple[str, ...]
    cpus: tuple[int, ...]
    devices: tuple[Device, ...]
    log_name: str
    files: tuple[EnvFile, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    role: str = "worker"
    service: bool = False
    first: bool = False
    memory: tuple[int, ...] = ()
    memory_policy: str = ""
    err_name: str = ""
