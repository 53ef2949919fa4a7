"""NVIDIA's GPUs and MIG instances, through NVML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slaunch.node.devices.meters import UNKNOWN, Identity, Sample, Use, process_name
from slaunch.node.devices.nvml import installed
from slaunch.node.devices.values import View
from slaunch.node.values import Device


def open_meter(devices: Sequence[Device], view: View) -> NvmlMeter | None:
    """The meter; None without NVML, or where the driver does not answer."""
    if not installed():
        return None
    import pynvml  # type: ignore[import-untyped]

    try:
        return NvmlMeter(pynvml)
    except pynvml.NVMLError:
        return None


class NvmlMeter:
    """Asks NVML; handles are looked up once."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles: dict[str, Any] = {}
        nvml.nvmlInit()

    def begin(self) -> None:
        """NVML is asked for each device."""

    def close(self) -> None:
        """Let go of the driver."""
        self._nvml.nvmlShutdown()

    def identity(self, device: Device) -> Identity:
        """What it is. A MIG instance has no serial number of its own."""
        nvml = self._nvml
        handle = self._handle(device)
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
        handle = self._handle(device)
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is None:
            self._handles.pop(device.uuid, None)
            return None
        rates = self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        milliwatts = self._ask(nvml.nvmlDeviceGetPowerUsage, handle)
        running = self._ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
        uses = tuple(Use(each.pid, process_name(each.pid), each.usedGpuMemory or 0) for each in running)
        return Sample(
            rates.gpu if rates else UNKNOWN,
            memory.total,
            memory.used,
            uses,
            UNKNOWN if milliwatts is None else milliwatts // 1000,
            self._celsius(handle),
        )

    def _celsius(self, handle: Any) -> int:
        """By the older function, or, where CUDA has dropped that, the newer one."""
        sensor = self._nvml.NVML_TEMPERATURE_GPU
        for name in ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"):
            celsius = self._ask(getattr(self._nvml, name, None), handle, sensor)
            if celsius is not None:
                return int(celsius)
        return UNKNOWN

    def _handle(self, device: Device) -> Any:
        if device.uuid not in self._handles:
            handle = self._ask(self._nvml.nvmlDeviceGetHandleByUUID, device.uuid)
            if handle is None:
                return None
            self._handles[device.uuid] = handle
        return self._handles[device.uuid]

    def _ask(self, question: Any, *about: Any) -> Any:
        """An answer, or None: a device may be lost, or not know."""
        if question is None or None in about:
            return None
        try:
            return question(*about)
        except self._nvml.NVMLError:
            return None
