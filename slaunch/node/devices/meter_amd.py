"""AMD's GPUs, from sysfs: the amdgpu driver's own files, its hwmon, and KFD's account of each process's memory.

Source: the kernel's documentation of amdgpu, "GPU Power/Thermal Controls and Monitoring"; its drivers/gpu/drm/amd/amdkfd.
"""

from __future__ import annotations

from collections.abc import Sequence

from slaunch.node.devices.amd import NODES, pci_address
from slaunch.node.devices.meters import UNKNOWN, Identity, Sample, Use, process_name
from slaunch.node.devices.values import View
from slaunch.node.files import names, read_int, read_text
from slaunch.node.values import Device

PROCESSES = "sys/class/kfd/kfd/proc"


def open_meter(devices: Sequence[Device], view: View) -> SysfsMeter:
    """The meter."""
    return SysfsMeter(view)


class SysfsMeter:
    """Reads a few files for each device; processes are listed once a round."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._numbers = gpu_numbers(view)
        self._pids: tuple[int, ...] = ()

    def begin(self) -> None:
        """Which processes use any GPU."""
        self._pids = tuple(int(name) for name in names(self._view.path(PROCESSES)) if name.isdecimal())

    def close(self) -> None:
        """Nothing is held."""

    def identity(self, device: Device) -> Identity:
        """What it is."""
        driver = read_text(self._view.path("sys/module/amdgpu/version"))
        return Identity(device.uuid, driver, device.name, read_text(self._file(device, "serial_number")))

    def sample(self, device: Device) -> Sample | None:
        """What it does now."""
        total = read_int(self._file(device, "mem_info_vram_total"), UNKNOWN)
        used = read_int(self._file(device, "mem_info_vram_used"), UNKNOWN)
        if UNKNOWN in (total, used):
            return None
        busy = read_int(self._file(device, "gpu_busy_percent"), UNKNOWN)
        microwatts = self._sensor(device, "power1_average", "power1_input")
        millicelsius = self._sensor(device, "temp1_input")
        return Sample(
            busy,
            total,
            used,
            self._uses(device),
            UNKNOWN if microwatts == UNKNOWN else microwatts // 1_000_000,
            UNKNOWN if millicelsius == UNKNOWN else millicelsius // 1000,
        )

    def _uses(self, device: Device) -> tuple[Use, ...]:
        number = self._numbers.get(device.pci, "")
        held = ((pid, read_int(self._view.path(PROCESSES, str(pid), f"vram_{number}"), 0)) for pid in self._pids if number)
        return tuple(Use(pid, process_name(pid), count) for pid, count in held if count)

    def _sensor(self, device: Device, *files: str) -> int:
        """The first of these values that the device's hwmon has."""
        folder = self._file(device, "hwmon")
        values = (read_int(f"{folder}/{each}/{file}", UNKNOWN) for each in names(folder) for file in files)
        return next((value for value in values if value != UNKNOWN), UNKNOWN)

    def _file(self, device: Device, name: str) -> str:
        return self._view.path("sys/bus/pci/devices", device.pci, name)


def gpu_numbers(view: View) -> dict[str, str]:
    """KFD's number of each GPU by PCI address."""
    found: dict[str, str] = {}
    for node in names(view.path(NODES)):
        text = read_text(view.path(NODES, node, "properties"))
        fields = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
        number = read_text(view.path(NODES, node, "gpu_id"))
        if number not in ("", "0"):
            found[pci_address(int(fields.get("domain", 0)), int(fields.get("location_id", 0)))] = number
    return found
