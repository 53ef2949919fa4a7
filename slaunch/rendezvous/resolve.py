"""From a node's name to its addresses. Only for the first contact: afterwards all addresses are numeric."""

from __future__ import annotations

import _thread
import socket

LIMIT_S = 2.0
"""A resolver that takes longer counts as not answering."""


def resolve(name: str) -> tuple[str, ...]:
    """Addresses of a node by which another node may reach it, without loopback ones; () if nobody knows any.

    The system's resolver is asked first, for a limited time; then Slurm, which knows its nodes without DNS.
    """
    return look_up(name) or by_slurm(name)


def look_up(name: str, limit_s: float = LIMIT_S) -> tuple[str, ...]:
    """What the system's resolver says in time, without loopback and link-local addresses."""
    return tuple(ip for ip in resolve_any(name, limit_s) if usable(ip))


def resolve_any(name: str, limit_s: float = LIMIT_S) -> tuple[str, ...]:
    """All that the system's resolver says in time; a numeric address is itself."""
    found: list[str] = []
    done = _thread.allocate_lock()
    done.acquire()

    def ask() -> None:
        try:
            wanted = name.encode() if name.isascii() else name  # as text, Python would load its tables of all of Unicode
            answers = socket.getaddrinfo(wanted, None, type=socket.SOCK_STREAM)
            found.extend(str(answer[4][0]) for answer in answers)
        except OSError:
            pass
        done.release()

    _thread.start_new_thread(ask, ())  # the resolver itself knows no limit
    done.acquire(timeout=limit_s)
    return tuple(dict.fromkeys(found))


def by_slurm(name: str) -> tuple[str, ...]:
    """The node's address in Slurm's configuration (NodeAddr), resolved if it is a name."""
    from slaunch.slurm.client import node_address

    address = node_address(name)
    if not address or address == name:
        return ()
    return (address,) if is_numeric(address) and usable(address) else look_up(address)


def usable(ip: str) -> bool:
    """Neither loopback nor link-local nor "any"."""
    return not ip.startswith(("127.", "169.254.", "fe80:", "0.")) and ip not in ("::1", "::") and "%" not in ip


def is_numeric(text: str) -> bool:
    """Whether it is an IPv4 or IPv6 address."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, text)
        except OSError:
            continue
        return True
    return False
