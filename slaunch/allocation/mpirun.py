"""The mpirun command by which slaunch starts its agents where there is no Slurm. Pure: nothing is run here.

One agent runs on each host, unbound: the agent binds its workers itself. The agents never call MPI themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from slaunch.allocation.values import Allocation, Shell, StepCall
from slaunch.errors import AllocationError
from slaunch.frozen import dataclass, replace

FLAVOURS = (
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\)")),
    ("intelmpi", re.compile(r"Intel\(R\) MPI Library")),
    ("hydra", re.compile(r"HYDRA build details")),
    ("pals", re.compile(r"\Ampiexec version [0-9]")),
)
"""What `--version` of each launcher prints."""

HOST_BOUND = frozenset(["HOST", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "DISPLAY", "TMPDIR"])
"""Variables that are true on this host only."""

NOT_OURS = ("SSH_", "XDG_", "DBUS_", "OMPI_", "PMIX_", "PRTE_", "PMI_", "PBS_NODENUM", "PBS_TASKNUM", "PBS_MOMPORT")
"""Starts of variables of this login or of a launcher around, which the agents must not inherit."""


def flavour(version: str, program: str) -> str:
    """Return which MPI launcher a program is, from what its `--version` printed.

    Raises:
        AllocationError: it is none that slaunch knows.
    """
    for name, pattern in FLAVOURS:
        if pattern.search(version):
            return name
    first = version.strip().splitlines()[:1]
    raise AllocationError(
        "start slaunch on the other hosts",
        f"`{program} --version` printed {first[0] if first else 'nothing'!r}",
        "start it yourself, one process per host: mpirun … slaunch …",
    )


INTEL_SETTINGS = {"I_MPI_PIN": "off", "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"}
"""No binding, and one process per host whatever the job's own placement says (Intel MPI developer reference)."""


@dataclass(frozen=True)
class Launcher:
    """The site's MPI launcher.

    Attributes:
        program: as it is found on PATH.
        kind: its flavour.
        root: whether it would run as root, which Open MPI refuses.
    """

    program: str
    kind: str
    root: bool = False


def mpirun_call(
    launcher: Launcher, shell: Shell, env: Mapping[str, str], inner: Sequence[str], extra: Sequence[str] = ()
) -> StepCall:
    """Return the command that runs `inner` as one process on each host, and its environment.

    Args:
        launcher: what to start it with.
        shell: where we are; its allocation names the hosts.
        env: this process's environment.
        inner: the command of each process.
        extra: further arguments of the launcher; they come last, so they win.

    Raises:
        AllocationError: root with Open MPI, and nothing that permits it.
    """
    if launcher.kind == "openmpi" and launcher.root:
        check_root(env, extra)
    allocation = replace(shell.allocation, nodes=shell.allocation.nodes[: shell.shape.nodes])
    argv = (launcher.program, *_OPTIONS[launcher.kind](allocation, env), *extra, *inner)
    settings = INTEL_SETTINGS if launcher.kind == "intelmpi" else {}
    return StepCall(argv, {**env, **settings})


def check_root(env: Mapping[str, str], extra: Sequence[str]) -> None:
    """Refuse to start Open MPI as root without the user's explicit consent, which slaunch does not give for him."""
    consent = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    if "--allow-run-as-root" not in extra and not all(env.get(name) == "1" for name in consent):
        raise AllocationError(
            "start slaunch on the other hosts",
            "Open MPI's mpirun refuses to run as root (uid 0)",
            f"use an ordinary user; in a container --step-args=--allow-run-as-root, or set {consent[0]} and {consent[1]} to 1",
        )


def exported(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that Open MPI has to be told to hand on: all that make sense on another host."""
    return tuple(name for name in sorted(env) if name.isidentifier() and name not in HOST_BOUND and not name.startswith(NOT_OURS))


def _openmpi(allocation: Allocation, env: Mapping[str, str]) -> tuple[str, ...]:
    """`mpirun(1)`; it hands on no variables but those named."""
    exports = tuple(word for name in exported(env) for word in ("-x", name))
    slots = ",".join(f"{host}:1" for host in allocation.nodes)
    return ("--host", slots, "-np", str(len(allocation.nodes)), "--map-by", "ppr:1:node", "--bind-to", "none", *exports)


def _hydra(allocation: Allocation, env: Mapping[str, str]) -> tuple[str, ...]:
    """`mpiexec(1)` of MPICH; it hands on all variables."""
    return ("-hosts", ",".join(allocation.nodes), "-n", str(len(allocation.nodes)), "-ppn", "1", "-bind-to", "none")


def _intelmpi(allocation: Allocation, env: Mapping[str, str]) -> tuple[str, ...]:
    """Intel's mpiexec.hydra. In a job it finds hosts and start-up itself; named hosts would make it use ssh."""
    hosts = ("-hosts", ",".join(allocation.nodes)) if allocation.launcher == "hostfile" else ()
    return (*hosts, "-n", str(len(allocation.nodes)), "-ppn", "1")


def _pals(allocation: Allocation, env: Mapping[str, str]) -> tuple[str, ...]:
    """Cray PALS' mpiexec (ALCF user guides)."""
    return (
        "--envall",
        "--hosts",
        ",".join(allocation.nodes),
        "-n",
        str(len(allocation.nodes)),
        "--ppn",
        "1",
        "--cpu-bind",
        "none",
    )


def _jsrun(allocation: Allocation, env: Mapping[str, str]) -> tuple[str, ...]:
    """IBM's jsrun: one resource set per host with all its CPUs and GPUs (OLCF and LLNL user guides)."""
    resources = ("--cpu_per_rs", "ALL_CPUS", "--gpu_per_rs", "ALL_GPUS")
    return ("--nrs", str(len(allocation.nodes)), "--rs_per_host", "1", "--tasks_per_rs", "1", *resources, "--bind", "none")


_OPTIONS: Mapping[str, Callable[[Allocation, Mapping[str, str]], tuple[str, ...]]] = {
    "openmpi": _openmpi,
    "hydra": _hydra,
    "intelmpi": _intelmpi,
    "pals": _pals,
    "jsrun": _jsrun,
}
