"""The options of Paddle's launchers: names, variables, meaning. Docs/command-lines.md is made from this table.

Source: `paddle.distributed.launch` of paddlepaddle 3.3.1, and `fleet.launch`, its predecessor.
"""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.cli.rows import mode
from slaunch.cli.table import Row
from slaunch.cli.texts import bounds, filled, natural, one_of, positive, seconds, truth, words

LEVELS = {
    **dict.fromkeys(("critical", "fatal", "error", "warning", "warn"), "warning"),
    "info": "info",
    **dict.fromkeys(("debug", "notset"), "debug"),
}


def level(text: str) -> str:
    """One of Python's logging levels as one of slaunch's."""
    found = LEVELS.get(text.lower())
    if found is None:
        raise ValueError("must be CRITICAL, ERROR, WARNING, INFO, DEBUG or NOTSET")
    return found


def master(text: str) -> str:
    """`ip:port`, also with `http://` in front, or `etcd://host:port`."""
    return filled(text.removeprefix("http://"))


def rank(text: str) -> int:
    """A node number; -1 = automatic."""
    number = int(text)
    if number < -1:
        raise ValueError("must be -1 or more")
    return number


def device_log(text: str) -> str:
    """A truth word: true means where there is something to sample, as in Paddle."""
    return "auto" if truth(text) else "no"


def port_or_none(text: str) -> int:
    """A TCP port; 0 = none."""
    number = int(text)
    if not 0 <= number < 65536:
        raise ValueError("must be a port, or 0")
    return number


def stages(text: str) -> tuple[str, ...]:
    """Items between semicolons, one for each stage."""
    return tuple(item.strip() for item in text.split(";") if item.strip())


def stage_numbers(text: str) -> tuple[int, ...]:
    """A number for each stage."""
    return tuple(positive(item) for item in stages(text))


def stage_lists(text: str) -> tuple[tuple[str, ...], ...]:
    """Endpoints of each stage."""
    return tuple(words(item) for item in stages(text))


