"""Subnets: which addresses of several machines belong together. Pure."""

from __future__ import annotations

import socket
from functools import lru_cache

from slaunch.node.values import Address

Subnet = tuple[int, int, int]
"""Address family, prefix length in bits, network number."""


def loopback(address: Address) -> bool:
    """Whether only the machine itself can use this address."""
    return address.ip.startswith("127.") or address.ip == "::1"


@lru_cache(maxsize=1 << 16)
def subnet(ip: str, prefix: int) -> Subnet:
    """The subnet that an address belongs to; a host name (prefix 0) is taken to share one with all others.

    Not by `ipaddress`, which takes ten times as long: there may be 100,000.
    """
    if prefix == 0:
        return int(socket.AF_INET), 0, 0
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    packed = socket.inet_pton(family, ip)
    return int(family), prefix, int.from_bytes(packed, "big") >> (len(packed) * 8 - prefix)
