"""Numbers for nodes that came in any order, some of which may have asked for theirs. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.errors import RendezvousError
from slaunch.frozen import dataclass


@dataclass(frozen=True)
class Wish:
    """What a node says of itself.

    Attributes:
        rank: the number that it asks for; -1 = any.
        ip: its address, numeric.
        host: its name.
        serves: whether it is the one that the others came to.
    """

    rank: int
    ip: str
    host: str
    serves: bool = False


def assign(wishes: Mapping[int, Wish], size: int) -> dict[int, int]:
    """The rank of each node.

    Those who asked for a number get it. The others get what is left: the serving node the lowest, then by address.

    Args:
        wishes: by any key.
        size: number of nodes that the user wants at most; numbers beyond are errors.

    Raises:
        RendezvousError: two ask for one number, or one asks for a number that there is not.
    """
    taken: dict[int, int] = {}
    for key, wish in wishes.items():
        if wish.rank >= size or wish.rank >= len(wishes):
            raise seat_error(f"{wish.host} asks for --node-rank {wish.rank}, but there are {len(wishes)} nodes")
        if wish.rank in taken:
            other = wishes[taken[wish.rank]].host
            raise seat_error(f"{other} and {wish.host} both ask for --node-rank {wish.rank}")
        if wish.rank >= 0:
            taken[wish.rank] = key
    rest = sorted((key for key, wish in wishes.items() if wish.rank < 0), key=lambda key: order(wishes[key]))
    free = (rank for rank in range(len(wishes)) if rank not in taken)
    return {key: rank for rank, key in taken.items()} | dict(zip(rest, free, strict=True))


def order(wish: Wish) -> tuple[bool, int, int, str]:
    """The serving node first, then by numeric address, IPv4 before IPv6."""
    return not wish.serves, *number(wish.ip), wish.host


def number(ip: str) -> tuple[int, int]:
    """An address as version and number."""
    import socket

    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    return int(family == socket.AF_INET6), int.from_bytes(socket.inet_pton(family, ip), "big")


def seat_error(seen: str) -> RendezvousError:
    """The error of numbers that do not fit together."""
    return RendezvousError("number the nodes", seen, "give each node a number of its own from 0 on, or leave --node-rank out")
