"""Accelerators and their driver, through NVML and its like.

Facts: `kind` ("cpu" = none), `count` (visible ones), `given` (GPUs that Slurm says it gave; 0 = it does not say), `driver`,
`names`, `memory` (bytes of each), `problems` (seen, todo), `library` (NVML is there), `loaded` (the kernel's driver is there),
`held` (memory that somebody holds: `device`, `pid`, `program`, `bytes`, `job` of that process), `used` (bytes on each; -1 =
unknown).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.owners import job_of
from slaunch.doctor.values import ERROR, WARNING, Check, Facts, Finding, Request, Trait
from slaunch.node.devices.meters import Meter, open_meter
from slaunch.node.devices.nvml import installed
from slaunch.node.devices.table import find
from slaunch.node.devices.values import View
from slaunch.node.values import Device
from slaunch.report.style import counted, size

NAME = "gpus"
UNHELD_BYTES = 2 << 30
"""What a driver may keep for itself."""
LOADED = ("/dev/nvidiactl", "/proc/driver/nvidia/version")


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Ask the driver."""
    view = View(env)
    found = find(view)
    given = env.get("SLURM_GPUS_ON_NODE", "")
    facts: dict[str, Any] = {
        "kind": found.kind if found.devices or found.problems else "cpu",
        "count": len(found.devices),
        "given": int(given) if given.isdecimal() else 0,
        "driver": "",
        "names": [device.name for device in found.devices],
        "memory": [device.memory_bytes for device in found.devices],
        "problems": [[each.seen, each.todo] for each in found.problems],
        "library": installed(),
        "loaded": any(os.path.exists(path) for path in LOADED),
        "held": [],
        "used": [],
    }
    meter = open_meter(found.devices, view)
    if meter:
        facts["driver"] = meter.identity(found.devices[0]).driver
        meter.begin()
        for device in found.devices:
            measure(meter, device, facts)
        meter.close()
    return facts


def measure(meter: Meter, device: Device, facts: dict[str, Any]) -> None:
    """Who holds memory of a device."""
    sample = meter.sample(device)
    facts["used"].append(sample.used if sample else -1)
    facts["held"] += [
        {"device": device.position, "pid": use.pid, "program": use.name, "bytes": use.bytes, "job": job_of(use.pid)}
        for use in (sample.uses if sample else ())
    ]


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """What is wrong with the accelerators of one node."""
    problems = [Finding(NAME, ERROR, seen, "workers that use these devices fail", todo) for seen, todo in facts["problems"]]
    return [*problems, *no_library(facts), *too_few(facts), *held(facts, site), *unheld(facts)]


def no_library(facts: Facts) -> list[Finding]:
    """The driver is loaded, and its library is missing."""
    if facts["library"] or not facts["loaded"]:
        return []
    means = "the kernel's driver is loaded, but nothing can ask it: CUDA programs find no GPU"
    todo = "in a container, let the runtime bind the driver in (apptainer --nv); else tell the administrator"
    return [Finding(NAME, ERROR, "libnvidia-ml.so.1 does not load", means, todo)]


def too_few(facts: Facts) -> list[Finding]:
    """Fewer than Slurm gave."""
    if facts["count"] >= facts["given"]:
        return []
    seen = f"{counted(facts['count'], 'GPU')}, and Slurm gave {facts['given']} (SLURM_GPUS_ON_NODE)"
    means = "the job has fewer workers there, or none"
    todo = "see `nvidia-smi` on that node (lost from the bus?); leave it out (--exclude), and tell the administrator"
    return [Finding(NAME, ERROR, seen, means, todo)]


def held(facts: Facts, site: Facts) -> list[Finding]:
    """Memory that processes of other jobs hold. Those of the present job may be there rightly."""
    own = site.get("job", "")
    others = [each for each in facts["held"] if not (own and each["job"] == own)]
    return [
        Finding(
            NAME,
            WARNING,
            f"device {each['device']}: process {each['pid']} ({each['program'] or 'unknown'}{of_job(each['job'])}) "
            f"holds {size(each['bytes'])} of its memory",
            "your workers share that device with it: they may run out of memory, and are slower",
            f"if it is yours, and not needed: kill {each['pid']} on that node; else tell the administrator",
        )
        for each in others
    ]


def of_job(job: str) -> str:
    """Words about a job."""
    return f", of job {job}" if job else ""


def unheld(facts: Facts) -> list[Finding]:
    """Memory that is used, and by no process that the driver names."""
    busy = {each["device"] for each in facts["held"]}
    lost = [(at, used) for at, used in enumerate(facts["used"]) if used > UNHELD_BYTES and at not in busy]
    if not lost:
        return []
    seen = ", ".join(f"device {at}: {size(used)} of memory in use" for at, used in lost) + ", by no process that is seen"
    means = "another user's process, or one in another container, or the driver has not freed the memory of an earlier job"
    return [Finding(NAME, WARNING, seen, means, "see `nvidia-smi` and `fuser -v /dev/nvidia*` there; tell the administrator")]


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    kinds = ", ".join(dict.fromkeys(facts["names"])) or "none"
    return [
        Trait("the number of GPUs", facts["count"], ERROR),
        Trait("the kind of GPU", kinds if any(facts["names"]) else facts["kind"]),
        Trait("the driver", facts["driver"] or "none"),
    ]


CHECK = Check(
    NAME,
    look,
    judge,
    traits,
    (
        "workers differ between nodes: the job is uneven, slow or cannot start",
        "leave the odd node out (--exclude), and tell the administrator",
    ),
    limit_s=15.0,
    asks="the driver of the accelerators",
)
