"""Which nodes can connect to which, on every network that they share, and the doors that answer them."""

from __future__ import annotations

import os
import resource
import selectors
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from slaunch.agent.linux import die_with_parent
from slaunch.channel.listen import close_all
from slaunch.doctor.values import ERROR, WARNING, Finding
from slaunch.frozen import dataclass
from slaunch.node.subnets import Subnet, loopback, subnet
from slaunch.node.values import Address
from slaunch.rendezvous.names import some
from slaunch.rendezvous.prove import Call, open_listeners, try_all

NAME = "reach"
MOST_CALLS = 1024
"""Of one node; in larger jobs it calls some of the others, those of all nodes together still cover every node."""
SPARE_FILES = 64
"""Files for everything else."""
COUNT = struct.Struct("=Q")
CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Neighbour:
    """Another agent: its sender's name, its node, the port where it listens, and its addresses by network."""

    sender: str
    node: str
    port: int
    way: Mapping[Subnet, Address]


def everybody(rows: Sequence[Sequence[Any]]) -> tuple[Neighbour, ...]:
    """The nodes that an order names, each as sender, port and addresses."""
    return tuple(Neighbour(sender, sender.rpartition(":")[0], port, way_of(addresses)) for sender, port, addresses in rows)


def way_of(addresses: Sequence[Sequence[Any]]) -> dict[Subnet, Address]:
    """The best address on each network."""
    way: dict[Subnet, Address] = {}
    for each in (Address(*row) for row in addresses):
        if not loopback(each):
            way.setdefault(subnet(each.ip, each.prefix), each)
    return way


def place(sender: str, nodes: Sequence[Neighbour]) -> int:
    """The number of an agent."""
    return next(at for at, each in enumerate(nodes) if each.sender == sender)


def failures(sender: str, nodes: Sequence[Neighbour]) -> list[list[str]]:
    """Connect to the others: what failed, each as called node, address, interface and reason."""
    calls = list(calls_of(place(sender, nodes), nodes, room()))
    numbered = [Call(0, to, (address.ip, nodes[to].port)) for to, address in calls]
    failed = [(*calls[at], why) for at, why in sorted(try_all(numbered).items())]
    return [[nodes[to].node, address.ip, address.interface, why] for to, address, why in failed]


def room() -> int:
    """How many connections this process may hold, after it has allowed itself what it needs, or as much of that as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CALLS + SPARE_FILES
    if 0 <= soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(MOST_CALLS, wanted if soft == resource.RLIM_INFINITY else soft - SPARE_FILES))


def calls_of(own: int, nodes: Sequence[Neighbour], most: int = MOST_CALLS) -> Iterator[tuple[int, Address]]:
    """Node and address of each call: all others, on all networks that both are on; but not more than so many."""
    others = [(own + step) % len(nodes) for step in range(1, len(nodes))]
    nets = max(1, len(nodes[own].way))
    for to in spread(others, max(1, most // nets)):
        yield from ((to, address) for net, address in nodes[to].way.items() if net in nodes[own].way)


def spread(items: Sequence[int], most: int) -> list[int]:
    """At most so many of these, evenly; the first one is always among them."""
    return [items[at * len(items) // most] for at in range(most)] if len(items) > most else list(items)


def judge(told: Mapping[str, Sequence[Sequence[str]]], shared: int) -> list[Finding]:
    """What failed between the nodes, one finding for each network.

    Args:
        told: by calling node, as `failures` gives it.
        shared: number of networks that all nodes are on.
    """
    by_card: dict[str, list[tuple[str, str, str, str]]] = {}
    for caller, rows in told.items():
        for called, ip, card, why in rows:
            by_card.setdefault(card, []).append((caller, called, ip, why))
    return [unreached(card, rows, len(told), shared) for card, rows in sorted(by_card.items())]


def unreached(card: str, rows: Sequence[tuple[str, str, str, str]], nodes: int, shared: int) -> Finding:
    """Failures on one network: the nodes that have a part in all of them, or all that nobody reaches, are named."""
    culprits = blamed(rows)
    lines = [f"{caller} cannot reach {called} at {ip} ({card}): {why}" for caller, called, ip, why in sorted(rows)]
    severity = ERROR if shared <= 1 else WARNING
    means = "a job over these nodes cannot start"
    if shared > 1:
        means = "libraries that choose this network hang; slaunch leaves it out"
    todo = "see `ip route`, firewall, cable and VLAN there; leave the node out (--exclude), or name another network (--network)"
    return Finding(NAME, severity, some(lines, 3), means, todo, culprits)


def blamed(rows: Sequence[tuple[str, str, str, str]]) -> tuple[str, ...]:
    """The fewest nodes that have a part in every failure, found one by one: those with the most failures first."""
    left = [(caller, called) for caller, called, *_ in rows]
    found: list[str] = []
    while left:
        counts: dict[str, int] = {}
        for caller, called in left:
            counts[called] = counts.get(called, 0) + 1
            counts[caller] = counts.get(caller, 0) + 1
        worst = max(sorted(counts), key=lambda node: counts[node])
        found.append(worst)
        left = [pair for pair in left if worst not in pair]
    return tuple(sorted(found))


class Doors:
    """Listens at all addresses of this node, and has a child that swallows what is sent there."""

    def __init__(self, listeners: Sequence[socket.socket], child: int) -> None:
        self._listeners = listeners
        self._child = child
        self.port = listeners[0].getsockname()[1] if listeners else 0

    @classmethod
    def open(cls, ips: Sequence[str], token: bytes) -> Doors:
        """Listen; only senders that know the token are heard."""
        listeners = open_listeners(ips)
        own = os.getpid()
        child = os.fork() if listeners else 0
        if listeners and child == 0:
            swallow(listeners, token, own)
        return cls(listeners, child)

    def close(self) -> None:
        """End the child, and listen no more."""
        if self._child:
            os.kill(self._child, 9)
            os.waitpid(self._child, 0)
        close_all(self._listeners)


def swallow(listeners: Sequence[socket.socket], token: bytes, parent: int) -> NoReturn:
    """In the child: count what each sender sends, and tell the count when it ends."""
    try:
        die_with_parent(parent)
        room()
        buffer = memoryview(bytearray(1 << 20))
        ears = selectors.DefaultSelector()
        for listener in listeners:
            listener.setblocking(False)
            ears.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in ears.select():
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if key.data is None:
                    admit(ears, sock)
                elif not take(sock, key.data, buffer, token):
                    ears.unregister(sock)
                    sock.close()
    finally:
        os._exit(0)


def admit(ears: selectors.DefaultSelector, listener: socket.socket) -> None:
    """A new sender."""
    try:
        sock, _ = listener.accept()
    except OSError:  # it has gone already
        return
    sock.setblocking(False)
    ears.register(sock, selectors.EVENT_READ, {"count": 0, "head": b""})


def take(sock: socket.socket, state: dict[str, Any], buffer: memoryview, token: bytes) -> bool:
    """Take what a sender has sent; whether more may come."""
    try:
        count = sock.recv_into(buffer)
        if count == 0:
            if state["head"] == token:
                sock.send(COUNT.pack(state["count"] - len(token)))
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False
    if len(state["head"]) < len(token):
        state["head"] += bytes(buffer[: min(count, len(token) - len(state["head"]))])
    state["count"] += count
    return token.startswith(state["head"])