ROWS: tuple[Row, ...] = (
    Row(
        ("--master",),
        "master",
        master,
        "ADDRESS",
        "where nodes meet that no scheduler started: ip:port or etcd://host:port",
        ("PADDLE_MASTER",),
    ),
    Row(
        ("--legacy",),
        "legacy",
        truth,
        "BOOL",
        "true: what the older launcher did besides: all devices are shared out, PADDLE_WORLD_DEVICE_IDS, endpoints.log, a table",
        ("",),
    ),
    Row(
        ("--rank",), "node_rank", rank, "N", "this node's number; must agree with the scheduler; -1 = automatic", ("PADDLE_RANK",)
    ),
    Row(
        ("--log-level",),
        "log_level",
        level,
        "LEVEL",
        "DEBUG tells all settings at the start, WARNING and above drop notes",
        ("PADDLE_LOG_LEVEL",),
    ),
    Row(
        ("--log-overwrite",),
        "log_overwrite",
        truth,
        "BOOL",
        "start log files anew instead of appending",
        ("PADDLE_LOG_OVERWRITE",),
    ),
    Row(
        ("--sort-ip",),
        "sort_ip",
        truth,
        "BOOL",
        "no effect: nodes are in the scheduler's order, or in that of --rank",
        ("PADDLE_SORT_IP",),
    ),
    Row(("--enable-gpu-log",), "device_log", device_log, "BOOL", "sample the devices while workers run (default: true)", ("",)),
    Row(("--nnodes",), "nnodes", bounds, "N|MIN:MAX", "number of nodes; must agree with the scheduler", ("PADDLE_NNODES",)),
    Row(("--nproc-per-node",), "nproc_per_node", positive, "N", "workers on each node", ("PADDLE_NPROC_PER_NODE",)),
    Row(("--log-dir",), "log_dir", filled, "DIR", "directory of the logs (default: log)", ("PADDLE_LOG_DIR",)),
    Row(("--run-mode",), "mode", mode, "MODE", "collective, ps, ps-heter or rpc", ("PADDLE_RUN_MODE",)),
    Row(("--job-id",), "job_id", filled, "NAME", "name of the job", ("PADDLE_JOB_ID", "PADDLE_ELASTIC_JOB_ID")),
    Row(
        ("--devices", "--gpus", "--npus", "--xpus", "--selected-gpus", "--selected-xpus", "--selected-npus"),
        "devices",
        words,
        "A,B,…",
        "devices to use, by their names in the visible list; for `ipu` their number",
        ("PADDLE_DEVICES",),
    ),
    Row(("--host",), "host", filled, "IP", "this node's address for its peers", ("POD_IP",)),
    Row(("--ips",), "ips", words, "A,B,…", "addresses of all nodes; this node's must be among them", ("PADDLE_IPS",)),
    Row(
        ("--start-port",),
        "start_port",
        port_or_none,
        "PORT",
        "first of the consecutive ports of a node (with --ips: 6070)",
        ("PADDLE_START_PORT", "FLAGS_START_PORT", "FLAGS_FIXED_PORT"),
    ),
    Row(
        ("--auto-parallel-config",),
        "auto_parallel_config",
        filled,
        "FILE",
        "JSON file that adds a tuning step before the workers",
        ("PADDLE_AUTO_PARALLEL_CONFIG",),
    ),
    Row(("--auto-cluster-config",), "auto_cluster", truth, "BOOL", "value of PADDLE_AUTO_CLUSTER", ("PADDLE_AUTO_CLUSTER",)),
    Row(("--auto-tuner-json",), "auto_tuner_json", filled, "FILE", "tune by this configuration, as `slaunch tune`", ("",)),
    Row(("--servers",), "servers", words, "IP:PORT,…", "endpoints of all servers", ("PADDLE_SERVERS_ENDPOINTS",)),
    Row(("--trainers", "--workers"), "trainers", words, "IP:PORT,…", "endpoints of all trainers", ("PADDLE_TRAINERS_ENDPOINTS",)),
    Row(("--trainer-num", "--worker-num"), "trainer_num", natural, "N", "trainers on each node", ("PADDLE_TRAINER_NUM",)),
    Row(("--server-num",), "server_num", natural, "N", "servers on each node", ("PADDLE_SERVER_NUM",)),
    Row(
        ("--gloo-port", "--http-port"),
        "gloo_port",
        port_or_none,
        "PORT",
        "port of the gloo rendezvous (default: a free one)",
        ("PADDLE_GLOO_PORT",),
    ),
    Row(("--with-gloo",), "with_gloo", str, "0|1|2", "value of PADDLE_WITH_GLOO", ("PADDLE_WITH_GLOO",)),
    Row(
        ("--max-restart",),
        "max_restart",
        natural,
        "N",
        "with --elastic_level 1: start all workers anew after a failure, at most N times (default: 3)",
        ("PADDLE_MAX_RESTART",),
    ),
    Row(
        ("--elastic-level",),
        "elastic_level",
        int,
        "N",
        "1: a failure is followed by a restart; 0, -1 (default): it ends the job, unless an elastic server, a job's name and np "
        "are all given",
        ("PADDLE_ELASTIC_LEVEL",),
    ),
    Row(
        ("--elastic-timeout",),
        "elastic_timeout",
        seconds,
        "SECONDS",
        "deadline of the meeting, ten-fold for a fixed number of nodes",
        ("PADDLE_ELASTIC_TIMEOUT",),
    ),
    Row(
        ("--backend",),
        "backend",
        one_of("auto", "nccl", "gloo", "bkcl", "heter", "xccl", "flagcx"),
        "NAME",
        "value of PADDLE_DISTRI_BACKEND; gloo uses no devices",
        ("",),
    ),
    Row(("--coordinators",), "coordinators", words, "IP:PORT,…", "endpoints of all coordinators", ("",)),
    Row(("--coordinator-num",), "coordinator_num", natural, "N", "coordinators on each node", ("",)),
    Row(("--heter-workers",), "heters", stage_lists, "LIST;LIST", "endpoints of the workers of each further stage", ("",)),
    Row(("--heter-worker-num",), "heter_num", stage_numbers, "N;N", "workers of each further stage on each node", ("",)),
    Row(("--heter-devices",), "heter_devices", stages, "KIND;KIND", "kind of device of each further stage", ("",)),
    Row(("--elastic-server",), "elastic_server", filled, "HOST:PORT", "as --master etcd://HOST:PORT", ("PADDLE_ELASTIC_SERVER",)),
    Row(("--np",), "np", bounds, "N|MIN:MAX", "as --nnodes", ("PADDLE_ELASTIC_NP",)),
    Row(("--scale",), "scale", str, "N", "no effect, as in Paddle", ("",)),
    Row(("--force",), "force", str, "BOOL", "no effect, as in Paddle", ("",)),
    Row(
        ("--elastic-pre-hook",),
        "elastic_pre_hook",
        filled,
        "COMMAND",
        "run this in a shell once on each node before the workers, also before those of a restart",
        ("",),
    ),
    Row(("--cluster-topo-path",), "cluster_topo_path", str, "FILE", "an error: ranks follow the nodes' own topology", ("",)),
    Row(("--rank-mapping-path",), "rank_mapping_path", str, "FILE", "an error: ranks follow the nodes' own topology", ("",)),
    Row(("--enable-auto-mapping",), "enable_auto_mapping", str, "BOOL", "an error: ranks follow the nodes' own topology", ("",)),
    Row(
        ("--paddle-precedence",),
        "paddle_precedence",
        truth,
        "",
        "variables win over the command line, as in Paddle",
        ("SLAUNCH_PADDLE_PRECEDENCE",),
    ),
)

NO_EFFECT: Mapping[str, str] = {
    "sort_ip": "nodes are in the scheduler's order, or in that of --rank",
    "scale": "Paddle does not use it either",
    "force": "Paddle does not use it either",
}
"""Options without effect, and why."""

REFUSED: Mapping[str, str] = {
    "cluster_topo_path": "leave it out: ranks follow the nodes, and binding their topology",
    "rank_mapping_path": "leave it out: ranks follow the nodes, and binding their topology",
    "enable_auto_mapping": "leave it out: ranks follow the nodes, and binding their topology",
}
"""Options that would change what is run, and that slaunch does not have: an error, never silence."""
