"""The kernel's own list of interfaces and addresses, asked over rtnetlink (RFC 3549, rtnetlink(7)).

One exchange tells names, states, kinds, prefixes and scopes of all interfaces in about a millisecond, without a further library.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator

from slaunch.frozen import dataclass

RTM_GETLINK = 18
RTM_GETADDR = 22
NLMSG_ERROR = 2
NLMSG_DONE = 3
REQUEST_DUMP = 0x301
IFF_UP = 0x1
IFF_LOOPBACK = 0x8
IFF_RUNNING = 0x40
IFLA_IFNAME = 3
IFLA_LINKINFO = 18
IFLA_INFO_KIND = 1
IFA_ADDRESS = 1
IFA_LOCAL = 2
IFA_FLAGS = 8
SCOPE_GLOBAL_BELOW = 253
"""Scopes from here on are link-local, host or nowhere."""
UNUSABLE = 0x08 | 0x20 | 0x40
"""Duplicate address found, deprecated, or still being tested for duplicates."""
TIMEOUT_S = 2.0


@dataclass(frozen=True)
class RawAddress:
    """An address as the kernel lists it.

    Attributes:
        ip: numeric address.
        prefix: length of its network prefix in bits.
        interface: name of its interface.
        kind: kind of a virtual interface ("bridge", "veth", "vlan" …); "" for hardware.
        wide: it is reachable from other machines as far as the kernel can tell: interface up and running, not loopback, scope
            beyond the link, not deprecated or tentative.
    """

    ip: str
    prefix: int
    interface: str
    kind: str
    wide: bool


def raw_addresses() -> tuple[RawAddress, ...]:
    """All addresses of this machine (of this network namespace)."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(TIMEOUT_S)
        links, addresses = dump(kernel, RTM_GETLINK), dump(kernel, RTM_GETADDR)
    return tuple(decode(links, addresses))


def dump(kernel: socket.socket, request: int) -> list[bytes]:
    """Ask for everything of one type; the bodies of the answers."""
    kernel.send(struct.pack("=IHHIIB3x", 20, request, REQUEST_DUMP, 1, 0, 0))
    bodies: list[bytes] = []
    while True:
        for kind, body in messages(kernel.recv(1 << 18)):
            if kind == NLMSG_DONE:
                return bodies
            if kind == NLMSG_ERROR:
                raise OSError(-struct.unpack_from("=i", body)[0], "the kernel does not list its interfaces")
            bodies.append(body)


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a datagram into messages: type and body."""
    while len(data) >= 16:
        length, kind = struct.unpack_from("=IH", data)
        yield kind, data[16:length]
        data = data[(length + 3) & ~3 :]


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message."""
    found: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


@dataclass(frozen=True)
class Link:
    """An interface."""

    name: str
    kind: str
    usable: bool


def decode(links: Iterable[bytes], addresses: Iterable[bytes]) -> Iterator[RawAddress]:
    """Addresses from the bodies of link and address messages."""
    by_index = dict(map(decode_link, links))
    for body in addresses:
        family, prefix, flags, scope, index = struct.unpack_from("=BBBBI", body)
        link = by_index.get(index)
        fields = attributes(body[8:])
        packed = fields.get(IFA_LOCAL) or fields.get(IFA_ADDRESS)
        if link is None or packed is None or family not in (socket.AF_INET, socket.AF_INET6):
            continue
        flags |= struct.unpack("=I", fields[IFA_FLAGS])[0] if IFA_FLAGS in fields else 0
        wide = link.usable and scope < SCOPE_GLOBAL_BELOW and not flags & UNUSABLE
        yield RawAddress(socket.inet_ntop(family, packed), prefix, link.name, link.kind, wide)


def decode_link(body: bytes) -> tuple[int, Link]:
    """Index and interface of a link message."""
    index, flags = struct.unpack_from("=4xiI", body)
    fields = attributes(body[16:])
    kind = attributes(fields.get(IFLA_LINKINFO, b"")).get(IFLA_INFO_KIND, b"")
    usable = flags & IFF_UP and flags & IFF_RUNNING and not flags & IFF_LOOPBACK
    return index, Link(text(fields.get(IFLA_IFNAME, b"")), text(kind), bool(usable))


def text(raw: bytes) -> str:
    """A NUL-terminated name."""
    return raw.rstrip(b"\0").decode(errors="replace")
