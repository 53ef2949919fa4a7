"""NVIDIA GPUs and MIG instances: the visible list, checked against the driver and against what Slurm gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from slaunch.errors import DeviceError
from slaunch.node.devices.nvml import Driver, Unit, read_driver
from slaunch.node.devices.values import Found, View
from slaunch.node.devices.visible import repeated, tokens
from slaunch.node.files import problem, read_text
from slaunch.node.values import Device, Problem

VARIABLE = "CUDA_VISIBLE_DEVICES"
GIB = 1 << 30
OLD_MIG_NAME = re.compile(r"MIG-(GPU-[^/]+)/(\d+)/(\d+)")
"""Driver versions before 470 call a MIG instance by GPU, GPU instance and compute instance."""


def look(view: View) -> Found:
    """Devices of the visible list, or all that the driver shows."""
    listed = tokens(view.env[VARIABLE]) if VARIABLE in view.env else None
    if listed == ():
        return Found("gpu", (), VARIABLE)
    driver = read_driver(view)
    if driver is None:
        return believed(listed or (), view.env)
    if driver.fault:
        return Found("gpu", (), VARIABLE if listed else "", (), (silent_driver(driver.fault),))
    return of_list(listed, driver, view.env) if listed else of_driver(driver, view.env)


def believed(listed: tuple[str, ...], env: Mapping[str, str]) -> Found:
    """The visible list alone, on a machine that has no driver library."""
    devices = tuple(Device("gpu", position, label) for position, label in enumerate(listed))
    note = f"{VARIABLE} lists {len(listed)} devices, unverified: there is no NVIDIA driver library on this machine"
    return Found("gpu", devices, VARIABLE if listed else "", (note,) if listed else (), checked(listed, env))


def of_list(listed: tuple[str, ...], driver: Driver, env: Mapping[str, str]) -> Found:
    """The visible list, each item as the driver knows it."""
    matched = [(label, match(label, driver.units)) for label in listed]
    unknown = [label for label, units in matched if len(units) != 1]
    faults = [f"{label}: {units[0].fault}" for label, units in matched if len(units) == 1 and units[0].fault]
    devices = tuple(
        device(position, label, units[0]) for position, (label, units) in enumerate(matched) if len(units) == 1
    )
    problems = (
        *((unmatched(unknown, driver),) if unknown else ()),
        *((faulty(faults),) if faults else ()),
        *checked(listed, env),
    )
    held = [(label, units[0]) for label, units in matched if len(units) == 1]
    notes = (*mixed(driver, env), *sliced(devices), *in_use(held))
    return Found("gpu", devices, VARIABLE, notes, problems, holders_of(units[0] for _, units in matched if len(units) == 1))


def of_driver(driver: Driver, env: Mapping[str, str]) -> Found:
    """All that the driver shows; of GPUs in MIG mode their instances, which only their names can select."""
    usable = [unit for unit in driver.units if not unit.fault and not unit.sliced]
    devices = tuple(device(position, unit.uuid if unit.parent else str(unit.index), unit) for position, unit in enumerate(usable))
    faults = [f"GPU {unit.index}: {unit.fault}" for unit in driver.units if unit.fault]
    labels = [each.label for each in devices]
    problems = (*((faulty(faults),) if faults else ()), *checked(labels, env))
    notes = (*mixed(driver, env), *sliced(devices), *in_use(list(zip(labels, usable, strict=True))))
    return Found("gpu", devices, "", notes, problems, holders_of(usable))


def holders_of(units: Iterable[Unit]) -> tuple[tuple[str, int], ...]:
    """GPUs and the processes that compute on them."""
    return tuple((unit.uuid, pid) for unit in units for pid, _ in unit.held)


def match(label: str, units: Sequence[Unit]) -> list[Unit]:
    """Units that an item of the visible list names: by ordinal, by (abbreviated) UUID, by either name of a MIG instance."""
    if label.isdecimal():
        gpus = [unit for unit in units if not unit.parent]
        return gpus[int(label) : int(label) + 1]
    old = OLD_MIG_NAME.fullmatch(label)
    if old:
        instance = (int(old[2]), int(old[3]))
        return [unit for unit in units if unit.parent == old[1] and unit.instance == instance]
    return [unit for unit in units if label.startswith(("GPU-", "MIG-")) and unit.uuid.startswith(label)]


def device(position: int, label: str, unit: Unit) -> Device:
    """A unit at its place in the visible list."""
    return Device("gpu", position, label, unit.uuid, unit.pci, unit.numa, unit.memory_bytes, unit.name)


def mixed(driver: Driver, env: Mapping[str, str]) -> tuple[str, ...]:
    """Unequal GPUs: CUDA then numbers them by speed, and neither Slurm nor NVML does."""
    gpus = {unit.name for unit in driver.units if not unit.parent and not unit.fault}
    if len(gpus) < 2 or env.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return ()
    return (f"different GPUs ({', '.join(sorted(gpus))}): set CUDA_DEVICE_ORDER=PCI_BUS_ID to number them as Slurm does",)


def sliced(devices: Sequence[Device]) -> tuple[str, ...]:
    """Several MIG instances: CUDA shows a process no more than one, so that its index is 0 in every worker."""
    if len(devices) < 2 or not any(each.label.startswith("MIG-") for each in devices):
        return ()
    return ("each worker sees its own MIG instance, as device 0; --visible virtual is for scripts that index by LOCAL_RANK",)


def in_use(units: Sequence[tuple[str, Unit]]) -> tuple[str, ...]:
    """GPUs on which others compute already, such as what an earlier job has left; MPS's own server is meant to be there."""
    found = [f"{label} by process {pid} ({size // GIB} GiB)" for label, unit in units for pid, size in unit.held if not mps(pid)]
    return (f"GPUs are in use already: {', '.join(found)}",) if found else ()


