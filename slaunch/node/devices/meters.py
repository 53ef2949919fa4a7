"""How busy devices are, how full, and with whose memory: NVIDIA's through NVML, AMD's from sysfs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from slaunch.frozen import dataclass
from slaunch.node.devices.nvml import installed
from slaunch.node.devices.values import View
from slaunch.node.files import read_int, read_text
from slaunch.node.values import Device

UNKNOWN = -1


@dataclass(frozen=True)
class Use:
    """Memory of one process on a device."""

    pid: int
    name: str
    bytes: int


@dataclass(frozen=True)
class Sample:
    """A device at one moment.

    Attributes:
        percent: how busy it is; `UNKNOWN` where the driver does not say (MIG).
        total, used: bytes of its memory.
        uses: processes that hold some of it.
    """

    percent: int
    total: int
    used: int
    uses: tuple[Use, ...] = ()


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

    def identity(self, device: Device) -> Identity:
        """What it is."""

    def sample(self, device: Device) -> Sample | None:
        """What it does now."""

    def close(self) -> None:
        """Let go of the driver."""


def open_meter(devices: Sequence[Device], view: View) -> Meter | None:
    """The meter for these devices; None where their kind has none, or its driver does not answer."""
    if devices and devices[0].kind == "rocm":
        return SysfsMeter(view)
    if not devices or devices[0].kind != "gpu" or not installed():
        return None
    import pynvml  # type: ignore[import-untyped]

    try:
        return NvmlMeter(pynvml)
    except pynvml.NVMLError:
        return None


class NvmlMeter:
    """NVIDIA's GPUs and MIG instances."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        nvml.nvmlInit()

    def close(self) -> None:
        """Let go of the driver."""
        self._nvml.nvmlShutdown()

    def identity(self, device: Device) -> Identity:
        """What it is. A MIG instance has no serial number of its own."""
        nvml = self._nvml
        handle = self._ask(nvml.nvmlDeviceGetHandleByUUID, device.uuid)
        return Identity(
            device.uuid,
            str(self._ask(nvml.nvmlSystemGetDriverVersion) or ""),
            device.name,
            str(self._ask(nvml.nvmlDeviceGetSerial, handle) or ""),
            ("Disabled", "Enabled")[self._ask(nvml.nvmlDeviceGetDisplayActive, handle) or 0],
            ("Disabled", "Enabled")[self._ask(nvml.nvmlDeviceGetDisplayMode, handle) or 0],
        )

    def sample(self, device: Device) -> Sample | None:
        """What it does now."""
        nvml = self._nvml
        handle = self._ask(nvml.nvmlDeviceGetHandleByUUID, device.uuid)
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is None:
            return None
        rates = self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        running = self._ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
        uses = (Use(each.pid, process_name(each.pid), each.usedGpuMemory or 0) for each in running)
        return Sample(rates.gpu if rates else UNKNOWN, memory.total, memory.used, tuple(uses))

    def _ask(self, question: Any, *about: Any) -> Any:
        """An answer, or None: a device may be lost, or not know."""
        if None in about:
            return None
        try:
            return question(*about)
        except self._nvml.NVMLError:
            return None


class SysfsMeter:
    """AMD's GPUs; their driver does not tell of processes there."""

    def __init__(self, view: View) -> None:
        self._view = view

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
        busy = read_int(self._file(device, "gpu_busy_percent"), UNKNOWN)
        return None if UNKNOWN in (total, used) else Sample(busy, total, used)

    def _file(self, device: Device, name: str) -> str:
        return self._view.path("sys/bus/pci/devices", device.pci, name)


def process_name(pid: int) -> str:
    """The program that a process runs, as nvidia-smi shows it; "" if it has ended or is another user's."""
    return read_text(f"/proc/{pid}/cmdline").partition("\0")[0]
