"""What a look for accelerators found."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.frozen import dataclass
from slaunch.node.values import Device, Problem

TYPE = "PADDLE_XCCL_BACKEND"
"""Paddle's variable for the type of its custom device."""


@dataclass(frozen=True)
class View:
    """Where to look: the environment, and the root of the file tree (another than "/" holds a recorded machine)."""

    env: Mapping[str, str]
    root: str = "/"

    def path(self, *parts: str) -> str:
        """A path below the root."""
        return "/".join((self.root.rstrip("/"), *parts))


@dataclass(frozen=True)
class Found:
    """Devices of one kind.

    Attributes:
        kind: "gpu", "rocm", … ; "cpu" if there is none.
        devices: visible ones, in the order in which frameworks count them.
        variable: the variable that made the visible list; "" if all are visible.
        notes: what the user may want to know.
        problems: contradictions that must stop the launch.
        held: devices, by unique name, with the processes that compute on them already.
    """

    kind: str
    devices: tuple[Device, ...] = ()
    variable: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    held: tuple[tuple[str, int], ...] = ()