def mps(pid: int) -> bool:
    """Whether a process is the server of MPS."""
    return read_text(f"/proc/{pid}/comm").startswith("nvidia-cuda-mps")


def checked(labels: Sequence[str], env: Mapping[str, str]) -> tuple[Problem, ...]:
    """Contradictions between the visible devices and what Slurm gave this node (counts: its numbers are the node's, not ours)."""
    twice = repeated(labels)
    if twice:
        seen = f"{VARIABLE}={env.get(VARIABLE)} names {', '.join(twice)} twice; CUDA then shows no device at all"
        return (problem(DeviceError("use the visible GPUs", seen, "name each device once")),)
    given = env.get("SLURM_GPUS_ON_NODE", "")
    if not given.isdecimal() or len(labels) <= int(given) or not given_here(env):
        return ()
    source = f"{VARIABLE}={env[VARIABLE]}" if VARIABLE in env else f"no {VARIABLE}, and the driver shows {','.join(labels)}"
    ids = env.get("SLURM_STEP_GPUS") or env.get("SLURM_JOB_GPUS", "")
    seen = f"{source}; but Slurm gave {given} on this node (SLURM_GPUS_ON_NODE){f', ids {ids}' if ids else ''}"
    todo = f"do not set {VARIABLE} yourself" + (f", or set it to {ids}" if ids else "")
    return (problem(DeviceError(f"use {len(labels)} GPUs", seen, todo)),)


def given_here(env: Mapping[str, str]) -> bool:
    """Whether the GPUs that Slurm speaks of are GPUs as the driver counts them, not shares of one."""
    return not any(name in env for name in ("SLURM_SHARDS_ON_NODE", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"))


def unmatched(unknown: Sequence[str], driver: Driver) -> Problem:
    """The list names what the driver does not show (or shows more than once)."""
    has = ", ".join(f"{unit.index}={unit.uuid}" if not unit.parent else unit.uuid for unit in driver.units) or "no GPU"
    seen = f"{VARIABLE} names {', '.join(unknown)}; the driver shows this task {has}"
    todo = f"correct {VARIABLE}; inside a job, GPUs count from 0 where the cluster hides those of others"
    return problem(DeviceError("find the GPUs of the visible list", seen, todo))


def faulty(faults: Sequence[str]) -> Problem:
    """GPUs that do not answer."""
    todo = f"leave them out with {VARIABLE}, or leave this node out and tell its administrator"
    return problem(DeviceError("use the visible GPUs", "; ".join(faults), todo))


def silent_driver(fault: str) -> Problem:
    """The driver does not answer."""
    todo = "see `nvidia-smi` on this node; to run without GPUs, set CUDA_VISIBLE_DEVICES to nothing"
    return problem(DeviceError("ask the NVIDIA driver for its GPUs", f"NVML: {fault}", todo))
