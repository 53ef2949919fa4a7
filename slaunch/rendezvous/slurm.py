"""Meeting without MPI: task 0 listens at a port that follows from the job; the others look for it on its node."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

from slaunch.allocation.values import Allocation, Task
from slaunch.channel import secret
from slaunch.channel.dial import Caller, Dialer, Target
from slaunch.channel.hub import Hub
from slaunch.channel.listen import listen
from slaunch.errors import RendezvousError
from slaunch.node.nics import read_addresses
from slaunch.rendezvous.assemble import find_hub, tell_seldom, wait_for_all
from slaunch.rendezvous.gather import StarGatherer
from slaunch.rendezvous.gatherer import Ground, UnusableError
from slaunch.rendezvous.ports import candidate_ports
from slaunch.rendezvous.resolve import resolve, usable

RESOLVE_AGAIN_S = 2.0
LOOPBACK = "127.0.0.1"


def meet_by_slurm(ground: Ground, deadline: float) -> StarGatherer:
    """Meet on the node of task 0.

    Raises:
        RendezvousError: not all have come in time.
        UnusableError: the launcher does not tell which nodes take part.
    """
    allocation, slot = ground.task.allocation, ground.task.slot
    if not allocation.nodes:
        raise UnusableError(f"the {allocation.launcher} launcher does not tell which nodes take part")
    identity = meeting_identity(allocation, ground.env)
    return serve(identity, ground, deadline) if slot.rank == 0 else join(identity, ground, deadline)


def meeting_identity(allocation: Allocation, env: Mapping[str, str], attempt: int = 0) -> str:
    """What distinguishes this meeting from all others that could come by: cluster, job, step, requeue, attempt."""
    cluster = env.get("SLURM_CLUSTER_NAME", "")
    return f"{cluster}/{allocation.job}/{allocation.step}/{allocation.restarts}/{attempt}"


def name_of(task: Task, rank: int) -> str:
    """A task's name for messages."""
    nodes = task.allocation.nodes
    return f"task {rank} on {nodes[rank]}" if len(nodes) == task.slot.size else f"task {rank}"


def serve(identity: str, ground: Ground, deadline: float) -> StarGatherer:
    """Task 0's part."""
    slot = ground.task.slot
    offered = secret.offer(identity, ground.env)
    try:
        hub = Hub(listeners(identity, ground), slot.rank, slot.size, offered.door)
        wait_for_all(hub, ground, deadline)
    finally:
        offered.withdraw()
    return StarGatherer(hub, slot.rank, offered.door.secret, lambda rank: name_of(ground.task, rank))


def listeners(identity: str, ground: Ground) -> list[socket.socket]:
    """Sockets at the first free one of the candidate ports, on every address by which the others may know this node.

    Those that the user has not chosen as network are among them: node names may lead there, and the door closes with the meeting.
    """
    alone = len(ground.task.allocation.nodes) == 1
    ips = [LOOPBACK] if alone else [address.ip for address in (*ground.facts.addresses, *read_addresses())]
    ports = candidate_ports(identity)
    for port in ports:
        sockets = listen(ips, port)
        if sockets:
            return sockets
    raise RendezvousError(
        "listen for the other tasks",
        f"none of the ports {', '.join(map(str, ports))} is free at {', '.join(ips)}",
        "end what listens there, or meet by MPI (--rendezvous mpi)",
    )


def join(identity: str, ground: Ground, deadline: float) -> StarGatherer:
    """The part of all other tasks."""
    task = ground.task
    host = task.allocation.nodes[task.slot.node]
    caller = Caller(identity, task.slot.rank, task.slot.size, host, os.getpid(), os.urandom(8).hex())
    where = f"task 0 on {task.allocation.root or 'any of the nodes'}"
    dialer = Dialer(
        targets(identity, ground, deadline),
        caller,
        lambda by, hint: secret.find(identity, ground.env, by, hint),
        tell_seldom(ground, where),
    )
    spoke, known = find_hub(dialer, where, ground, deadline)
    patience_s = ground.options.rendezvous_timeout_s
    return StarGatherer(spoke, task.slot.rank, known, lambda rank: name_of(task, rank), patience_s=patience_s)


def targets(identity: str, ground: Ground, deadline: float) -> list[Target]:
    """Where task 0 may be: candidate ports, each at every address of its node."""
    ips = hub_addresses(ground)
    while not ips and time.monotonic() < deadline:
        time.sleep(RESOLVE_AGAIN_S)
        ips = hub_addresses(ground)
    if not ips:
        error = RendezvousError(
            f"find the address of node {ground.task.allocation.root}",
            "neither the system's resolver nor Slurm's NodeAddr knows one that is not loopback",
            "correct /etc/hosts or DNS on the nodes, or meet by MPI (--rendezvous mpi)",
        )
        error.local = True
        raise error
    return [(ip, port) for port in candidate_ports(identity) for ip in ips]


def hub_addresses(ground: Ground) -> tuple[str, ...]:
    """Addresses of the node of task 0; of all nodes if the launcher does not tell which one that is."""
    allocation, slot = ground.task.allocation, ground.task.slot
    if len(allocation.nodes) == 1:
        return (LOOPBACK,)
    if allocation.root == allocation.nodes[slot.node]:
        return tuple(address.ip for address in ground.facts.addresses if usable(address.ip))
    if allocation.root:
        return resolve(allocation.root)
    return tuple(dict.fromkeys(ip for node in allocation.nodes for ip in resolve(node)))
