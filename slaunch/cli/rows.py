"""The options of slaunch's own command line, each with its reader and its help."""

from __future__ import annotations

from slaunch.cli.table import Row, Table
from slaunch.cli.texts import (
    absolute,
    bounds,
    filled,
    lines_a_second,
    log_name,
    natural,
    number_or_all,
    one_of,
    pattern,
    port,
    positive,
    ranks,
    requeues,
    seconds,
    seconds_or_none,
    shell_words,
    signal_number,
    size,
    truth,
    words,
    yes_no_auto,
)


def roles(path: str) -> object:
    """The programs that a file gives to ranks."""
    from slaunch.cli.roles import read_roles

    return read_roles(path)


def mode(text: str) -> str:
    """A job mode's name; dashes and underscores are the same."""
    return filled(text).lower().replace("-", "_")


ROWS: tuple[Row, ...] = (
    Row(("--nproc-per-node",), "nproc_per_node", positive, "N", "workers on each node (default: one per visible device, else 1)"),
    Row(
        ("--devices", "--gpus", "--npus", "--xpus"),
        "devices",
        words,
        "A,B,…",
        "devices to use, by their names in the visible list (default: all)",
    ),
    Row(("--workers-per-device",), "workers_per_device", positive, "N", "workers that share each device (default: 1)"),
    Row(
        ("--devices-per-worker",),
        "devices_per_worker",
        number_or_all,
        "N|all",
        "devices of each worker, in contiguous groups; all: shared out evenly (default: 1, and a lone worker has all)",
    ),
    Row(
        ("--visible",),
        "visible",
        one_of("all", "own", "virtual"),
        "WHICH",
        "devices that a worker sees: all of the node's (default), own, virtual (own, and LOCAL_RANK 0)",
    ),
    Row(
        ("--mode", "--run-mode"), "mode", mode, "MODE", "kind of job: collective, ps, ps-heter, rpc or ipu (default: collective)"
    ),
    Row(("--contract",), "contracts", words, "A,B,…", "variables that workers get (default: paddle,torch,slaunch)"),
    Row(
        ("--nnodes",),
        "nnodes",
        bounds,
        "N|MIN:MAX",
        "number of nodes (default: all of the allocation); must agree with the scheduler. With MIN:MAX the job goes on when it "
        "loses nodes, as long as MIN are left",
        ("SLAUNCH_NODES",),
    ),
    Row(
        ("--spares",),
        "spares",
        natural,
        "K",
        "nodes that wait, without workers, and take the places of lost ones; beyond --nnodes, or else of all (default: 0)",
    ),
    Row(
        ("--node-rank", "--rank"),
        "node_rank",
        natural,
        "N",
        "this node's number, where nodes are started by hand",
        ("SLAUNCH_THIS_NODE",),
    ),
    Row(("--master",), "master", filled, "HOST:PORT", "where nodes that are started by hand meet: host:port or etcd://host:port"),
    Row(
        ("--etcd-user",),
        "etcd_user",
        str,
        "NAME",
        "user of that etcd, NAME or NAME:PASSWORD; the password better in ETCDCTL_PASSWORD",
        ("ETCDCTL_USER",),
    ),
    Row(("--etcd-cacert",), "etcd_cacert", str, "FILE", "authorities that sign that etcd's certificate", ("ETCDCTL_CACERT",)),
    Row(("--etcd-cert",), "etcd_cert", str, "FILE", "this node's certificate for that etcd", ("ETCDCTL_CERT",)),
    Row(("--etcd-key",), "etcd_key", str, "FILE", "the certificate's key", ("ETCDCTL_KEY",)),
    Row(("--host",), "host", filled, "IP", "this node's address for its peers (default: chosen by rule)"),
    Row(("--rendezvous",), "rendezvous", str, "WAY", "how the nodes meet: auto, mpi, slurm, tcp or etcd (default: auto)"),
    Row(("--rendezvous-timeout",), "rendezvous_timeout_s", seconds, "SECONDS", "deadline of the meeting (default: 60)"),
    Row(("--scheduler",), "scheduler", str, "NAME", "whose variables to read (default: auto, the innermost launcher)"),
    Row(("--job-id",), "job_id", str, "NAME", "name of the job in logs and workers (default: the scheduler's id)"),
    Row(("--log-dir",), "log_dir", str, "DIR", "directory of the logs (default: slaunch-logs/JOB)"),
    Row(("--log-overwrite",), "log_overwrite", truth, "BOOL", "start log files anew instead of appending (default: false)"),
    Row(
        ("--log-name",),
        "log_name",
        log_name,
        "TEMPLATE",
        "names of the log files, with {rank} {local_rank} {node} {host} {attempt} {role} {number} {job}; with {stream} (out, "
        "err) output and errors go to files of their own (default: workerlog.{rank})",
    ),
    Row(
        ("--log-max-size",),
        "log_max_bytes",
        size,
        "SIZE",
        "move a log file away to NAME.1, NAME.2, … when it has this size, e.g. 100M (default: never)",
    ),
    Row(("--log-keep",), "log_keep", natural, "N", "how many of these are kept of each file (default: 5)"),
    Row(("--log-timestamps",), "log_timestamps", truth, "BOOL", "the time in front of each line (default: false)"),
    Row(
        ("--log-writer",),
        "log_writer",
        one_of("auto", "slaunch"),
        "WHO",
        "auto: workers write their files themselves where they can (default); slaunch: a process beside them does it, so that no "
        "worker waits for a disk that hangs, or ends because it is full",
    ),
    Row(
        ("--log-level",),
        "log_level",
        one_of("debug", "info", "warning"),
        "LEVEL",
        "what slaunch tells: debug (all settings), info (default), warning (no notes)",
    ),
    Row(
        ("--device-log",),
        "device_log",
        yes_no_auto,
        "BOOL|auto",
        "sample use, memory, power and heat of devices into files beside the logs (default: auto, where their driver tells)",
    ),
    Row(("--tee",), "tee", ranks, "R,S,…", "ranks whose output is also shown on the console, none or all (default: 0)"),
    Row(
        ("--tee-stream",),
        "tee_stream",
        one_of("both", "out", "err"),
        "WHICH",
        "which of their streams: both (default), out or err; these go to files of their own then (workerlog.N, workerlog.N.err)",
    ),
    Row(("--tee-match",), "tee_match", pattern, "REGEX", "only lines in which this regular expression is found (default: all)"),
    Row(
        ("--tee-limit",),
        "tee_limit",
        lines_a_second,
        "N|none",
        "lines a second that the console shows of several ranks, those of all nodes through the first one (default: 1000); none: "
        "all, each node's on its own standard output",
    ),
    Row(
        ("--status-interval",),
        "status_interval_s",
        seconds_or_none,
        "SECONDS",
        "how often the state of all workers is written for `slaunch status` (default: 5, more in large jobs; 0: never)",
    ),
    Row(("--metrics-file",), "metrics_file", filled, "FILE", "write figures for Prometheus there, as often (default: nowhere)"),
    Row(
        ("--metrics-port",), "metrics_port", port, "PORT", "serve them at this port of the first node's machine (default: none)"
    ),
    Row(("--grace",), "grace_s", seconds, "SECONDS", "time between the request to stop and SIGKILL (default: 15)"),
    Row(
        ("--hang-timeout",),
        "hang_timeout_s",
        seconds,
        "SECONDS",
        "end the job when no worker has printed anything for so long, and tell what they did (default: never)",
    ),
    Row(
        ("--max-restarts", "--max-restart"),
        "max_restarts",
        natural,
        "N",
        "start all workers anew after a failure, at most N times (default: 0)",
    ),
    Row(
        ("--restart-delay",),
        "restart_delay_s",
        seconds_or_none,
        "SECONDS",
        "wait before the first restart, twice as long before each further one (default: 0)",
    ),
    Row(
        ("--restart-window",),
        "restart_window_s",
        seconds,
        "SECONDS",
        "only restarts within so long count against --max-restarts (default: all)",
    ),
    Row(
        ("--no-restart-codes",),
        "no_restart_codes",
        ranks,
        "A,B,…",
        "exit codes of a worker after which nothing is started anew (default: none)",
    ),
    Row(
        ("--max-no-progress",),
        "max_no_progress",
        positive,
        "K",
        "end the job when K attempts in a row have got no further, by what the program tells (default: never)",
    ),
    Row(
        ("--leave-out-failed",),
        "leave_out_failed",
        truth,
        "BOOL",
        "with --nnodes MIN:MAX: after a failure go on without the node on which a worker failed first (default: false)",
    ),
    Row(
        ("--join",),
        "join",
        truth,
        "BOOL",
        "take part in the job that another step of this allocation runs with --nnodes MIN:MAX (default: false)",
    ),
    Row(
        ("--join-policy",),
        "join_policy",
        one_of("restart", "boundary", "next"),
        "WHEN",
        "when nodes that join take part: restart (workers are stopped for them, default), boundary (workers are asked to save "
        "and end), next (the next attempt)",
    ),
    Row(
        ("--health-check",),
        "health_check",
        truth,
        "BOOL",
        "before another attempt, look at each node's devices, network, folders and clock, and do without those that are not fit "
        "(default: true)",
    ),
    Row(
        ("--exclude-bad",),
        "exclude_bad",
        filled,
        "FILE",
        'keep a list of nodes that were lost or not fit, with a growing cooldown, for `sbatch --exclude="$(cat FILE)"`',
    ),
    Row(
        ("--warn-before-end",),
        "warn_before_end_s",
        seconds,
        "SECONDS",
        "tell workers to save so long before the end of the job's time, by Slurm or --time-limit (default: never)",
    ),
    Row(
        ("--warn-signal",),
        "warn_signal",
        signal_number,
        "SIGNAL",
        "signal that tells those of them that catch it, or none (default: USR2)",
    ),
    Row(
        ("--stop-signal",),
        "stop_signal",
        signal_number,
        "SIGNAL",
        "signal that asks workers to end when slaunch gets SIGTERM or the like, or none: they read it only (default: TERM)",
    ),
    Row(
        ("--requeue",),
        "requeue",
        requeues,
        "WHEN",
        "put the Slurm job back into the queue: no, yes, or preempt=N,timeout=N,failure=N with N times or any "
        "(default: no; yes: any, any, 0)",
    ),
    Row(("--time-limit",), "time_limit_s", seconds, "SECONDS", "end the job after so long (default: never)"),
    Row(("--bind",), "bind", str, "POLICY", "CPU binding of workers: auto, numa, core, none, map:…, mask:… (default: auto)"),
    Row(
        ("--bind-memory",),
        "bind_memory",
        one_of("auto", "preferred", "bind", "none"),
        "POLICY",
        "NUMA node of workers' memory: auto (preferred where a worker is bound to one of several), preferred, bind, none",
    ),
    Row(
        ("--nics",),
        "nics",
        one_of("auto", "none"),
        "WHICH",
        "network cards that NCCL, UCX and MPI are told of: auto (those near each worker's devices, default), none (they choose)",
    ),
    Row(("--network",), "network", str, "NET", "network to use, by interface, subnet or address (default: by rule)"),
    Row(("--keep-env",), "keep_env", words, "A,B*,…", "variables that workers inherit although slaunch would drop them"),
    Row(("--drop-env",), "drop_env", words, "A,B*,…", "further variables that workers must not inherit"),
    Row(("--step-args",), "step_args", shell_words, "'ARGS'", "more arguments for the srun that slaunch starts"),
    Row(("--start-port",), "start_port", port, "PORT", "first of the consecutive ports of a node's workers (default: free ones)"),
    Row(
        ("--python",), "python", filled, "PATH", "interpreter of Python programs (default: slaunch's own; in a container python3)"
    ),
    Row(
        ("--container",),
        "container",
        shell_words,
        "'COMMAND'",
        "command in front of each worker's, e.g. 'apptainer exec --nv image.sif'",
    ),
    Row(
        ("--pre-hook",),
        "pre_hook",
        shell_words,
        "'COMMAND'",
        "run this once on each node before its workers, also before those of a restart; if it fails, the job ends",
    ),
    Row(
        ("--roles",),
        "parts",
        roles,
        "FILE",
        "TOML or JSON file that gives workers different programs, arguments, devices and cores",
    ),
    Row(
        ("--stage",),
        "stage",
        words,
        "SRC[:DST],…",
        "copy files, archives (unpacked) or folders to every node's own disk before the workers start; they find them in "
        "SLAUNCH_STAGE_DIR, or at DST",
    ),
    Row(("--stage-to",), "stage_to", absolute, "DIR", "directory of these copies on every node (default: /tmp)"),
    Row(("--stage-timeout",), "stage_timeout_s", seconds, "SECONDS", "deadline of the copies (default: 600)"),
    Row(("--server-num",), "server_num", natural, "N", "servers on each node (mode ps)"),
    Row(("--trainer-num",), "trainer_num", natural, "N", "trainers on each node (mode ps)"),
    Row(("--servers",), "servers", words, "IP:PORT,…", "endpoints of all servers, instead of their number"),
    Row(("--trainers",), "trainers", words, "IP:PORT,…", "endpoints of all trainers, instead of their number"),
    Row(("--gloo-port",), "gloo_port", port, "PORT", "port of the gloo rendezvous (mode ps; default: a free one)"),
    Row(("--with-gloo",), "with_gloo", str, "0|1|2", "value of PADDLE_WITH_GLOO (mode ps; default: 1)"),
    Row(("--config",), "config", filled, "FILE", "the configuration file (default: slaunch.toml here, in ~/.config, in /etc)"),
    Row(("--profile",), "profile", filled, "NAME", "profile to use from the configuration files"),
)

TABLE = Table("slaunch", ROWS)
