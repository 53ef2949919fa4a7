"""The options of `slaunch.launch`, for type checkers. Made by `python tests/tools/api_options.py`, not by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class LaunchOptions(TypedDict, total=False):
    """Options by their long names; None = not given. What they mean is told by `slaunch --help`."""

    # workers on each node (default: one per visible device, else 1)
    nproc_per_node: int | None
    # devices to use, by their names in the visible list (default: all)
    devices: str | Sequence[str] | None
    gpus: str | Sequence[str] | None
    npus: str | Sequence[str] | None
    xpus: str | Sequence[str] | None
    # workers that share each device (default: 1)
    workers_per_device: int | None
    # devices of each worker, in contiguous groups; all: shared out evenly (default: 1, and a lone worker has all)
    devices_per_worker: int | Literal["all"] | None
    # devices that a worker sees: all of the node's (default), own, virtual (own, and LOCAL_RANK 0)
    visible: Literal["all", "own", "virtual"] | None
    # kind of job: collective, ps, ps-heter, rpc or ipu (default: collective)
    mode: str | None
    run_mode: str | None
    # variables that workers get (default: paddle,torch,slaunch)
    contract: str | Sequence[str] | None
    # number of nodes (default: all of the allocation); must agree with the scheduler. With MIN:MAX the job goes on when
    # it loses nodes, as long as MIN are left
    nnodes: int | str | None
    # nodes that wait, without workers, and take the places of lost ones; beyond --nnodes, or else of all (default: 0)
    spares: int | None
    # this node's number, where nodes are started by hand
    node_rank: int | None
    rank: int | None
    # where nodes that are started by hand meet: host:port or etcd://host:port
    master: str | None
    # user of that etcd, NAME or NAME:PASSWORD; the password better in ETCDCTL_PASSWORD
    etcd_user: str | None
    # authorities that sign that etcd's certificate
    etcd_cacert: str | None
    # this node's certificate for that etcd
    etcd_cert: str | None
    # the certificate's key
    etcd_key: str | None
    # this node's address for its peers (default: chosen by rule)
    host: str | None
    # how the nodes meet: auto, mpi, slurm, tcp or etcd (default: auto)
    rendezvous: str | None
    # deadline of the meeting (default: 60)
    rendezvous_timeout: float | None
    # whose variables to read (default: auto, the innermost launcher)
    scheduler: str | None
    # name of the job in logs and workers (default: the scheduler's id)
    job_id: str | None
    # directory of the logs (default: slaunch-logs/JOB)
    log_dir: str | None
    # start log files anew instead of appending (default: false)
    log_overwrite: bool | None
    # names of the log files, with {rank} {local_rank} {node} {host} {attempt} {role} {number} {job}; with {stream} (out,
    # err) output and errors go to files of their own (default: workerlog.{rank})
    log_name: str | None
    # move a log file away to NAME.1, NAME.2, … when it has this size, e.g. 100M (default: never)
    log_max_size: int | str | None
    # how many of these are kept of each file (default: 5)
    log_keep: int | None
    # the time in front of each line (default: false)
    log_timestamps: bool | None
    # auto: workers write their files themselves where they can (default); slaunch: a process beside them does it, so that
    # no worker waits for a disk that hangs, or ends because it is full
    log_writer: Literal["auto", "slaunch"] | None
    # what slaunch tells: debug (all settings), info (default), warning (no notes)
    log_level: Literal["debug", "info", "warning"] | None
    # sample use, memory, power and heat of devices into files beside the logs (default: auto, where their driver tells)
    device_log: bool | Literal["auto"] | None
    # ranks whose output is also shown on the console, none or all (default: 0)
    tee: int | Sequence[int] | Literal["none", "all"] | None
    # which of their streams: both (default), out or err; these go to files of their own then (workerlog.N,
    # workerlog.N.err)
    tee_stream: Literal["both", "out", "err"] | None
    # only lines in which this regular expression is found (default: all)
    tee_match: str | None
    # lines a second that the console shows of several ranks, those of all nodes through the first one (default: 1000);
    # none: all, each node's on its own standard output
    tee_limit: float | Literal["none"] | None
    # how often the state of all workers is written for `slaunch status` (default: 5, more in large jobs; 0: never)
    status_interval: float | None
    # write figures for Prometheus there, as often (default: nowhere)
    metrics_file: str | None
    # serve them at this port of the first node's machine (default: none)
    metrics_port: int | None
    # time between the request to stop and SIGKILL (default: 15)
    grace: float | None
    # end the job when no worker has printed anything for so long, and tell what they did (default: never)
    hang_timeout: float | None
    # start all workers anew after a failure, at most N times (default: 0)
    max_restarts: int | None
    max_restart: int | None
    # wait before the first restart, twice as long before each further one (default: 0)
    restart_delay: float | None
    # only restarts within so long count against --max-restarts (default: all)
    restart_window: float | None
    # exit codes of a worker after which nothing is started anew (default: none)
    no_restart_codes: int | Sequence[int] | Literal["none", "all"] | None
    # end the job when K attempts in a row have got no further, by what the program tells (default: never)
    max_no_progress: int | None
    # with --nnodes MIN:MAX: after a failure go on without the node on which a worker failed first (default: false)
    leave_out_failed: bool | None
    # take part in the job that another step of this allocation runs with --nnodes MIN:MAX (default: false)
    join: bool | None
    # when nodes that join take part: restart (workers are stopped for them, default), boundary (workers are asked to save
    # and end), next (the next attempt)
    join_policy: Literal["restart", "boundary", "next"] | None
    # before another attempt, look at each node's devices, network, folders and clock, and do without those that are not
    # fit (default: true)
    health_check: bool | None
    # keep a list of nodes that were lost or not fit, with a growing cooldown, for `sbatch --exclude="$(cat FILE)"`
    exclude_bad: str | None
    # tell workers to save so long before the end of the job's time, by Slurm or --time-limit (default: never)
    warn_before_end: float | None
    # signal that tells those of them that catch it, or none (default: USR2)
    warn_signal: str | None
    # signal that asks workers to end when slaunch gets SIGTERM or the like, or none: they read it only (default: TERM)
    stop_signal: str | None
    # put the Slurm job back into the queue: no, yes, or preempt=N,timeout=N,failure=N with N times or any (default: no;
    # yes: any, any, 0)
    requeue: str | None
    # end the job after so long (default: never)
    time_limit: float | None
    # CPU binding of workers: auto, numa, core, none, map:…, mask:… (default: auto)
    bind: str | None
    # NUMA node of workers' memory: auto (preferred where a worker is bound to one of several), preferred, bind, none
    bind_memory: Literal["auto", "preferred", "bind", "none"] | None
    # network cards that NCCL, UCX and MPI are told of: auto (those near each worker's devices, default), none (they
    # choose)
    nics: Literal["auto", "none"] | None
    # network to use, by interface, subnet or address (default: by rule)
    network: str | None
    # variables that workers inherit although slaunch would drop them
    keep_env: str | Sequence[str] | None
    # further variables that workers must not inherit
    drop_env: str | Sequence[str] | None
    # more arguments for the srun that slaunch starts
    step_args: str | Sequence[str] | None
    # first of the consecutive ports of a node's workers (default: free ones)
    start_port: int | None
    # interpreter of Python programs (default: slaunch's own; in a container python3)
    python: str | None
    # command in front of each worker's, e.g. 'apptainer exec --nv image.sif'
    container: str | Sequence[str] | None
    # run this once on each node before its workers, also before those of a restart; if it fails, the job ends
    pre_hook: str | Sequence[str] | None
    # TOML or JSON file that gives workers different programs, arguments, devices and cores
    roles: str | None
    # copy files, archives (unpacked) or folders to every node's own disk before the workers start; they find them in
    # SLAUNCH_STAGE_DIR, or at DST
    stage: str | Sequence[str] | None
    # directory of these copies on every node (default: /tmp)
    stage_to: str | None
    # deadline of the copies (default: 600)
    stage_timeout: float | None
    # servers on each node (mode ps)
    server_num: int | None
    # trainers on each node (mode ps)
    trainer_num: int | None
    # endpoints of all servers, instead of their number
    servers: str | Sequence[str] | None
    # endpoints of all trainers, instead of their number
    trainers: str | Sequence[str] | None
    # port of the gloo rendezvous (mode ps; default: a free one)
    gloo_port: int | None
    # value of PADDLE_WITH_GLOO (mode ps; default: 1)
    with_gloo: str | None
    # the configuration file (default: slaunch.toml here, in ~/.config, in /etc)
    config: str | None
    # profile to use from the configuration files
    profile: str | None
