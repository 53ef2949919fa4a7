"""How fast nodes can send to each other, bounded in time and bytes.

In each round every node sends to one other, over one plain TCP connection.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from slaunch.doctor.reach import CHUNK_BYTES, COUNT, Neighbour, place
from slaunch.doctor.values import WARNING, Finding
from slaunch.node.subnets import Subnet
from slaunch.rendezvous.names import some

NAME = "bandwidth"
TIME_S = 0.4
MOST_BYTES = 512 << 20
ANSWER_S = 3.0
SLOW = 4
"""A pair this many times slower than the median is named."""
ROUNDS = 4
"""Rounds for each network."""
NETS = 2
"""Networks to measure, the fastest first."""

Rate = tuple[str, str, str, float]
"""Sender, receiver, interface of the sender, bytes per second."""


def shifts(nodes: int) -> list[int]:
    """In each round every node sends to the one so many places later: all pairs of few nodes, else 1, 2, 4, … places."""
    if nodes <= ROUNDS + 1:
        return list(range(1, nodes))
    return [1 << power for power in range(ROUNDS) if 1 << power < nodes]


def shared(nodes: Sequence[Neighbour]) -> list[Subnet]:
    """The networks that all nodes are on, in the order of the first node."""
    return [net for net in nodes[0].way if all(net in each.way for each in nodes)] if nodes else []


def send(sender: str, nodes: Sequence[Neighbour], shift: int, net: int, token: bytes) -> dict[str, Any]:
    """Send to the node that comes `shift` places later, on the network of that number among the shared ones."""
    own = place(sender, nodes)
    other, where = nodes[(own + shift) % len(nodes)], shared(nodes)[net]
    card = nodes[own].way[where].interface
    try:
        rate = push((other.way[where].ip, other.port), token)
    except OSError as error:
        return {"to": other.node, "card": card, "rate": 0.0, "error": str(error.strerror or error).lower()}
    return {"to": other.node, "card": card, "rate": rate, "error": ""}


def push(target: tuple[str, int], token: bytes, time_s: float = TIME_S, most: int = MOST_BYTES) -> float:
    """Bytes per second to this address.

    Raises:
        OSError: it cannot be reached, or does not say what it got.
    """
    chunk = bytes(CHUNK_BYTES)
    with socket.create_connection(target, timeout=ANSWER_S) as sock:
        sock.sendall(token)
        begun, sent = time.monotonic(), 0
        while sent < most and time.monotonic() - begun < time_s:
            sent += sock.send(chunk)
        sock.shutdown(socket.SHUT_WR)
        answer = sock.recv(COUNT.size, socket.MSG_WAITALL)
        took_s = time.monotonic() - begun
    if len(answer) < COUNT.size:
        raise OSError("it did not say how much came")
    return float(COUNT.unpack(answer)[0]) / max(took_s, 1e-6)


def judge(rates: Sequence[Rate]) -> list[Finding]:
    """Pairs that are much slower than most, on each network."""
    cards = sorted({card for _, _, card, _ in rates})
    return [found for card in cards if (found := slow([rate for rate in rates if rate[2] == card], card))]


def slow(rates: Sequence[Rate], card: str) -> Finding | None:
    """Slow pairs on one network; a node that is in all of them is named."""
    middle = median(rate for *_, rate in rates)
    low = sorted((pair for pair in rates if 0 < pair[3] < middle / SLOW), key=lambda pair: pair[3])
    if not low:
        return None
    common = set(low[0][:2]).intersection(*(pair[:2] for pair in low))
    seen = some([f"{one} to {other} {speed(rate)}" for one, other, _, rate in low], 3)
    means = "collective operations go at the speed of the slowest pair"
    todo = "see `ethtool` and the switch's counters of errors; leave the node out (--exclude) if it stays so"
    return Finding(NAME, WARNING, f"on {card}: {seen}; most pairs {speed(middle)}", means, todo, tuple(sorted(common)))


def speed(rate: float) -> str:
    """ "1.2 GB/s"."""
    return f"{rate / 1e9:.1f} GB/s" if rate >= 1e9 else f"{rate / 1e6:.0f} MB/s"


def matrix(rates: Sequence[Rate]) -> Mapping[str, float]:
    """Slowest and fastest pair and the median on each network, for the report."""
    by_card: dict[str, list[float]] = {}
    for *_, card, rate in rates:
        by_card.setdefault(card, []).append(rate)
    return {card: median(found) for card, found in by_card.items()}
