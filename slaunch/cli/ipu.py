"""Paddle's sub-command `ipu`: the command line of Graphcore's `poprun`, as an argument vector.

    slaunch paddle --devices 4 ipu --hosts=h1,h2 --nproc_per_host=2 --ipus_per_replica=1 --ipu_partition=p --vipu_server=s a.py

Source: the behaviour of paddlepaddle 3.3.1's launcher. It builds one line of text for a shell; here no shell takes part, so that
blanks and quotes of the program's arguments stay what they are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from slaunch.cli.table import Env, Row, Table, Value, from_line, help_lines, split
from slaunch.cli.texts import filled, positive, words
from slaunch.errors import UsageError
from slaunch.options import Program
from slaunch.plan.commands import worker_argv

PORT = 8090
"""Port of every host's endpoint, unless `--start_port` says otherwise."""

ROWS = (
    Row(("--hosts",), "hosts", words, "A,B,…", "hosts that poprun uses"),
    Row(("--nproc-per-host",), "nproc_per_host", positive, "N", "instances on each host"),
    Row(("--ipus-per-replica",), "ipus_per_replica", positive, "N", "IPUs of each replica"),
    Row(("--ipu-partition",), "ipu_partition", filled, "NAME", "partition of the IPU machine"),
    Row(("--vipu-server",), "vipu_server", filled, "HOST", "host of the V-IPU server"),
)

TABLE = Table("slaunch paddle ipu", ROWS, kinds={})


def poprun(args: Sequence[str], ipus: Value | None, port: int, env: Env) -> Program:
    """The program that starts an IPU job.

    Args:
        args: what follows the word `ipu`.
        ipus: total number of IPUs, from `--devices`.
        port: port of the endpoints.
        env: for POPART_LOG_LEVEL.

    Raises:
        UsageError: an option is missing, or the numbers do not divide.
    """
    given = split(args, TABLE)
    values = from_line(TABLE, given)
    missing = [row.names[0] for row in ROWS if row.field not in values]
    if missing or given.program is None:
        seen = f"{', '.join(missing) or 'no program'} missing"
        raise UsageError("start an IPU job", seen, "give all of them:\n" + "\n".join(help_lines(ROWS)))
    options = {field: value.value for field, value in values.items()}
    hosts = options["hosts"]
    assert isinstance(hosts, tuple)
    per_host, per_replica = int(str(options["nproc_per_host"])), int(str(options["ipus_per_replica"]))
    instances = len(hosts) * per_host
    replicas = share(total(ipus), per_replica, "IPUs", "--ipus_per_replica")
    share(replicas, instances, "replicas", "instances (hosts times --nproc_per_host)")
    inner = worker_argv(given.program, sys.executable, env)
    argv = (
        f"--num-instances={instances}",
        f"--num-replicas={replicas}",
        f"--ipus-per-replica={per_replica}",
        f"--host={','.join(hosts)}",
        f"--vipu-partition={options['ipu_partition']}",
        f"--vipu-server-host={options['vipu_server']}",
        "--update-partition=no",
        "--vipu-server-timeout=120",
        "--print-topology=yes",
        "--numa-aware=yes",
        f"--mpi-local-args={everywhere(hosts, instances, port, env)}",
        *(instance(index, hosts[index // per_host], index % per_host, port) for index in range(instances)),
    )
    return Program("poprun", (*argv, *inner), "executable")


def total(ipus: Value | None) -> int:
    """The number of IPUs.

    Raises:
        UsageError: `--devices` is no single number.
    """
    given = ipus.value if ipus else ()
    if isinstance(given, tuple) and len(given) == 1 and str(given[0]).isdecimal() and int(given[0]):
        return int(given[0])
    seen = f"{ipus.source if ipus else '--devices'} is {','.join(given) if isinstance(given, tuple) and given else 'not given'}"
    raise UsageError("know the number of IPUs", seen, "give their total number, e.g. --devices 4")


def share(whole: int, part: int, what: str, by: str) -> int:
    """How often `part` goes into `whole`.

    Raises:
        UsageError: it leaves a rest.
    """
    if whole % part:
        seen = f"{whole} {what} do not divide by {part}, the number of {by}"
        raise UsageError("share out the IPUs", seen, "change one of them")
    return whole // part


def everywhere(hosts: Sequence[str], instances: int, port: int, env: Env) -> str:
    """Variables of all instances, as arguments for poprun's mpirun."""
    level = f"-x POPART_LOG_LEVEL={env['POPART_LOG_LEVEL']} " if env.get("POPART_LOG_LEVEL") else ""
    endpoints = ",".join(f"{host}:{port}" for host in hosts)
    return f"{level}-x PADDLE_TRAINERS_NUM={instances} -x PADDLE_TRAINER_ENDPOINTS={endpoints}"


def instance(index: int, host: str, local: int, port: int) -> str:
    """Variables of one instance."""
    variables = f"-x PADDLE_TRAINER_ID={index} -x PADDLE_CURRENT_ENDPOINT={host}:{port} -x PADDLE_RANK_IN_NODE={local}"
    return f"--instance-mpi-local-args={index}:{variables}"
