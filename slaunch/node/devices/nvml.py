"""What the NVIDIA driver says about its GPUs, asked through NVML.

NVML numbers GPUs by PCI address and leaves out those whose device file this process may not open, as CUDA does. Source: NVML API
reference, "Device Queries" and "Multi Instance GPU Management".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from slaunch.frozen import dataclass
from slaunch.node.devices.pci import numa_node
from slaunch.node.devices.values import View

LIBRARY = "libnvidia-ml.so.1"


@dataclass(frozen=True)
class Unit:
    """A GPU, or a MIG instance of one.

    Attributes:
        index: NVML's number of the GPU.
        uuid: "GPU-…" or "MIG-…"; "" if the GPU does not answer.
        parent: UUID of the GPU that a MIG instance is part of; else "".
        instance: GPU and compute instance of a MIG instance; else (-1, -1).
        pci, numa, memory_bytes, name: as in `Device`.
        sliced: it is a GPU in MIG mode, of which programs use instances only.
        fault: why it cannot be used; "" if it can.
        held: process ids of those that compute on it, with the bytes of its memory that they hold.
    """

    index: int
    uuid: str
    parent: str = ""
    instance: tuple[int, int] = (-1, -1)
    pci: str = ""
    numa: int = -1
    memory_bytes: int = 0
    name: str = ""
    sliced: bool = False
    fault: str = ""
    held: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Driver:
    """The driver's answer: its units, each GPU followed by its MIG instances; or the reason why it gave none."""

    units: tuple[Unit, ...]
    fault: str = ""


def read_driver(view: View) -> Driver | None:
    """Ask the driver; None where its library is not installed."""
    if not installed():
        return None
    import pynvml  # type: ignore[import-untyped]  # takes 15 ms: only where there is something to ask

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Driver((), str(error))
    try:
        return Driver(tuple(all_units(pynvml, view)))
    except pynvml.NVMLError as error:
        return Driver((), str(error))
    finally:
        pynvml.nvmlShutdown()


def installed() -> bool:
    """Whether NVML can be loaded."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def all_units(nvml: ModuleType, view: View) -> Iterator[Unit]:
    """Every GPU with its MIG instances."""
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            gpu = whole(nvml, handle, index, view)
            slices = tuple(instances(nvml, handle, gpu)) if gpu.sliced else ()
        except nvml.NVMLError as error:  # lost from the bus, or not ours: the others are still good
            yield Unit(index, "", fault=str(error))
        else:
            yield gpu
            yield from slices


def whole(nvml: ModuleType, handle: Any, index: int, view: View) -> Unit:
    """A GPU."""
    pci = short_pci(nvml.nvmlDeviceGetPciInfo(handle).busId)
    return Unit(
        index,
        nvml.nvmlDeviceGetUUID(handle),
        pci=pci,
        numa=numa_node(view, pci),
        memory_bytes=nvml.nvmlDeviceGetMemoryInfo(handle).total,
        name=nvml.nvmlDeviceGetName(handle),
        sliced=in_mig_mode(nvml, handle),
        held=holders(nvml, handle),
    )


def instances(nvml: ModuleType, handle: Any, gpu: Unit) -> Iterator[Unit]:
    """The MIG instances of a GPU. Their slots have gaps, and those of other jobs may be closed to us."""
    for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
        except (nvml.NVMLError_NotFound, nvml.NVMLError_NoPermission):
            continue
        yield Unit(
            gpu.index,
            nvml.nvmlDeviceGetUUID(part),
            parent=gpu.uuid,
            instance=(nvml.nvmlDeviceGetGpuInstanceId(part), nvml.nvmlDeviceGetComputeInstanceId(part)),
            pci=gpu.pci,
            numa=gpu.numa,
            memory_bytes=nvml.nvmlDeviceGetMemoryInfo(part).total,
            name=nvml.nvmlDeviceGetName(part),
            held=holders(nvml, part),
        )


def holders(nvml: ModuleType, handle: Any) -> tuple[tuple[int, int], ...]:
    """Processes that compute on a GPU or instance, and their bytes (0: the driver does not tell); () where it does not answer."""
    try:
        return tuple((each.pid, each.usedGpuMemory or 0) for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except nvml.NVMLError:
        return ()


def in_mig_mode(nvml: ModuleType, handle: Any) -> bool:
    """Whether the GPU is cut into instances; older ones cannot be."""
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
        return False


def short_pci(bus_id: str | bytes) -> str:
    """PCI address as sysfs writes it: NVML's domain has eight digits, sysfs's four."""
    text = bus_id.decode() if isinstance(bus_id, bytes) else bus_id
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
