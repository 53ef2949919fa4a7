"""Network cards for the workers' own traffic (InfiniBand, RoCE, Slingshot), and which of them are near which device.

Near is what has the longest way in common among PCI bridges; where no card shares a host bridge with the device, what is on the
same NUMA node; else all are equally far. Only active cards count, the fastest of them, and InfiniBand before Ethernet of equal
speed: others are for management and files. Source: Documentation/ABI of the kernel, sysfs-class-infiniband and sysfs-class-net.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from slaunch.frozen import dataclass, replace
from slaunch.node.files import names, read_int, read_text
from slaunch.node.values import Device, Nic

PCI_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]"
HOST_BRIDGE = r"pci[0-9a-f]{4,8}:[0-9a-f]{2}"
SLINGSHOT = r"hsn\d+"
LINKS = {"InfiniBand": "infiniband", "Ethernet": "roce"}
"""Kinds by the kernel's word for a port's link layer. Amazon's EFA has another word, and is left to its own plug-in."""
PREFIX_CHARS = len("fe80:0000:0000:0000")

Way = tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """A card, and its way: host bridge, bridges below it, the card's own PCI address."""

    nic: Nic
    way: Way


def read_nics(devices: Sequence[Device], root: str = "/") -> tuple[Nic, ...]:
    """Active cards of this machine, each with the devices that it is near; () without devices to compare with.

    Args:
        devices: those that workers use.
        root: root of the file tree; another than "/" holds a recorded machine.
    """
    if not any(device.pci for device in devices):
        return ()
    base = os.path.join(root, "sys")
    rdma = tuple(read_rdma(f"{base}/class/infiniband"))
    known = {card.way[-1] for card in rdma}
    cards = (*rdma, *(card for card in read_slingshot(f"{base}/class/net") if card.way[-1] not in known))
    if not cards:
        return ()
    ways = {device.position: way_of(f"{base}/bus/pci/devices/{device.pci}") for device in devices}
    return tuple(sorted(with_near(cards, devices, ways), key=natural))


def read_rdma(folder: str) -> Iterator[Card]:
    """Active ports of RDMA devices on the PCI bus.

    Slingshot's are known by their interfaces. A virtual function whose card is there as well is the same wire once more.
    """
    for name in names(folder):
        device = f"{folder}/{name}/device"
        way = way_of(device)
        if not way or name.startswith("cxi") or os.path.isdir(f"{device}/physfn/infiniband"):
            continue
        for port in names(f"{folder}/{name}/ports"):
            nic = read_port(f"{folder}/{name}/ports/{port}", f"{name}:{port}", read_int(f"{device}/numa_node", -1))
            if nic:
                yield Card(nic, way)


def read_port(files: str, name: str, numa: int) -> Nic | None:
    """A port that is active, on a link of a known kind."""
    kind = LINKS.get(read_text(f"{files}/link_layer"))
    if kind is None or not read_text(f"{files}/state").endswith("ACTIVE"):
        return None
    subnet = read_text(f"{files}/gids/0")[:PREFIX_CHARS] if kind == "infiniband" else ""
    return Nic(name, kind, numa, speed_mbps(read_text(f"{files}/rate")), subnet)


def read_slingshot(folder: str) -> Iterator[Card]:
    """Slingshot's interfaces that are up."""
    for name in (name for name in names(folder) if re.fullmatch(SLINGSHOT, name)):
        files = f"{folder}/{name}"
        way = way_of(f"{files}/device")
        if way and read_text(f"{files}/operstate") == "up":
            speed = max(0, read_int(f"{files}/speed", 0))
            yield Card(Nic(name, "slingshot", read_int(f"{files}/device/numa_node", -1), speed), way)


def way_of(link: str) -> Way:
    """Names from the host bridge down to a PCI device; () for what is not on the PCI bus."""
    parts = os.path.realpath(link).split("/")
    if not re.fullmatch(PCI_ADDRESS, parts[-1]):
        return ()
    return tuple(parts[next((at for at, part in enumerate(parts) if re.fullmatch(HOST_BRIDGE, part)), len(parts) - 1) :])


def speed_mbps(rate: str) -> int:
    """The kernel's "400 Gb/sec (4X NDR)" in Mbit/s; 0 for another text."""
    number = rate.partition(" ")[0]
    return int(float(number) * 1000) if number.replace(".", "", 1).isdecimal() else 0


def with_near(cards: Sequence[Card], devices: Sequence[Device], ways: Mapping[int, Way]) -> Iterator[Nic]:
    """The cards, each with the positions of those devices for which no other is nearer."""
    best = max(rank(card.nic) for card in cards)
    fast = [card for card in cards if rank(card.nic) == best]
    nearest = {device.position: names_near(device, ways[device.position], fast) for device in devices}
    for card in cards:
        near = tuple(position for position, found in nearest.items() if card.nic.name in found)
        yield replace(card.nic, near=near)


def rank(nic: Nic) -> tuple[int, bool]:
    """Greater for faster cards, and for InfiniBand among equally fast ones."""
    return nic.speed_mbps, nic.kind != "roce"


def names_near(device: Device, way: Way, cards: Sequence[Card]) -> frozenset[str]:
    """Names of the cards that are nearest to a device."""
    shared = {card.nic.name: common(way, card.way) for card in cards}
    most = max(shared.values())
    if most:
        return frozenset(name for name, length in shared.items() if length == most)
    same = frozenset(card.nic.name for card in cards if card.nic.numa == device.numa >= 0)
    return same or frozenset(shared)


def common(one: Way, other: Way) -> int:
    """Length of the way that two devices have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def natural(nic: Nic) -> tuple[tuple[int, str], ...]:
    """An order in which mlx5_10 comes after mlx5_9."""
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", nic.name))
