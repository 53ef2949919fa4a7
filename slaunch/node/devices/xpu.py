"""XPUs: Kunlun's (XPULINK_VISIBLE_DEVICES, XPU_VISIBLE_DEVICES) and Intel's (ZE_AFFINITY_MASK; an item may be a tile, "0.1")."""

from __future__ import annotations

from slaunch.node.devices.listed import look_at
from slaunch.node.devices.pci import device_class, numa_node
from slaunch.node.devices.values import Found, View
from slaunch.node.devices.visible import first_set
from slaunch.node.files import names
from slaunch.node.values import Device

KUNLUN = ("XPULINK_VISIBLE_DEVICES", "XPU_VISIBLE_DEVICES")
INTEL = ("ZE_AFFINITY_MASK",)
INTEL_DRIVERS = ("sys/bus/pci/drivers/i915", "sys/bus/pci/drivers/xe")
COMPUTE = "0x0380"
"""PCI class of Intel's data-centre GPUs; those that drive a display are of class 0x0300 and not meant here."""


def look(view: View) -> Found:
    """XPUs of the visible list, else all that have a device file or driver."""
    if first_set(view.env, (*KUNLUN, *INTEL)):
        return look_at(view, "xpu", (*KUNLUN, *INTEL), "dev", r"xpu(\d+)")
    kunlun = look_at(view, "xpu", (), "dev", r"xpu(\d+)")
    return kunlun if kunlun.devices else Found("xpu", intel(view))


def intel(view: View) -> tuple[Device, ...]:
    """Intel's compute GPUs, by PCI address."""
    pcis = sorted(pci for driver in INTEL_DRIVERS for pci in names(view.path(driver)) if pci.count(":") == 2)
    compute = [pci for pci in pcis if device_class(view, pci).startswith(COMPUTE)]
    return tuple(Device("xpu", at, str(at), pci=pci, numa=numa_node(view, pci)) for at, pci in enumerate(compute))
