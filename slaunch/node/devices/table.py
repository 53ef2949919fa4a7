"""Finds the kind of accelerator that this task has, by evidence on the machine and in the environment."""

from __future__ import annotations

import os
from importlib import import_module

from slaunch.frozen import dataclass
from slaunch.node.devices.values import TYPE, Found, View

GROUP = "slaunch.devices"
"""Entry points of further kinds: name = module:function."""
CUSTOM = "slaunch.node.devices.custom:look"


@dataclass(frozen=True)
class Kind:
    """A kind of device and where to look for it.

    Attributes:
        name: as in `Device.kind`.
        look: "module:function" that takes a `View` and returns what is `Found`.
        variables: its visible lists.
        files: files of which one exists where its driver is loaded.
    """

    name: str
    look: str
    variables: tuple[str, ...]
    files: tuple[str, ...]

    def driven(self, view: View) -> bool:
        """Whether its driver is loaded."""
        return any(os.access(view.path(file), os.F_OK) for file in self.files)

    def listed(self, view: View) -> bool:
        """Whether somebody made a visible list for it."""
        return any(name in view.env for name in self.variables)


KINDS = (
    Kind(
        "xpu",
        "slaunch.node.devices.xpu:look",
        ("XPULINK_VISIBLE_DEVICES", "XPU_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
        ("dev/xpuctrl", "sys/bus/pci/drivers/xe", "sys/bus/pci/drivers/i915"),
    ),
    Kind(
        "gpu",
        "slaunch.node.devices.nvidia:look",
        ("CUDA_VISIBLE_DEVICES",),
        ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg"),
    ),
    Kind("rocm", "slaunch.node.devices.amd:look", ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), ("dev/kfd",)),
    Kind(
        "npu",
        "slaunch.node.devices.npu:look",
        ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"),
        ("dev/davinci_manager",),
    ),
    Kind("ipu", "slaunch.node.devices.ipu:look", (), ("dev/ipu0",)),
)


def find(view: View) -> Found:
    """This task's accelerators.

    A custom type that the environment names comes first, then the kinds whose driver is loaded, then those with a visible list:
    Slurm writes the lists of several vendors at once, and only one of them has a driver.
    """
    if view.env.get(TYPE):
        return look(entry_of(view.env[TYPE]), view)
    for kind in (*(kind for kind in KINDS if kind.driven(view)), *(kind for kind in listed_first(view))):
        found = look(kind.look, view)
        if found.devices or found.problems or found.variable:
            return found
    return Found("cpu")


def listed_first(view: View) -> tuple[Kind, ...]:
    """Kinds with a visible list; NVIDIA's first, as most schedulers and users write that one."""
    return tuple(sorted((kind for kind in KINDS if kind.listed(view)), key=lambda kind: kind.name != "gpu"))


def entry_of(name: str) -> str:
    """Where a kind named by the environment is looked for: here, among entry points, else by its visible list alone."""
    known = {kind.name: kind.look for kind in KINDS}
    if name in known:
        return known[name]
    from importlib.metadata import entry_points  # 25 ms, for unknown names only

    return next((entry.value for entry in entry_points(group=GROUP, name=name)), CUSTOM)


def look(entry: str, view: View) -> Found:
    """Import a kind's module and call it."""
    module, _, function = entry.partition(":")
    found: Found = getattr(import_module(module), function)(view)
    return found
