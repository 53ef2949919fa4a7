"""What each task shows at the meeting, as bytes. Compact: at 10,000 nodes every byte of it travels 100 million times.

Positional JSON; lists of numbers that are long and alike on all nodes are written as one text, which is parsed once for all. Only
chance costs much, as it does not compress: of the unique names of devices just enough travels to tell two of one node apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from slaunch.frozen import dataclass, replace
from slaunch.hashing import sha256
from slaunch.node.values import Address, Device, Nic, NodeFacts, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "uuid~"


@dataclass(frozen=True)
class Card:
    """A task's words at the meeting.

    Attributes:
        rank, size: its place, as its launcher told it.
        nodes: digest of the node list that its launcher told it.
        secret: the job's secret, from task 0 where the tasks had none in common before; else b"".
        facts: its machine.
    """

    rank: int
    size: int
    nodes: str
    secret: bytes
    facts: NodeFacts


def encode_card(card: Card) -> bytes:
    """A card as bytes. Version and host come first, so that another version can at least say whom it does not understand."""
    facts = card.facts
    words = [facts.versions, facts.host, card.rank, card.size, card.nodes, card.secret.hex(), encode_facts(facts)]
    return json.dumps(words, separators=(",", ":")).encode()


def read_words(data: bytes) -> list[Any]:
    """A card's words: versions, host, and what these versions mean by the rest."""
    words = json.loads(data)
    assert isinstance(words, list)
    return words


def decode_card(words: Sequence[Any]) -> Card:
    """A card from the words of one that this version has made."""
    _, _, rank, size, nodes, secret, facts = words
    return Card(rank, size, nodes, bytes.fromhex(secret), decode_facts(facts))


def encode_facts(facts: NodeFacts) -> list[Any]:
    """Facts as JSON values, in the order of the fields."""
    return [PACK.get(name, same)(getattr(facts, name)) for name in NAMES]


def decode_facts(values: Sequence[Any]) -> NodeFacts:
    """Facts from JSON values."""
    return NodeFacts(*(UNPACK.get(name, freeze)(value) for name, value in zip(NAMES, values, strict=True)))


def same(value: Any) -> Any:
    """JSON takes it as it is."""
    return value


def freeze(value: Any) -> Any:
    """JSON's lists were tuples."""
    return tuple(value) if isinstance(value, list) else value


def rows(values: Iterable[Any]) -> list[list[Any]]:
    """Dataclasses as lists of their fields."""
    return [list(value.__dict__.values()) for value in values]


def device_rows(devices: Iterable[Device]) -> list[list[Any]]:
    """Devices as lists of their fields, with a short stand-in for the unique name."""
    return rows(replace(device, uuid=stand_in(device.uuid)) for device in devices)


def stand_in(uuid: str) -> str:
    """A short text in place of a unique name: good for comparing, and nothing that a driver would take for a name."""
    if not uuid or uuid.startswith(MARK):
        return uuid
    return MARK + sha256(uuid.encode()).hexdigest()[:8]


def nics_of(values: Sequence[Sequence[Any]]) -> tuple[Nic, ...]:
    """Network cards from lists of their fields."""
    return tuple(replace(nic, near=tuple(nic.near)) for nic in rows_of(Nic)(values))


def rows_of(kind: type[Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """The inverse of `rows`."""
    return lambda values: tuple(kind(*value) for value in values)


def ranges(values: Iterable[int]) -> str:
    """Numbers as text, runs shortened: "0-3,8"; any order is kept."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


@lru_cache(maxsize=4096)
def numbers(text: str) -> tuple[int, ...]:
    """The inverse of `ranges`."""
    found: list[int] = []
    for run in text.split(",") if text else ():
        first, _, last = run.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


@lru_cache(maxsize=4096)
def groups(text: str) -> tuple[tuple[int, ...], ...]:
    """Groups of numbers, separated by semicolons."""
    return tuple(numbers(part) for part in text.split(";")) if text else ()


@lru_cache(maxsize=4096)
def numbers_json(text: str) -> tuple[int, ...]:
    """The inverse of `json.dumps` for numbers of any sign."""
    return tuple(json.loads(text))


def join(values: Iterable[Iterable[int]]) -> str:
    """The inverse of `groups`."""
    return ";".join(ranges(value) for value in values)


NAMES = NodeFacts.__match_args__
COLUMNS = ("numa", "caches", "packages", "reach_numa", "reach_caches", "reach_packages")
PACK: Mapping[str, Callable[[Any], Any]] = {
    "addresses": rows,
    "devices": device_rows,
    "problems": rows,
    "nics": rows,
    "cpus": ranges,
    "cores": join,
    "reach": join,
    "time_s": lambda time_s: round(time_s, 3),
    **dict.fromkeys(COLUMNS, json.dumps),
}
UNPACK: Mapping[str, Callable[[Any], Any]] = {
    "addresses": rows_of(Address),
    "devices": rows_of(Device),
    "problems": rows_of(Problem),
    "nics": nics_of,
    "cpus": numbers,
    "cores": groups,
    "reach": groups,
    **dict.fromkeys(COLUMNS, numbers_json),
}
