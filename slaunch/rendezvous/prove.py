"""Where nodes share several networks: which of them really join all nodes. Connections tell, before a worker starts.

A network card may be up and lead nowhere: another VLAN, a cable in the wrong switch, a firewall, a bridge to this machine's own
containers. So every node connects, on each network, to the next node and to the first one; what failed goes round to all, who
therefore leave out the same networks. A job whose nodes share one network only has no choice, and pays nothing.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence

from slaunch.channel.listen import close_all, listen
from slaunch.errors import RendezvousError
from slaunch.frozen import dataclass, replace
from slaunch.node.subnets import Subnet, loopback, subnet
from slaunch.node.values import Address, NodeFacts
from slaunch.rendezvous.gatherer import Gatherer, Ground
from slaunch.rendezvous.names import some

LIMIT_S = 2.0
"""A connection that takes longer has failed. The kernel makes it, however busy the other node is."""
LISTENS = 8
"""Tries to find one port that is free at all addresses."""
MOST_CALLERS = 1000
"""In larger jobs only the next node calls the first one: the kernel does not keep more connections that nobody takes."""

Way = dict[Subnet, Address]
"""A node's address on each network."""


@dataclass(frozen=True)
class Call:
    """A connection to try: on network number `net`, to node number `to`."""

    net: int
    to: int
    target: tuple[str, int]


def prove(everybody: tuple[NodeFacts, ...], ground: Ground, gatherer: Gatherer, deadline: float) -> tuple[NodeFacts, ...]:
    """Everybody's facts, without the addresses on networks over which some node cannot reach another.

    Args:
        everybody: facts by task rank.
        ground: to say which networks are left out.
        gatherer: the tasks that have met; all of them call this.
        deadline: of the meeting.

    Raises:
        RendezvousError: none of several networks joins all nodes; or not all have answered in time.
    """
    firsts = first_tasks(everybody)
    ways = [way_of(everybody[rank]) for rank in firsts]
    nets = common(ways)
    if len(nets) < 2:
        return everybody
    real = [net for net in nets if len({way[net].ip for way in ways}) == len(ways)]
    if not real:  # nodes that share a machine
        return everybody
    place = firsts.index(gatherer.rank) if gatherer.rank in firsts else -1
    failures = exchange(ways, real, place, gatherer, deadline)
    texts = {net: failure_text(net, found, ways, [everybody[rank].host for rank in firsts]) for net, found in failures.items()}
    if len(texts) == len(real):
        raise no_network(texts)
    for text in texts.values():
        ground.say(f"note: a network is not used: {text}")
    return without(everybody, {net for net in nets if net in texts or net not in real})


def first_tasks(everybody: Sequence[NodeFacts]) -> list[int]:
    """The lowest task rank on each machine."""
    found: dict[str, int] = {}
    for rank, facts in enumerate(everybody):
        found.setdefault(facts.machine, rank)
    return list(found.values())


def way_of(facts: NodeFacts) -> Way:
    """The best address on each of a node's networks."""
    way: Way = {}
    for address in facts.addresses:
        if not loopback(address):
            way.setdefault(subnet(address.ip, address.prefix), address)
    return way


def common(ways: Sequence[Way]) -> list[Subnet]:
    """The networks that all nodes are on, in the order of the first node."""
    return [net for net in ways[0] if all(net in way for way in ways)]


def exchange(
    ways: Sequence[Way], nets: Sequence[Subnet], place: int, gatherer: Gatherer, deadline: float
) -> dict[Subnet, list[tuple[int, int, str]]]:
    """Try all connections of all nodes: by network those that failed, each as caller, called node, and reason.

    Args:
        ways: addresses of each node.
        nets: the networks to try.
        place: this node's number; -1 = another task speaks for this machine.
        gatherer: the tasks that have met.
        deadline: of the meeting.
    """
    listeners = open_listeners([ways[place][net].ip for net in nets]) if place >= 0 else []
    try:
        port = listeners[0].getsockname()[1] if listeners else 0
        heard = [json.loads(part) for part in gatherer.allgather(json.dumps([place, port]).encode(), deadline)]
        ports = {each[0]: each[1] for each in heard}
        calls = list(calls_of(place, ways, nets, ports)) if place >= 0 else []
        failed = [[calls[index].net, place, calls[index].to, why] for index, why in try_all(calls).items()]
        parts = gatherer.allgather(json.dumps(failed).encode(), deadline)
    finally:
        close_all(listeners)
    found: dict[Subnet, list[tuple[int, int, str]]] = {}
    for net, caller, called, why in (failure for part in parts for failure in json.loads(part)):
        found.setdefault(nets[net], []).append((caller, called, why))
    return found


def open_listeners(ips: Sequence[str]) -> list[socket.socket]:
    """Sockets at one port of all these addresses. Nobody needs to accept: the kernel answers."""
    for _ in range(LISTENS):
        sockets = listen(ips, 0)
        if sockets:
            return sockets
    return []


def calls_of(place: int, ways: Sequence[Way], nets: Sequence[Subnet], ports: Mapping[int, int]) -> Iterator[Call]:
    """What this node has to try."""
    others = {(place + 1) % len(ways), *([0] if len(ways) <= MOST_CALLERS else [])} - {place}
    for number, net in enumerate(nets):
        for other in sorted(others):
            yield Call(number, other, (ways[other][net].ip, ports[other]))


def try_all(calls: Sequence[Call]) -> dict[int, str]:
    """Connect to all at the same time: what failed, by its index, and why."""
    failed: dict[int, str] = {}
    sockets: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    for index, call in enumerate(calls):
        sock = socket.socket(socket.AF_INET6 if ":" in call.target[0] else socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sockets[sock.fileno()] = index, sock
        code = sock.connect_ex(call.target)
        if code not in (0, errno.EINPROGRESS):
            failed[index] = os.strerror(code).lower()
        else:
            poll.register(sock, select.POLLOUT)
    waiting = {handle for handle, (index, _) in sockets.items() if index not in failed}
    end = time.monotonic() + LIMIT_S
    while waiting and time.monotonic() < end:
        for handle, _ in poll.poll(max(0.0, end - time.monotonic()) * 1000):
            index, sock = sockets[handle]
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                failed[index] = os.strerror(code).lower()
            poll.unregister(handle)
            waiting.discard(handle)
    close_all(sock for _, sock in sockets.values())
    return failed | {sockets[handle][0]: "does not answer" for handle in waiting}


def failure_text(net: Subnet, failures: Sequence[tuple[int, int, str]], ways: Sequence[Way], hosts: Sequence[str]) -> str:
    """Who could not reach whom."""
    words = []
    for caller, called, why in sorted(failures):
        address = ways[called][net]
        words.append(f"{hosts[caller]} cannot reach {hosts[called]} at {address.ip} ({address.interface}): {why}")
    return some(words, 3)


def no_network(texts: Mapping[Subnet, str]) -> RendezvousError:
    """The error of nodes that nothing joins."""
    return RendezvousError(
        "find a network that joins all nodes",
        "\n        ".join(texts.values()),
        "mend one of these networks, leave those nodes out, or name another network by --network",
    )


def without(everybody: tuple[NodeFacts, ...], nets: set[Subnet]) -> tuple[NodeFacts, ...]:
    """The facts without the addresses on these networks."""
    if not nets:
        return everybody
    return tuple(
        replace(facts, addresses=tuple(each for each in facts.addresses if subnet(each.ip, each.prefix) not in nets))
        for facts in everybody
    )
