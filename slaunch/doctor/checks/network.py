"""Network interfaces and RDMA ports of a machine. Whether they lead anywhere is found by `reach`.

Facts: `interfaces` (by name: `state`, `speed` in Mbit/s, `mtu`), `addresses` (ip, interface, prefix, speed; best first), `rdma`
(state by port), `name` (of the host), `resolved` (its address by the resolver; "" if it has none).
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import ERROR, NOTE, WARNING, Check, Facts, Finding, Request, Trait
from slaunch.node.files import names, read_int, read_text
from slaunch.node.nics import leads_to_containers, link_speed, read_addresses

NAME = "network"
NOT_CARDS = re.compile(r"lo$|veth|tun|tap|sit|gre|ip6tnl|erspan|teql|bonding_masters|ifb|nlmon|vcan|wg")
"""Interfaces that are not for traffic between nodes, beside those of containers."""
PLAIN = re.compile(r"ACTIVE$")


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Ask the kernel, and the resolver for the own name."""
    host = os.uname().nodename
    return {
        "interfaces": interfaces("/"),
        "addresses": [[each.ip, each.interface, each.prefix, each.speed_mbps] for each in read_addresses()],
        "rdma": rdma("/"),
        "name": host,
        "resolved": resolved(host),
    }


def interfaces(root: str) -> dict[str, dict[str, Any]]:
    """Cards by name."""
    folder = os.path.join(root, "sys/class/net")
    cards = (name for name in names(folder) if not NOT_CARDS.match(name) and not leads_to_containers(name))
    return {
        name: {
            "state": read_text(f"{folder}/{name}/operstate"),
            "speed": link_speed(root, name),
            "mtu": read_int(f"{folder}/{name}/mtu", 0),
        }
        for name in cards
    }


def rdma(root: str) -> dict[str, str]:
    """State of each RDMA port, e.g. {"mlx5_0:1": "4: ACTIVE"}."""
    folder = os.path.join(root, "sys/class/infiniband")
    ports = ((card, port) for card in names(folder) for port in names(f"{folder}/{card}/ports"))
    return {f"{card}:{port}": read_text(f"{folder}/{card}/ports/{port}/state") for card, port in ports}


def resolved(host: str) -> str:
    """The address of a name; "" if it has none."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Whether others can reach this machine, as far as itself can tell."""
    return [*unreachable(facts), *silent_ports(facts), *misnamed(facts)]


def unreachable(facts: Facts) -> list[Finding]:
    """No address that others could use."""
    if any(not ip.startswith("127.") for ip, *_ in facts["addresses"]):
        return []
    has = ", ".join(f"{name} is {each['state']}" for name, each in facts["interfaces"].items()) or "there is no interface"
    means = "jobs of several nodes cannot use this one"
    return [Finding(NAME, ERROR, f"no address besides loopback: {has}", means, "see `ip addr`; tell the administrator")]


def silent_ports(facts: Facts) -> list[Finding]:
    """RDMA ports of which none is active."""
    if not facts["rdma"] or any(PLAIN.search(state) for state in facts["rdma"].values()):
        return []
    seen = ", ".join(f"{port} is {state}" for port, state in facts["rdma"].items())
    means = "there are RDMA cards, and none is connected: traffic goes over slow Ethernet, or fails"
    return [Finding(NAME, WARNING, seen, means, "see `ibstat`; tell the administrator")]


def misnamed(facts: Facts) -> list[Finding]:
    """The own name leads to loopback, or nowhere."""
    if facts["resolved"] and not facts["resolved"].startswith("127."):
        return []
    seen = f"the name {facts['name']} leads to {facts['resolved'] or 'no address'}"
    means = "programs that look up their own name tell others an address that does not lead here; slaunch gives numbers instead"
    return [Finding(NAME, NOTE, seen, means, "put the node's real address into /etc/hosts or DNS")]


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    cards = facts["interfaces"].items()
    up = [name for name, each in cards if each["state"] in ("up", "unknown")]
    active = [port for port, state in facts["rdma"].items() if PLAIN.search(state)]
    each = [
        Trait(f"the {what} of {name}", f"{card[key]}{unit}")
        for name, card in cards
        for what, key, unit in (("speed", "speed", " Mbit/s"), ("MTU", "mtu", ""))
        if name in up
    ]
    lists = {"interfaces that are up": up, "active RDMA ports": active}
    return [*(Trait(label, ", ".join(listed) or "none") for label, listed in lists.items()), *each]


CHECK = Check(
    NAME,
    look,
    judge,
    traits,
    (
        "jobs of several nodes go at the speed of the slowest, or hang where a library chooses what leads nowhere",
        "see `ip link` and `ibstat` there; leave the node out (--exclude), and tell the administrator",
    ),
    asks="the resolver of names",
)
