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
        kind: "script" (by this interpreter, unbuffered, if it ends in `.py`; else executed), "module" (`-m`), "code" (`-c`),
            "python" (by this interpreter, whatever its name) or "executable" (executed, whatever its name). In a role that names
            no program "" until the command line's program takes its place.
    """

    target: str
    args: tuple[str, ...] = ()
    kind: str = "script"


@dataclass(frozen=True)
class Part:
    """A role of some of the workers, from the file that `--roles` names.

    Whose it is: the workers with these ranks; or so many on each node of a component; or, in a mode whose workers have roles of
    their own ("server", "trainer", …), those of the role with this name; else all workers that no other part has.

    Attributes:
        name: what it is called in errors, and as ROLE_NAME.
        ranks: pairs (first, last) of global ranks; () = not told by ranks.
        program: what these workers run.
        env: variables that they get beside the others, as (name, value).
        workers: number of its workers on each node; -1 = not told.
        component: number of the component of a heterogeneous job whose nodes it is on; -1 = it is on all nodes.
        kind: kind of device that its workers need: "cpu" (none) or a kind of `Device`; "" = as without roles.
        devices: number of devices of each of its workers; -1 = as without roles.
        cores: physical cores of each of its workers; 0 = an even share of those that are left.
    """

    name: str
    ranks: tuple[tuple[int, int], ...]
    program: Program
    env: tuple[tuple[str, str], ...] = ()
    workers: int = -1
    component: int = -1
    kind: str = ""
    devices: int = -1
    cores: int = 0


@dataclass(frozen=True)
class Options:
    """Everything that decides a launch, apart from the environment and the machine.

    Attributes:
        program: what each worker runs.
        nproc_per_node: workers on each node; 0 = one per visible device, else one.
        devices: labels of the visible list to use, in order; empty = all.
        workers_per_device: workers that share each device, in contiguous runs.
        devices_per_worker: devices of each worker, in contiguous groups; 0 = one, and a lone worker has all; -1 = all devices are
            shared out evenly.
        visible: which devices a worker sees: "all" (the node's selected ones; LOCAL_RANK i means device i), "own" (only its own,
            as index 0) or "virtual" (as "own", and LOCAL_RANK says 0 too, for scripts that take it for a device index).
        contracts: names of the worker-environment contracts, e.g. ("paddle", "torch").
        mode: job mode, by name: "collective", "ps", "ps_heter", "rpc", "ipu", or another registered one.
        rendezvous: "auto", "mpi", "slurm" or another registered back end.
        scheduler: name of the reader to use, or "auto" (by evidence).
        job_id: name of the job for logs and workers; empty = the scheduler's id.
        log_dir: directory of the log files, shared by all nodes or not; empty = `slaunch-logs/<job>`.
        rendezvous_timeout_s: deadline of the meeting.
        grace_s: seconds between the request to stop and SIGKILL.
        keep_env, drop_env: variable names or `PREFIX*` patterns that hygiene must leave alone, or must remove for workers.
        bind: CPU binding policy: "auto", "numa", "core", "none", "map:…" or "mask:…"; see `plan.binding`.
        bind_memory: NUMA nodes that workers' memory comes from: "auto", "preferred", "bind" or "none"; see `plan.memory`.
        device_log: whether to sample devices while workers run: "auto" (where their driver tells), "yes" or "no".
        nics: network cards that libraries are told of: "auto" (those near each worker's devices) or "none"; see `plan.nics`.
        network: interface, subnet or address to use; empty = chosen by rule.
        log_overwrite: start log files anew instead of appending.
        log_name: name of each worker's log file, with fields as in `plan.modes.logs`; empty = workerlog.<rank>.
        log_max_bytes: size after which a log file is moved away and another one begun; 0 = never.
        log_keep: how many files that were moved away are kept of each.
        log_timestamps: the time in front of each line.
        log_writer: who writes the log files: "auto" (the workers themselves, if nothing above keeps them from it) or "slaunch".
        hang_timeout_s: seconds without any output of any worker after which the job is ended; 0 = however long.
        warn_before_end_s: seconds before the end of the job's time at which workers are told to save; 0 = they are not.
        warn_signal: number of the signal that tells them then; 0 = none.
        stop_signal: number of the signal that asks workers to end when slaunch is asked to; 0 = none.
        requeue: how often the job is put back into the queue after a preemption, at its time limit and after a failure (-1 =
            however often); () = never.
        time_limit_s: seconds after which the job is ended; 0 = never.
        tee: rank numbers whose output is copied to the console (rank 0 by default); -1 = all ranks.
        tee_stream: which of their streams: "both", "out" or "err".
        tee_match: only lines in which this regular expression is found; empty = all.
        tee_limit: lines a second that the console shows where it shows several ranks, from all nodes together; 0 = all, each
            node's from its own agent.
        status_interval_s: seconds between two states of all workers that the hub writes down; 0 = none.
        metrics_file, metrics_port: where figures for Prometheus are written, or asked for on the hub's machine; "", 0 = nowhere.
        step_args: extra arguments for the srun/mpirun that slaunch starts itself.
        max_restarts: how often the workers are started anew after a failure.
        restart_delay_s: wait before the first restart, twice as long before each further one.
        restart_window_s: only restarts within so many seconds count against `max_restarts`; 0 = all.
        no_restart_codes: exit codes of a worker after which there is none.
        elastic: whether a range of nodes lets the job go on when it loses some; else it only says with how many it may begin.
        leave_out_failed: a node on which a worker failed takes no part in further attempts; they are none of the restarts.
        join: this node is to take part in the job that runs already in this allocation.
        join_policy: what happens to the workers when a node joins: "restart", "boundary" or "next".
        health_check: whether each node's health is looked at before another attempt.
        exclude_bad: file that lists nodes that have shown a fault, for later jobs; empty = none.
        max_no_progress: attempts in a row without progress after which there is none; 0 = however many.
        nnodes: least and most nodes that the user wants; (0, 0) = as many as there are.
        spares: nodes that wait, without workers, to take the place of lost ones.
        node_rank: number of this node as the user gives it; -1 = not given.
        master: where nodes meet that no scheduler started together: "host:port" or "etcd://host:port"; empty = nowhere.
        etcd_user: name that etcd knows, or "name:password" (a secret, to be shown nowhere); empty = none.
        etcd_cacert, etcd_cert, etcd_key: files for an encrypted connection to etcd; empty = not encrypted, or the system's.
        host: this node's own address for its peers; empty = chosen by rule.
        one_per: what one worker is started for where `nproc_per_node` is 0: "" (a device, or one worker for the node), "device",
            "cpu", "auto" (a device, else a CPU) or "node".
        tee_local, mute_local: local ranks whose output is copied to the console on every node beside `tee`, or is not despite it.
        log_level: "debug" (tells the whole configuration at the start), "info" or "warning" (no notes).
        python: interpreter of the workers' Python programs; empty = the one that runs slaunch.
        container: command that runs its arguments inside a container; goes in front of each worker's command.
        parts: programs by rank, where not all workers run the same; `program` is then that of the first part.
        role: name of the workers' role, for ROLE_NAME.
        start_port: first of the consecutive ports of a node's workers; 0 = free ports.
        ips: addresses of the nodes as the user lists them; one of them must be this node's. () = not listed.
        server_num, trainer_num, coordinator_num: servers, trainers and coordinators on each node (modes "ps", "ps_heter").
        heter_num: workers of each further stage on each node (mode "ps_heter").
        heter_devices: kind of device of each further stage.
        servers, trainers, coordinators: endpoints "ip:port" of all of them, where the user fixes them; else ().
        heters: endpoints of each further stage, likewise.
        gloo_port: port of the gloo rendezvous where endpoints are fixed; 0 = a free one.
        with_gloo: value of PADDLE_WITH_GLOO.
        backend: value of PADDLE_DISTRI_BACKEND; empty = by the kind of device.
        auto_cluster: value of PADDLE_AUTO_CLUSTER, where the user gives it as an option; None = by the variable.
        auto_parallel_config: absolute path of Paddle's JSON file for a tuning step before the workers start; empty = none.
        tuning: what happens with it: "first" (the step, then the workers), "only" (the step alone) or "skip" (the workers alone).
        pre_hook: command that runs once on each node before the workers of each attempt, and must succeed; () = none.
        legacy: what Paddle's older launcher (`fleet.launch`) did besides: all devices are shared out, variables that tell of
            everybody's devices, a file of endpoints, and a table of the first worker's variables.
        auto_tuner_json: configuration of the tuner, which then runs the program as often as it needs; empty = no tuner.
        stage: what to copy to every node's own disk before the workers start, each "SRC" or "SRC:DST"; see `plan.staged`.
        stage_to: directory on every node for these copies, absolute.
        stage_timeout_s: deadline of all copies together.
        notes: what the user should know about options that had no effect, one line each.
        origins: where each option's value came from ("command line", "SLAUNCH_…", "file …", "default"), by option name.
    """

    program: Program
    nproc_per_node: int = 0
    devices: tuple[str, ...] = ()
    workers_per_device: int = 1
    devices_per_worker: int = 0
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
    bind_memory: str = "auto"
    nics: str = "auto"
    device_log: str = "auto"
    network: str = ""
    log_overwrite: bool = False
    log_name: str = ""
    log_max_bytes: int = 0
    log_keep: int = 5
    log_timestamps: bool = False
    log_writer: str = "auto"
    hang_timeout_s: float = 0.0
    time_limit_s: float = 0.0
    warn_before_end_s: float = 0.0
    warn_signal: int = 12
    stop_signal: int = 15
    requeue: tuple[int, ...] = ()
    tee: tuple[int, ...] = (0,)
    tee_stream: str = "both"
    tee_match: str = ""
    tee_limit: float = 1000.0
    status_interval_s: float = 5.0
    metrics_file: str = ""
    metrics_port: int = 0
    step_args: tuple[str, ...] = ()
    max_restarts: int = 0
    restart_delay_s: float = 0.0
    restart_window_s: float = 0.0
    no_restart_codes: tuple[int, ...] = ()
    max_no_progress: int = 0
    elastic: bool = True
    leave_out_failed: bool = False
    join: bool = False
    join_policy: str = "restart"
    health_check: bool = True
    exclude_bad: str = ""
    nnodes: tuple[int, int] = (0, 0)
    spares: int = 0
    node_rank: int = -1
    master: str = ""
    etcd_user: str = ""
    etcd_cacert: str = ""
    etcd_cert: str = ""
    etcd_key: str = ""
    host: str = ""
    one_per: str = ""
    tee_local: tuple[int, ...] = ()
    mute_local: tuple[int, ...] = ()
    log_level: str = "info"
    python: str = ""
    container: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    role: str = "default"
    start_port: int = 0
    ips: tuple[str, ...] = ()
    server_num: int = 0
    trainer_num: int = 0
    coordinator_num: int = 0
    heter_num: tuple[int, ...] = ()
    heter_devices: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    trainers: tuple[str, ...] = ()
    coordinators: tuple[str, ...] = ()
    heters: tuple[tuple[str, ...], ...] = ()
    gloo_port: int = 0
    with_gloo: str = "1"
    backend: str = ""
    auto_cluster: bool | None = None
    auto_parallel_config: str = ""
    tuning: str = "first"
    pre_hook: tuple[str, ...] = ()
    legacy: bool = False
    auto_tuner_json: str = ""
    stage: tuple[str, ...] = ()
    stage_to: str = "/tmp"  # noqa: S108 - the nodes' own disk on most sites
    stage_timeout_s: float = 600.0
    notes: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
