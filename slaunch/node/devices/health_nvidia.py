"""Health of NVIDIA's GPUs, as NVML tells it.

Faults are what its driver itself holds for unusable: a GPU that is lost or asks for a reset (the outcome of its XID errors; since
version 570 the driver tells it as "recovery action"), a row of memory that could not be replaced, a GPU that others compute on.
Doubts are errors that the hardware has contained: uncorrectable ECC errors since the driver was loaded, and rows of memory that
wait for a reset to be replaced. Sources: NVML API reference; NVIDIA, "GPU Memory Error Management" and "XID Errors".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slaunch.frozen import dataclass
from slaunch.node.devices.nvidia import mps

ACTIONS = {
    1: "a reset of the GPU",
    2: "a reboot of the node",
    3: "its peers to be drained",
    4: "a drain and a reset",
    5: "its NVLink domain to be restored",
    6: "a reset of its bus",
    7: "a reboot of the system",
}
"""NVML_GPU_RECOVERY_ACTION_…; 0 = none."""


@dataclass(frozen=True)
class Examined:
    """Faults and doubts, and devices on which others compute; these may be about to go."""

    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()


def examine(uuids: Iterable[str], held: frozenset[tuple[str, int]] = frozenset()) -> Examined:
    """Ask the driver.

    Args:
        uuids: GPUs and MIG instances.
        held: pairs of a device and a process that may compute on it, since it did so before the job began.
    """
    import pynvml  # type: ignore[import-untyped]

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Examined((f"the NVIDIA driver does not answer: {error}",))
    try:
        return together([one(pynvml, uuid, held) for uuid in uuids])
    finally:
        pynvml.nvmlShutdown()


def together(each: Iterable[Examined]) -> Examined:
    """All devices' findings as one."""
    each = tuple(each)
    return Examined(
        tuple(line for found in each for line in found.faults),
        tuple(line for found in each for line in found.doubts),
        tuple(line for found in each for line in found.busy),
    )


def one(nvml: Any, uuid: str, held: frozenset[tuple[str, int]]) -> Examined:
    """A GPU or MIG instance."""
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as error:  # "GPU is lost", "GPU requires reset", "Not Found"
        return Examined((f"{uuid}: {error}",))
    faults = tuple(f"{uuid}: {text}" for text in faults_of(nvml, handle))
    doubts = tuple(f"{uuid}: {text}" for text in doubts_of(nvml, handle))
    return Examined(faults, doubts, tuple(busy(nvml, handle, uuid, held)))


def faults_of(nvml: Any, handle: Any) -> Iterator[str]:
    """Why a GPU must not be used."""
    action = recovery_action(nvml, handle)
    if action:
        yield f"its driver asks for {ACTIONS.get(action, f'recovery action {action}')}"
    rows = ask(nvml, "nvmlDeviceGetRemappedRows", handle)
    if rows and rows[3]:  # corrected, uncorrected, is pending, has failed
        yield "a bad row of its memory could not be replaced"


def doubts_of(nvml: Any, handle: Any) -> Iterator[str]:
    """What has happened to a GPU that can be used."""
    kinds = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    count = ask(nvml, "nvmlDeviceGetTotalEccErrors", handle, *kinds)
    if count:
        yield f"{count} uncorrectable ECC errors since its driver was loaded"
    rows = ask(nvml, "nvmlDeviceGetRemappedRows", handle)
    if rows and rows[2]:
        yield "a bad row of its memory waits for a reset to be replaced"


def recovery_action(nvml: Any, handle: Any) -> int:
    """What the driver wants to be done to a GPU; 0 = nothing, or it does not tell."""
    field = getattr(nvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
    answer = ask(nvml, "nvmlDeviceGetFieldValues", handle, [field]) if field is not None else None
    if not answer or answer[0].nvmlReturn != nvml.NVML_SUCCESS:
        return 0
    return int(answer[0].value.uiVal)


def busy(nvml: Any, handle: Any, uuid: str, held: frozenset[tuple[str, int]]) -> Iterator[str]:
    """Processes that compute on a device and did not before the job."""
    for each in ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle) or ():
        if (uuid, each.pid) not in held and not mps(each.pid):
            yield f"{uuid}: process {each.pid} computes on it"


def ask(nvml: Any, name: str, *about: Any) -> Any:
    """An answer, or None where the device, the driver or NVML's own version has none."""
    question = getattr(nvml, name, None)
    if question is None:
        return None
    try:
        return question(*about)
    except (nvml.NVMLError, TypeError, ValueError):
        return None
