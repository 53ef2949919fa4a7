"""What the hub needs of the system: listening sockets, and descriptors for all its peers."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Sequence

from slaunch.errors import RendezvousError

BACKLOG = 4096
TRIES = 8
"""A port that is free at the first address may be taken at another one."""
SPARE_FILES = 512
"""Descriptors for everything but the peers: log files, pipes of workers, strangers."""


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


def listen_somewhere(ips: Sequence[str]) -> list[socket.socket]:
    """Listen at any one free port of these addresses; [] if there is none, or none of them is ours."""
    for _ in range(TRIES):
        sockets = listen(ips, 0)
        if sockets:
            return sockets
    return []


def allow_open_files(peers: int) -> None:
    """Raise this process's limit of open files, where that many peers need it.

    Raises:
        RendezvousError: the hard limit is too low.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = peers + SPARE_FILES
    if soft >= wanted or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise RendezvousError(
            f"hold connections to {peers} tasks",
            f"the hard limit of open files is {hard} on {os.uname().nodename} (ulimit -Hn)",
            f"raise it to {wanted} on that node, or use fewer, larger tasks",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def close_all(sockets: Iterable[socket.socket]) -> None:
    """Close them."""
    for sock in sockets:
        sock.close()
