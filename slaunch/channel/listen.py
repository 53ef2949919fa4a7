"""Listening sockets for the hub."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

BACKLOG = 4096


def listen(ips: Iterable[str], port: int) -> list[socket.socket]:
    """Listen at one port of these addresses, and at no other address.

    Addresses that this machine does not have are left out. With `port` 0 the kernel chooses, at the first address.

    Returns:
        The sockets; [] if the port is taken at any of the addresses, or none of them is ours.
    """
    sockets: list[socket.socket] = []
    for ip in dict.fromkeys(ips):
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((ip, port))
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno == errno.EADDRNOTAVAIL:
                continue
            close_all(sockets)
            return []
        sockets.append(sock)
        port = sock.getsockname()[1]
    return sockets


def close_all(sockets: Iterable[socket.socket]) -> None:
    """Close them."""
    for sock in sockets:
        sock.close()
