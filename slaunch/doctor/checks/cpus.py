"""The CPUs that a task gets, and the cgroup that limits it.

Facts: `mask` (as the kernel lists CPUs), `cpus` and `cores` in it, `reach` (cores that the kernel grants when asked), `online`,
`given` (CPUs that Slurm says the job has here; 0 = it does not say), `cgroup` ("v1", "v2", "none"), `binder`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from slaunch.doctor.values import WARNING, Check, Facts, Finding, Request, Trait
from slaunch.node.cpulist import render
from slaunch.node.cpus import binder, read_cpus

NAME = "cpus"


def look(request: Request, env: Mapping[str, str]) -> dict[str, Any]:
    """Ask the kernel."""
    cpus = read_cpus()
    given = env.get("SLURM_CPUS_ON_NODE", "")
    return {
        "mask": render(cpus.mask),
        "cpus": len(cpus.mask),
        "cores": len(cpus.cores.cpus),
        "reach": len(cpus.reach.cpus) or len(cpus.cores.cpus),
        "online": cpus.online,
        "given": int(given) if given.isdecimal() else 0,
        "cgroup": cgroup(),
        "binder": binder(env),
    }


def cgroup(root: str = "/sys/fs/cgroup") -> str:
    """Which version of control groups is mounted (cgroups(7))."""
    if os.path.exists(f"{root}/cgroup.controllers"):
        return "v2"
    return "v1" if os.path.isdir(f"{root}/cpuset") or os.path.isdir(f"{root}/memory") else "none"


def judge(facts: Facts, site: Facts) -> list[Finding]:
    """Whether there is more than one core, and as many CPUs as Slurm gave."""
    if facts["cores"] == 1 and facts["online"] > 1:
        return [one_core(facts)]
    if facts["cpus"] < min(facts["given"], facts["online"]):
        seen = f"this task may run on {facts['cpus']} CPUs ({facts['mask']}), the job has {facts['given']} on this node"
        todo = "start one task per node, with --cpu-bind=none"
        return [Finding(NAME, WARNING, seen, "the rest of the job's CPUs is idle", todo)]
    return []


def one_core(facts: Facts) -> Finding:
    """All on one core."""
    seen = f"one core (CPU {facts['mask']}) of a machine with {facts['online']} CPUs"
    means = "workers, their threads and data loaders all share that core: training is many times slower"
    return Finding(NAME, WARNING, seen, means, remedy(facts))


def remedy(facts: Facts) -> str:
    """What to do about one core."""
    if facts["given"] == 1:
        return "ask for more: --cpus-per-task, --cpus-per-gpu or --exclusive for sbatch and salloc"
    if facts["reach"] > 1:
        by = facts["binder"] or "something before slaunch"
        return f"{by} made the mask, and it can be left, as slaunch's workers do: srun --cpu-bind=none, or -c with a number"
    return "the job's control group has one core only: ask for more with --cpus-per-task; if you have, tell the administrator"


def traits(facts: Facts) -> list[Trait]:
    """What should be the same on all nodes."""
    labels = {"cpus": "the number of CPUs of the task", "online": "the number of CPUs of the machine", "cgroup": "cgroups"}
    return [Trait(label, facts[name]) for name, label in labels.items()]


CHECK = Check(
    NAME,
    look,
    judge,
    traits,
    ("all workers wait for the slowest node", "leave the odd node out (--exclude), and tell the administrator"),
)
