"""Finds the kind of accelerator that this task has, by evidence on the machine and in the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module

from slaunch.node.devices.values import Found, View


@dataclass(frozen=True)
class Kind:
    """A kind of device and where to look for it.

    Attributes:
        name: as in `Device.kind`.
        look: "module:function" that takes a `View` and returns what is `Found`.
        variables: its visible lists.
        files: a driver file of which one exists where the driver is loaded.
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
        "gpu",
        "slaunch.node.devices.nvidia:look",
        ("CUDA_VISIBLE_DEVICES",),
        ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg"),
    ),
)


def find(view: View) -> Found:
    """The devices of the first kind whose driver is loaded, else of the first with a visible list; else none."""
    for kind in (*filter(lambda kind: kind.driven(view), KINDS), *filter(lambda kind: kind.listed(view), KINDS)):
        found = look(kind.look, view)
        if found.devices or found.problems or found.variable:
            return found
    return Found("cpu")


def look(entry: str, view: View) -> Found:
    """Import a kind's module and call it."""
    module, _, function = entry.partition(":")
    found: Found = getattr(import_module(module), function)(view)
    return found
