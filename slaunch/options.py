"""What the user asked for, as one value. Made by `cli`, handed down; no stage reads the command line itself."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.frozen import dataclass, field


@dataclass(frozen=True)
class Program:
    """What each worker runs.

    Attributes:
        target: a script path, a module name or an executable, as typed.
        args: its arguments, untouched.
        kind: "script" (by this interpreter, unbuffered, if it ends in `.py`; else executed), "module" (`-m`) or "code" (`-c`).
    """

    target: str
    args: tuple[str, ...] = ()
    kind: str = "script"


@dataclass(frozen=True)
class Options:
    """Everything that decides a launch, apart from the environment and the machine.

    Attributes:
        program: what each worker runs.
        nproc_per_node: workers on each node; 0 = one per visible device, else one.
        devices: labels of the visible list to use, in order; empty = all.
        visible: which devices a worker sees: "all" (the node's selected ones; LOCAL_RANK i means device i), "own" (only its own,
            as index 0) or "virtual" (as "own", and LOCAL_RANK says 0 too, for scripts that take it for a device index).
        contracts: names of the worker-environment contracts, e.g. ("paddle", "torch").
        mode: job mode, by name; "collective" here.
        rendezvous: "auto", "mpi", "slurm" or another registered back end.
        scheduler: name of the reader to use, or "auto" (by evidence).
        job_id: name of the job for logs and workers; empty = the scheduler's id.
        log_dir: directory of the log files, shared by all nodes or not; empty = `slaunch-logs/<job>`.
        rendezvous_timeout_s: deadline of the meeting.
        grace_s: seconds between the request to stop and SIGKILL.
        keep_env, drop_env: variable names or `PREFIX*` patterns that hygiene must leave alone, or must remove for workers.
        bind: CPU binding policy, "auto" or "none" (more with the binding policies).
        network: interface, subnet or address to use; empty = chosen by rule.
        log_overwrite: start log files anew instead of appending.
        tee: rank numbers whose output is copied to the console (rank 0 by default).
        step_args: extra arguments for the srun/mpirun that slaunch starts itself.
        origins: where each option's value came from ("command line", "SLAUNCH_…", "file …", "default"), by option name.
    """

    program: Program
    nproc_per_node: int = 0
    devices: tuple[str, ...] = ()
    visible: str = "all"
    contracts: tuple[str, ...] = ("paddle", "torch", "slaunch")
    mode: str = "collective"
    rendezvous: str = "auto"
    scheduler: str = "auto"
    job_id: str = ""
    log_dir: str = ""
    rendezvous_timeout_s: float = 60.0
    grace_s: float = 15.0
    keep_env: tuple[str, ...] = ()
    drop_env: tuple[str, ...] = ()
    bind: str = "auto"
    network: str = ""
    log_overwrite: bool = False
    tee: tuple[int, ...] = (0,)
    step_args: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
