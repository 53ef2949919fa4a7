"""How busy devices are, how full, how hot, and with whose memory: what meters of all kinds have in common."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from slaunch.frozen import dataclass
from slaunch.node.devices.values import View
from slaunch.node.files import read_text
from slaunch.node.values import Device

UNKNOWN = -1

MAKERS = {
    "gpu": "slaunch.node.devices.meter_nvidia",
    "rocm": "slaunch.node.devices.meter_amd",
    "npu": "slaunch.node.devices.meter_tools",
    "xpu": "slaunch.node.devices.meter_tools",
}
"""Modules with a function `open_meter(devices, view)`, by kind of device."""


@dataclass(frozen=True)
class Use:
    """Memory of one process on a device."""

    pid: int
    name: str
    bytes: int


@dataclass(frozen=True)
class Sample:
    """A device at one moment. What its driver does not tell is `UNKNOWN`.

    Attributes:
        percent: how busy it is (nothing tells of a MIG instance).
        total, used: bytes of its memory.
        uses: processes that hold some of it.
        watts: its power.
        celsius: its temperature.
    """

    percent: int
    total: int
    used: int
    uses: tuple[Use, ...] = ()
    watts: int = UNKNOWN
    celsius: int = UNKNOWN


@dataclass(frozen=True)
class Identity:
    """What nvidia-smi calls uuid, driver_version, name, gpu_serial, display_active, display_mode; "" where unknown."""

    uuid: str
    driver: str = ""
    name: str = ""
    serial: str = ""
    display_active: str = ""
    display_mode: str = ""


class Meter(Protocol):
    """Reads devices of one kind. A device that does not answer gives None; the others go on."""

    def begin(self) -> None:
        """A round of samples begins."""

    def identity(self, device: Device) -> Identity:
        """What it is."""

    def sample(self, device: Device) -> Sample | None:
        """What it does now."""

    def close(self) -> None:
        """Let go of the driver."""


def open_meter(devices: Sequence[Device], view: View) -> Meter | None:
    """The meter for these devices; None where their kind has none, or its driver does not answer."""
    module = MAKERS.get(devices[0].kind) if devices else None
    if module is None:
        return None
    found: Meter | None = import_module(module).open_meter(devices, view)
    return found


def process_name(pid: int) -> str:
    """The program that a process runs, as nvidia-smi shows it; "" if it has ended or is another user's."""
    return read_text(f"/proc/{pid}/cmdline").partition("\0")[0]
