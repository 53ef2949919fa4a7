"""Machines with network cards: those in tests/data/machines/fabrics.json, and their sysfs as files and links."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from slaunch.node.values import Device
from support.machines import DATA

Raw = Mapping[str, object]


def load() -> dict[str, Raw]:
    with open(f"{DATA}/machines/fabrics.json") as file:
        raw: dict[str, Raw] = json.load(file)
    return {name: fields for name, fields in raw.items() if name != "about"}


def devices(machine: Raw) -> tuple[Device, ...]:
    """Its devices, as their driver and sysfs tell of them."""
    rows = enumerate(machine["devices"])  # type: ignore[call-overload]
    return tuple(Device("gpu", at, str(at), pci=row["way"].rpartition("/")[2], numa=row["numa"]) for at, row in rows)


def write_sysfs(machine: Raw, root: str) -> None:
    """The machine's PCI devices, RDMA devices and Slingshot interfaces below `root`, as a kernel shows them."""
    for row in machine["devices"]:  # type: ignore[attr-defined]
        pci_device(root, row)
    for row in machine["cards"]:  # type: ignore[attr-defined]
        (slingshot if row["kind"] == "slingshot" else rdma)(root, row, pci_device(root, row))


def pci_device(root: str, row: Mapping[str, object]) -> str:
    path = f"{root}/sys/devices/{row['way']}"
    write(f"{path}/numa_node", row["numa"])
    link(f"{root}/sys/bus/pci/devices/{os.path.basename(path)}", path)
    return path


def rdma(root: str, row: Mapping[str, object], pci: str) -> None:
    own = f"{pci}/infiniband/{row['name']}"
    rate = f"{int(str(row['speed'])) // 1000} Gb/sec (4X)"
    layer = {"infiniband": "InfiniBand", "roce": "Ethernet"}.get(str(row["kind"]), row["kind"])
    subnet = row.get("subnet", "fe80:0000:0000:0000")
    for name, text in (
        ("state", row.get("state", "4: ACTIVE")),
        ("link_layer", layer),
        ("rate", rate),
        ("gids/0", f"{subnet}:b83f:d203:00a1:4260"),
    ):
        write(f"{own}/ports/1/{name}", text)
    link(f"{own}/device", pci)
    link(f"{root}/sys/class/infiniband/{row['name']}", own)


def slingshot(root: str, row: Mapping[str, object], pci: str) -> None:
    own = f"{pci}/net/{row['name']}"
    write(f"{own}/operstate", row.get("state", "up"))
    write(f"{own}/speed", row["speed"])
    link(f"{own}/device", pci)
    link(f"{root}/sys/class/net/{row['name']}", own)


def write(path: str, value: object) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(f"{value}\n")


def link(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.lexists(path):
        os.symlink(os.path.relpath(target, os.path.dirname(path)), path)
