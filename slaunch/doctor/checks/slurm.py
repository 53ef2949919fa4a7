"""Slurm itself: its release, its controller, and the settings that decide how steps are bound, tracked and limited.

Asked once, not by every node. Facts: `client` and `controller` (versions, as texts), `fault` (why the controller did not answer),
`config` (settings by their names in slurm.conf), `nodes` (version of slurmd by node), `jobs` (ids of the user's running jobs;
null if unknown), `job` (the present one; "").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from slaunch.doctor.values import ERROR, NOTE, WARNING, Facts, Finding, Trait
from slaunch.errors import AllocationError, MissingToolError
from slaunch.frozen import dataclass
from slaunch.slurm.client import ask, field, parse_version

NAME = "slurm"
SETTINGS = (
    "AuthType",
    "LaunchParameters",
    "MpiDefault",
    "ProctrackType",
    "PropagateResourceLimits",
    "SelectType",
    "SelectTypeParameters",
    "SLURM_VERSION",
    "TaskPlugin",
)
HERE = "RUNNING,COMPLETING,SUSPENDED"
"""States of jobs that may have processes."""
LIMIT_S = 8.0

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Fault:
    """A fault of some releases: from the first one that has it to the one that has it no more, what happens, and who says so."""

    first: Version
    mended: Version
    what: str
    source: str


CHANGES = "change log slurm-{}.md, section {}"
OWN_FILES = "a user can take over files of others through a race (CVE-2023-41914)"

FAULTS = (
    Fault(
        (20, 11, 0),
        (20, 11, 3),
        "a step gets one core only, and mpirun hangs",
        "change log of 20.11, documentation of Open MPI 5",
    ),
    Fault(
        (22, 5, 0),
        (22, 5, 4),
        "steps over nodes whose names do not sort as the controller lists them (node15, node052) fail to start",
        CHANGES.format("22.05", "22.05.4"),
    ),
    Fault(
        (22, 5, 0),
        (22, 5, 6),
        "tasks dealt out over sockets (--distribution=cyclic, the default) fail at random to start",
        CHANGES.format("22.05", "22.05.6"),
    ),
    Fault((22, 5, 0), (22, 5, 9), "some valid requests for a step hang", CHANGES.format("22.05", "22.05.9")),
    Fault(
        (22, 5, 7),
        (22, 5, 9),
        "the controller does not reach an srun that runs outside of a compute node",
        CHANGES.format("22.05", "22.05.9"),
    ),
    Fault((0, 0, 0), (22, 5, 10), OWN_FILES, CHANGES.format("22.05", "22.05.10")),
    Fault((23, 2, 2), (23, 2, 3), "PMIx has wrong permissions on its shared memory", CHANGES.format("23.02", "23.02.3")),
    Fault(
        (23, 2, 2),
        (23, 2, 3),
        "sbatch sets SLURM_NTASKS from --ntasks-per-node where no --ntasks was given",
        CHANGES.format("23.02", "23.02.3"),
    ),
    Fault((23, 2, 0), (23, 2, 6), OWN_FILES, CHANGES.format("23.02", "23.02.6")),
    Fault(
        (23, 11, 0),
        (23, 11, 1),
        "slurmstepd may crash when it starts tasks with --mpi=pmi2 and route/topology",
        CHANGES.format("23.11", "23.11.1"),
    ),
    Fault(
        (23, 11, 0),
        (23, 11, 2),
        "Hydra and Intel MPI start by srun even where their bootstrap is set to ssh",
        CHANGES.format("23.11", "23.11.2"),
    ),
    Fault(
        (23, 11, 0),
        (23, 11, 4),
        "tasks with --gpus-per-task all see the same MIG device",
        CHANGES.format("23.11", "23.11.4"),
    ),
)
"""Releases with faults that matter here."""


def look(job: str, nodes: str, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """Ask Slurm's tools. A site without Slurm gives no facts.

    Args:
        job: the present job; "" outside of one.
        nodes: its nodes, as a host list.
        limit_s: seconds for each answer.
    """
    try:
        client = ask(("srun", "--version"), limit_s).strip()
    except (AllocationError, MissingToolError):
        return {}
    facts: dict[str, Any] = {"client": client, "controller": "", "fault": "", "config": {}, "nodes": {}, "jobs": None, "job": job}
    try:
        facts["config"] = read_config(ask(("scontrol", "show", "config"), limit_s))
        facts["controller"] = facts["config"].get("SLURM_VERSION", "")
        facts["jobs"] = ask(("squeue", "--noheader", "--me", f"--states={HERE}", "--format=%A"), limit_s).split()
        if nodes:
            facts["nodes"] = read_versions(ask(("scontrol", "--oneliner", "show", "node", nodes), limit_s))
    except (AllocationError, MissingToolError) as error:
        facts["fault"] = error.seen
    return facts


def read_config(text: str) -> dict[str, str]:
    """The settings that we look at, of `scontrol show config`."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs if name.strip() in SETTINGS}


