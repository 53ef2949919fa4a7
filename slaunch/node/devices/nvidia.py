"""NVIDIA GPUs and MIG instances."""

from __future__ import annotations

from slaunch.node.devices.values import Found, View
from slaunch.node.devices.visible import tokens
from slaunch.node.values import Device

VARIABLE = "CUDA_VISIBLE_DEVICES"


def look(view: View) -> Found:
    """Devices of the visible list, checked against the driver where there is one."""
    listed = tokens(view.env[VARIABLE]) if VARIABLE in view.env else None
    if listed == ():
        return Found("gpu", (), VARIABLE)
    return believed(listed or ())


def believed(listed: tuple[str, ...]) -> Found:
    """The visible list alone, on a machine whose driver does not answer."""
    devices = tuple(Device("gpu", position, label) for position, label in enumerate(listed))
    note = f"{VARIABLE} names {len(listed)} devices; no NVIDIA driver library here to check that"
    return Found("gpu", devices, VARIABLE, (note,) if listed else ())
