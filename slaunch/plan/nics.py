"""Which network cards each worker's libraries use: those near its devices, where there are several. Pure.

NCCL and RCCL build rings over all workers of a node, so that these have to name the same cards; which of them is near which
device they find themselves. UCX and MPI libraries use one card, or a few, per process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.frozen import dataclass
from slaunch.node.values import Device, Nic, NodeFacts
from slaunch.plan.cores import Lists, nodes_of
from slaunch.plan.seat import Seat

Pairs = tuple[tuple[str, str], ...]
RDMA = ("infiniband", "roce")


@dataclass(frozen=True)
class Cards:
    """Cards of a node's workers.

    Attributes:
        near: names of the cards near each worker's devices, by local rank; () = nothing is said of cards.
        env: variables that say so to libraries, by local rank, as (name, value).
    """

    near: tuple[tuple[str, ...], ...] = ()
    env: tuple[Pairs, ...] = ()


UNSAID = Cards()


def cards_of(tasks: Sequence[NodeFacts], devices: Sequence[Sequence[Device]], cpus: Lists, wish: str) -> Cards:
    """Cards of a node's workers; nothing is said with fewer than two, or where all are equally far from all devices.

    Args:
        tasks: facts of the task of each worker, by local rank.
        devices: devices of each worker.
        cpus: CPUs that each worker is bound to; () = its task's.
        wish: "auto" or "none".
    """
    if wish == "none" or not tasks or len(tasks[0].nics) < 2 or not all(devices):
        return UNSAID
    near = tuple(near_of(facts.nics, own) for facts, own in zip(tasks, devices, strict=True))
    names = {nic.name for own in near for nic in own}
    used = [nic for nic in tasks[0].nics if nic.name in names]
    if len(used) == len(tasks[0].nics) and all(len(own) == len(used) for own in near):
        return UNSAID
    shared = (*nccl(used), *mpich(used, tasks, cpus))
    return Cards(
        tuple(tuple(nic.name for nic in own) for own in near),
        tuple((*shared, *ucx(own, used)) for own in near),
    )


def near_of(nics: Sequence[Nic], devices: Sequence[Device]) -> tuple[Nic, ...]:
    """The cards near any of a worker's devices."""
    positions = {device.position for device in devices}
    return tuple(nic for nic in nics if positions.intersection(nic.near))


def nccl(used: Sequence[Nic]) -> Pairs:
    """The cards of all workers, for NCCL and RCCL. `=` asks for exactly these names: mlx5_1 is no sign for mlx5_10."""
    names = [nic.name for nic in used if nic.kind in RDMA]
    return (("NCCL_IB_HCA", f"={','.join(names)}"),) if names else ()


def ucx(own: Sequence[Nic], used: Sequence[Nic]) -> Pairs:
    """A worker's own cards, for UCX, where every card reaches every other: on InfiniBand of one subnet.

    On Ethernet the cards may be in networks of their own, where a worker with one card does not reach one with another.
    """
    one = all(nic.kind == "infiniband" for nic in used) and len({nic.subnet for nic in used}) == 1
    return (("UCX_NET_DEVICES", ",".join(nic.name for nic in own)),) if one and len(own) < len(used) else ()


def mpich(used: Sequence[Nic], tasks: Sequence[NodeFacts], cpus: Lists) -> Pairs:
    """HPE's MPICH takes the card of each process's NUMA node. It fails where a process is on several (P43): then the GPU's."""
    if not any(nic.kind == "slingshot" for nic in used):
        return ()
    confined = all(len(nodes_of(facts, own or facts.cpus)) == 1 for facts, own in zip(tasks, cpus, strict=True))
    return (("MPICH_OFI_NIC_POLICY", "NUMA" if confined else "GPU"),)


def variables(seat: Seat, env: Mapping[str, str]) -> dict[str, str]:
    """What a worker's libraries are told of cards, unless the user has told them."""
    told = seat.node.nic_env[seat.local_rank] if seat.node.nic_env else ()
    return {name: value for name, value in told if not env.get(name)}