def read_versions(text: str) -> dict[str, str]:
    """Version of slurmd by node, of `scontrol --oneliner show node`."""
    named = {field(line, "NodeName"): field(line, "Version") for line in text.splitlines()}
    return {name: version for name, version in named.items() if name and version}


def judge(facts: Facts) -> list[Finding]:
    """What is wrong with this Slurm."""
    if not facts:
        return []
    if facts["fault"]:
        return [silent(facts), *known(facts["client"])]
    return [*known(facts["client"], facts["controller"]), *settings(facts["config"])]


def silent(facts: Facts) -> Finding:
    """The controller does not answer."""
    return Finding(
        NAME,
        ERROR,
        f"Slurm's tools got no answer: {facts['fault']}",
        "no job can be submitted and no step be started from here",
        "see `scontrol ping`; tell the site's administrator",
    )


def known(*texts: str) -> list[Finding]:
    """Faults of these releases, each release once."""
    versions = sorted({parse_version(text) for text in texts if re.search(r"\d+\.\d+\.\d+", text)})
    found = {version: [fault for fault in FAULTS if fault.first <= version < fault.mended] for version in versions}
    return [faulty(version, faults) for version, faults in found.items() if faults]


def faulty(version: Version, faults: Sequence[Fault]) -> Finding:
    """A release with faults."""
    sources = "; ".join(dict.fromkeys(fault.source for fault in faults))
    todo = f"update Slurm to {dotted(max(fault.mended for fault in faults))} or later (sources: {sources})"
    return Finding(NAME, WARNING, f"Slurm {dotted(version)}", "; ".join(fault.what for fault in faults), todo)


def dotted(version: Version) -> str:
    """A version as Slurm writes it."""
    return f"{version[0]}.{version[1]:02}.{version[2]}"


def settings(config: Mapping[str, str]) -> list[Finding]:
    """Settings of the site that do harm, by slurm.conf(5)."""
    return [
        Finding(NAME, severity, f"{name}={config[name]} in slurm.conf", means, todo)
        for name, value, severity, means, todo in HARMFUL
        if name in config and re.search(value, config[name])
    ]


SITE = "ask the site for "
HARMFUL = (
    (
        "TaskPlugin",
        r"^(task/none|\(null\)|)$",
        WARNING,
        "steps are bound to no CPUs and have no limits: jobs that share a node disturb each other",
        SITE + "TaskPlugin=task/cgroup,task/affinity",
    ),
    (
        "ProctrackType",
        r"linuxproc|pgid",
        WARNING,
        "processes that leave their parents outlive the job, and hold memory and GPUs of the next one",
        SITE + "ProctrackType=proctrack/cgroup",
    ),
    (
        "SelectType",
        r"select/linear",
        NOTE,
        "jobs get whole nodes; requests for a number of CPUs or GPUs of a node have no effect on what they get",
        "ask for nodes; nothing else is needed",
    ),
)
"""Setting, pattern of its bad values, severity, what it means, what to do."""


def traits(version: str) -> list[Trait]:
    """What should be the same on all nodes."""
    return [Trait("slurmd", version)] if version else []


DIFFERS = ("nodes of other releases may refuse a step, or start it in another way", "tell the site's administrator")
