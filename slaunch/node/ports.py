"""TCP ports for the workers, held until just before they start, so that nobody else gets them in between."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping, Sequence

from slaunch.errors import PlanError, UsageError
from slaunch.frozen import dataclass
from slaunch.node.files import read_text

LOWEST = 15000
"""Below lie the registered ports of well-known services."""
HIGHEST = 65535
EPHEMERAL = "/proc/sys/net/ipv4/ip_local_port_range"


@dataclass(frozen=True)
class Reserved:
    """Ports on all addresses of this machine, held by bound sockets (which do not listen and are not inherited)."""

    ports: tuple[int, ...]
    sockets: tuple[socket.socket, ...]

    def release(self) -> None:
        """Let go of the ports; call it just before the workers start. Calling it again does nothing."""
        for each in self.sockets:
            each.close()

    def __enter__(self) -> Reserved:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def reserve(count: int, env: Mapping[str, str], ephemeral: str = EPHEMERAL, fixed: Sequence[int] = ()) -> Reserved:
    """Hold `count` TCP ports: the `fixed` ones, then free ones.

    They lie outside the range from which the kernel takes the ports of outgoing connections (unless `PORT_RANGE=low:high` says
    otherwise), so that none of those takes one between the release and the worker's own bind. The search starts at a random
    place: launches on one machine do not follow each other.

    Raises:
        UsageError: PORT_RANGE is not `low:high`.
        PlanError: the range has not so many free ports, or a fixed one is taken.
    """
    low, high = port_range(env, ephemeral)
    span = high - low + 1
    start = int.from_bytes(os.urandom(4), "little") % span
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    held = hold_fixed(family, fixed)
    for step in range(span):
        if len(held) == count:
            break
        bound = try_bind(family, low + (start + step) % span)
        held += [bound] if bound else []
    reserved = Reserved(tuple(each.getsockname()[1] for each in held), tuple(held))
    if len(held) < count:
        reserved.release()
        raise PlanError(
            f"reserve {count} TCP ports",
            f"only {len(held)} of the ports {low} to {high} are free",
            "set PORT_RANGE=low:high to a wider range",
        )
    return reserved


def hold_fixed(family: socket.AddressFamily, ports: Sequence[int]) -> list[socket.socket]:
    """Hold exactly these ports.

    Raises:
        PlanError: one of them is taken.
    """
    bound = [try_bind(family, port) for port in ports]
    held = [each for each in bound if each]
    taken = [port for port, each in zip(ports, bound, strict=True) if not each]
    if taken:
        Reserved((), tuple(held)).release()
        raise PlanError(
            f"reserve the TCP ports {', '.join(map(str, ports))} that were asked for",
            f"{', '.join(map(str, taken))} in use on {os.uname().nodename}",
            "end what uses them, or choose others (--start_port, --servers, --trainers, FLAGS_FIXED_PORT)",
        )
    return held


def try_bind(family: socket.AddressFamily, port: int) -> socket.socket | None:
    """A socket bound to `port` on every address of the machine; None if anyone has it on any address."""
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(("", port))
    except OSError as error:
        bound.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return None
        raise
    return bound


def port_range(env: Mapping[str, str], ephemeral: str = EPHEMERAL) -> tuple[int, int]:
    """First and last port to take: PORT_RANGE, or the larger part outside the range of outgoing connections."""
    if "PORT_RANGE" in env:
        return asked_range(env["PORT_RANGE"])
    low, high = (int(word) for word in (read_text(ephemeral) or "32768 60999").split())
    below, above = (LOWEST, low - 1), (high + 1, HIGHEST)
    widest = max(below, above, key=lambda part: part[1] - part[0])
    return widest if widest[1] - widest[0] >= 1000 else (LOWEST, HIGHEST)


def asked_range(text: str) -> tuple[int, int]:
    """The user's range."""
    low, _, high = text.partition(":")
    if low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high) <= HIGHEST:
        return int(low), int(high)
    raise UsageError("read the range of ports", f"PORT_RANGE={text!r}", "give low:high, e.g. PORT_RANGE=35100:64000")
