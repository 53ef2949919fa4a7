"""Which network addresses other machines can use to reach this one, best first."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

from slaunch.errors import UsageError
from slaunch.node.files import read_int
from slaunch.node.netlink import RawAddress, raw_addresses
from slaunch.node.values import Address

CONTAINERS = (
    *("docker", "podman", "virbr", "lxcbr", "lxdbr", "cni", "flannel", "cali", "cilium", "weave", "kube-", "nodelocaldns"),
    *("dummy", "ovs-system"),
)
"""How names of interfaces begin that lead to containers and virtual machines on this machine and nowhere else."""

LOOPBACK = Address("127.0.0.1", "lo", 8)


def read_addresses(network: str = "", root: str = "/") -> tuple[Address, ...]:
    """Usable addresses of this machine, best first; `LOOPBACK` alone on a machine that has no other.

    Args:
        network: interface, subnet ("10.1.0.0/16") or address to use; empty = all.
        root: where `sys` is found.

    Raises:
        UsageError: this machine has nothing that matches `network`.
    """
    return choose(raw_addresses(), network, lambda interface: link_speed(root, interface))


def choose(raw: Iterable[RawAddress], network: str, speed_of: Callable[[str], int]) -> tuple[Address, ...]:
    """Order by link speed (fastest first), then interface, IPv4 before IPv6; see `read_addresses`."""
    wide = [address for address in raw if address.wide]
    if network:
        chosen = [address for address in wide if matches(address, network)]
        if not chosen:
            raise no_match(network, wide)
    else:
        chosen = [address for address in wide if not leads_to_containers(address.interface)]
    found = (Address(each.ip, each.interface, each.prefix, speed_of(each.interface)) for each in chosen)
    return tuple(sorted(found, key=lambda each: (-each.speed_mbps, each.interface, ":" in each.ip))) or (LOOPBACK,)


def leads_to_containers(interface: str) -> bool:
    """Whether an interface leads to containers here and nowhere else; `br-` and 12 digits are a network of Docker's."""
    return interface.startswith(CONTAINERS) or bool(interface.startswith("br-") and re.fullmatch("[0-9a-f]{12}", interface[3:]))


def read_listed(ips: Sequence[str]) -> tuple[Address, ...]:
    """The address of this machine that a list of nodes names.

    Raises:
        UsageError: it names none (W12: Paddle's launcher takes such a node for the first one).
    """
    own = {each.ip: each for each in raw_addresses()}
    if any(ip.startswith("127.") or ip == "localhost" for ip in ips) and len(ips) == 1:
        return (LOOPBACK,)
    found = next((own[ip] for ip in map(number_of, ips) if ip in own), None)
    if found is None:
        has = ", ".join(ip for ip in own) or "no address"
        todo = "put this node's address into --ips, or leave --ips out"
        raise UsageError("find this node among --ips", f"--ips {','.join(ips)}, but this node has {has}", todo)
    return (Address(found.ip, found.interface, found.prefix, link_speed("/", found.interface)),)


def number_of(host: str) -> str:
    """The IP address of a name or number; the text itself if it has none."""
    if host.replace(".", "").isdecimal() or ":" in host:
        return host
    import socket

    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return host


def matches(address: RawAddress, network: str) -> bool:
    """Whether the user's `network` names this address's interface, subnet or itself."""
    if network == address.interface:
        return True
    if "/" not in network and ":" not in network and "." not in network:
        return False
    import ipaddress  # only for users who name an address: it takes 3 ms to load

    try:
        return ipaddress.ip_address(address.ip) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def no_match(network: str, wide: Iterable[RawAddress]) -> UsageError:
    """The error of a machine that is not on the user's network."""
    has = ", ".join(f"{each.interface} {each.ip}/{each.prefix}" for each in wide) or "no address besides loopback"
    return UsageError(
        f"use the network --network={network}",
        f"this node has {has}",
        "name an interface, subnet or address of every node, or leave --network out",
    )


def link_speed(root: str, interface: str) -> int:
    """Link speed in Mbit/s; 0 if the driver does not say (a negative number means "unknown" there)."""
    return max(0, read_int(os.path.join(root, "sys/class/net", interface, "speed"), 0))
