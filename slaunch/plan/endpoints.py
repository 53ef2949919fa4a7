"""Addresses and ports: which address peers use for a node, and the endpoints that workers are told."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from slaunch.errors import PlanError
from slaunch.node.subnets import Subnet, loopback, subnet
from slaunch.node.values import Address, NodeFacts
from slaunch.plan.seat import homes
from slaunch.plan.values import Plan

LOOPBACK = Address("127.0.0.1", "lo", 8)

TORCH, PADDLE, COORDINATOR, RESERVE = range(4)
"""Index into a node's spare ports by what the first node's port of that index serves. The one in reserve serves a node's tuning
process, and once that has ended, on the first node, Horovod's store."""


def choose(facts: Sequence[NodeFacts], network: str = "") -> tuple[Address, ...]:
    """One address for each node, on a subnet that the others are on too.

    The subnet with most nodes wins, among equals the fastest (by its slowest link), then the one that the first node prefers. A
    node that is not on it, as where each rack has a subnet of its own, gives its best address of the same family. One node
    alone needs no network: it gets loopback, which no firewall or lost Wi-Fi touches, unless the user chose a network.

    Args:
        facts: one entry per node, in node order; their addresses are already those of the network that the user chose.
        network: that choice; "" = free.

    Raises:
        PlanError: if a node of several has nothing but loopback, or no address of the common family.
    """
    if len(facts) == 1:
        return facts[0].addresses[:1] if network and facts[0].addresses else (LOOPBACK,)
    offers = [usable(fact) for fact in facts]
    best = best_subnet(offers)
    return tuple(on_subnet(fact, offer, best) for fact, offer in zip(facts, offers, strict=True))


def usable(fact: NodeFacts) -> list[Address]:
    """The node's addresses that other nodes can reach, best first."""
    found = [address for address in fact.addresses if not loopback(address)]
    if not found:
        raise PlanError(
            f"find an address of node {fact.host} that the other nodes can reach",
            f"it has {', '.join(f'{each.interface} {each.ip}' for each in fact.addresses) or 'no address at all'}",
            "bring up a network interface on that node, or leave the node out",
        )
    return found


def best_subnet(offers: Sequence[Sequence[Address]]) -> Subnet:
    """The subnet to prefer: most nodes, then the fastest slowest link, then first seen."""
    members: dict[Subnet, int] = {}
    slowest: dict[Subnet, int] = {}
    for offer in offers:
        speeds: dict[Subnet, int] = {}
        for address in offer:
            net = subnet(address.ip, address.prefix)
            speeds[net] = max(speeds.get(net, 0), address.speed_mbps)
        for net, speed in speeds.items():
            members[net] = members.get(net, 0) + 1
            slowest[net] = min(slowest.get(net, speed), speed)
    return max(members, key=lambda net: (members[net], slowest[net]))  # the first of equals, as dictionaries keep order


def on_subnet(fact: NodeFacts, offer: Sequence[Address], net: Subnet) -> Address:
    """The node's address on the subnet, else its best of the same family."""
    family = [address for address in offer if (":" in address.ip) == (net[0] == socket.AF_INET6)]
    for address in family:
        if subnet(address.ip, address.prefix) == net:
            return address
    if family:
        return family[0]
    kind = "IPv6" if net[0] == socket.AF_INET6 else "IPv4"
    raise PlanError(
        f"find a network that node {fact.host} shares with the others",
        f"most nodes use {kind}, but it has only {', '.join(address.ip for address in offer)}",
        "give every node an address of one family, or choose one with --network",
    )


def join(ip: str, port: int) -> str:
    """`ip:port`, with IPv6 in brackets (P26)."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


@lru_cache(maxsize=2)
def endpoints(plan: Plan) -> tuple[str, ...]:
    """The endpoint of every worker, by rank."""
    return tuple(join(node.address.ip, node.ports[local]) for node, local in homes(plan))


@lru_cache(maxsize=2)
def endpoint_list(plan: Plan) -> str:
    """All endpoints, comma-joined, by rank."""
    return ",".join(endpoints(plan))


def master(plan: Plan, service: int) -> tuple[str, int]:
    """Address and port that worker 0 serves for `service` (TORCH, PADDLE, …), on its own node."""
    node = homes(plan)[0][0]
    return node.address.ip, node.spare_ports[service]


def without_proxy(env: Mapping[str, str], peers: Iterable[str]) -> dict[str, str]:
    """Variables that keep gRPC away from a proxy when it talks to peers; {} if no proxy is set.

    gRPC follows http_proxy for peers, too, unless no_grpc_proxy or no_proxy lists them (gRPC core, `http_proxy_mapper.cc`).
    """
    if not any(env.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy")):
        return {}
    listed = env.get("no_grpc_proxy", env.get("no_proxy", ""))
    return {"no_grpc_proxy": ",".join([*filter(None, [listed]), *peers])}
