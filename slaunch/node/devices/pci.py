"""PCI devices in sysfs."""

from __future__ import annotations

from slaunch.node.devices.values import View
from slaunch.node.files import read_int, read_text


def numa_node(view: View, pci: str) -> int:
    """NUMA node of a PCI device; -1 if the firmware does not say."""
    return read_int(view.path("sys/bus/pci/devices", pci, "numa_node"), -1) if pci else -1


def device_class(view: View, pci: str) -> str:
    """PCI class, e.g. "0x038000" (a display controller that drives no display)."""
    return read_text(view.path("sys/bus/pci/devices", pci, "class"))
