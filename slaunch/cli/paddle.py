"""Paddle's command line: `slaunch paddle …`, `slaunch fleetrun …`, `python -m slaunch.paddle …`.

The options of `paddle.distributed.launch` and of its predecessor `fleet.launch`, their variables and their older names
(`cli.paddle_rows`), and slaunch's own options. It differs on purpose: the command line wins over variables (unless
`--paddle_precedence`), nothing is abbreviated or ignored in silence, and the program's arguments are never looked at.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from slaunch.cli.modes import texts, with_mode
from slaunch.cli.options import FILES, beneath, settle
from slaunch.cli.paddle_rows import NO_EFFECT, REFUSED, ROWS
from slaunch.cli.rows import ROWS as OWN
from slaunch.cli.table import Env, Table, Value, from_env, from_line, help_lines, split
from slaunch.errors import UsageError
from slaunch.frozen import names
from slaunch.options import Options, Program

COMMAND = "slaunch paddle"
TABLE = Table(COMMAND, (*ROWS, *OWN), last_wins=True)
DIALECT = Table(COMMAND, ROWS)

LOG_DIR = "log"
START_PORT = 6070
MASTER_PORT = 6768
MAX_RESTART = 3
"""Defaults of Paddle's launcher."""

CHECK = Program("slaunch.run_check", (), "module")
"""What the word `run_check` stands for."""

OUTPUTS = (
    *("PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_LOG_DIR", "POD_IP", "PADDLE_TRAINER_ID", "PADDLE_TRAINER_ENDPOINTS"),
    *("DISTRIBUTED_TRAINER_ENDPOINTS", "PADDLE_AUTO_CLUSTER", "PADDLE_WITH_GLOO", "PADDLE_AUTO_PARALLEL_CONFIG"),
)
"""Variables that a launcher reads and gives to its workers, too: inside a worker they are no wish of the user's (W65)."""

MANAGED = ("elastic_server", "job_id", "np")
"""What the older launcher's elastic manager had to know; it was on where all was told (F304)."""

CLOUD = ("PADDLE_TRAINERS", "POD_IP", "PADDLE_TRAINER_ID", "TRAINER_PORTS_NUM")
"""Variables by which PaddleCloud describes a job, if all are there."""


def read(argv: Sequence[str], env: Env, before: Mapping[str, Value]) -> Options:
    """`Options` from Paddle's command line and variables, and beneath them slaunch's own.

    Args:
        argv: what follows the word `paddle`.
        env: the environment.
        before: slaunch's own options in front of that word.

    Raises:
        UsageError: naming the option or variable, and the bad text.
    """
    given = split(argv, TABLE)
    line = {**before, **from_line(TABLE, given)}
    skip = OUTPUTS if in_worker(env) else ()
    variables = {**kubernetes(env), **endpoint_variables(env, skip), **cloud(env, skip), **from_env(DIALECT, env, skip)}
    env_first = bool((line.get("paddle_precedence") or variables.get("paddle_precedence") or Value(False, "")).value)
    theirs = {**line, **variables} if env_first else {**variables, **line}
    notes = [*skipped(env, skip), *overridden(line, variables, env_first), *without_effect(theirs)]
    refuse(theirs)
    program, more = magic(given.program, theirs, env)
    default = {"log_dir": Value(LOG_DIR, "Paddle's default"), "tee_limit": Value(0.0, "Paddle's default")}
    files = {field: line[field] for field in FILES if field in line}
    values = with_mode({**default, **beneath(files, env), **translated(theirs), **more})
    return settle(program, {field: value for field, value in values.items() if field in names(Options)}, notes)


def in_worker(env: Env) -> bool:
    """Whether this process stems from a worker of a launcher."""
    return "PADDLE_CURRENT_ENDPOINT" in env or "SLAUNCH_RANK" in env


def skipped(env: Env, skip: Sequence[str]) -> list[str]:
    """A note on a worker's variables that are not followed."""
    found = [name for name in skip if name in env]
    return [f"not followed, since a launcher set them for the worker around us: {', '.join(found)}"] if found else []


def overridden(line: Mapping[str, Value], variables: Mapping[str, Value], env_first: bool) -> list[str]:
    """A note on each option that is given twice, with different values (F41)."""
    found = []
    for field in line:
        if field in variables and variables[field].value != line[field].value:
            winner, loser = (variables[field], line[field]) if env_first else (line[field], variables[field])
            found.append(f"{winner.source} ({plain(winner.value)}) wins over {loser.source} ({plain(loser.value)})")
    return found


def plain(value: object) -> str:
    """A value as its text might be."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def without_effect(values: Mapping[str, Value]) -> list[str]:
    """A note on each option that has no effect."""
    reasons = {**NO_EFFECT, **({} if restarting(values) else {"max_restart": "without --elastic_level 1, as in Paddle"})}
    given = [field for field in reasons if field in values]
    return [f"{values[field].source}: no effect, {reasons[field]}" for field in given]


def restarting(values: Mapping[str, Value]) -> bool:
    """Whether a failure is followed by a restart: at level 1 and above, or where the older launcher's elastic manager was on."""
    if "elastic_level" in values:
        return int(str(values["elastic_level"].value)) >= 1
    return all(field in values for field in MANAGED)


def refuse(values: Mapping[str, Value]) -> None:
    """Refuse what would change the run and is not there."""
    for field, todo in REFUSED.items():
        if field in values:
            seen = f"{values[field].source} {values[field].value}"
            raise UsageError(f"follow {values[field].source}", seen, todo)


def endpoint_variables(env: Env, skip: Sequence[str]) -> dict[str, Value]:
    """Number of nodes and place to meet from the lists of endpoints that some clusters set (F43, F44)."""
    found: dict[str, Value] = {}
    for name in ("PADDLE_TRAINER_ENDPOINTS", "DISTRIBUTED_TRAINER_ENDPOINTS"):
        entries = [entry.strip() for entry in env.get(name, "").split(",") if entry.strip()]
        if not entries or name in skip or "PADDLE_TRAINERS" in env:
            continue
        hosts = len({entry.rpartition(":")[0] or entry for entry in entries})
        first = entries[0] if ":" in entries[0] else f"{entries[0]}:{MASTER_PORT}"
        found |= {"nnodes": Value((hosts, hosts), name), "master": Value(first, name)}
        if env.get("PADDLE_LAUNCH_WITH_ARGS", "0") != "0":
            del found["master"]
    return found


def cloud(env: Env, skip: Sequence[str]) -> dict[str, Value]:
    """PaddleCloud's description of a job (F289); its node number alone counts everywhere (F42)."""
    found: dict[str, Value] = {}
    number = env.get("PADDLE_TRAINER_ID", "")
    if number.isdecimal() and "PADDLE_TRAINER_ID" not in skip:
        found["node_rank"] = Value(int(number), "PADDLE_TRAINER_ID")
    if all(env.get(name) for name in CLOUD) and env.get("PADDLE_TRAINERS_NUM") != "1" and not skip:
        found["ips"] = Value(tuple(env["PADDLE_TRAINERS"].split(",")), "PADDLE_TRAINERS")
        port = env.get("PADDLE_PORT", "6170")
        if not port.isdecimal():
            raise UsageError("read PADDLE_PORT", f"its value {port!r} is not a number", "give the first port of a node's workers")
        found["start_port"] = Value(int(port), "PADDLE_PORT" if "PADDLE_PORT" in env else "PaddleCloud's default")
    return found


def kubernetes(env: Env) -> dict[str, Value]:
    """The etcd of a Kubernetes cluster, as its operator tells it (F310)."""
    host, port = (env.get(f"PADDLE_ELASTIC_ETCD_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not (host and port):
        return {}
    return {"elastic_server": Value(f"{host}:{port}", "PADDLE_ELASTIC_ETCD_SERVICE_HOST and _PORT")}


def magic(program: Program | None, values: Mapping[str, Value], env: Env) -> tuple[Program | None, dict[str, Value]]:
    """What the words `run_check` and `ipu` stand for, if one of them is the program's place."""
    if program is None or program.kind != "script" or program.target not in ("run_check", "ipu"):
        return program, {}
    if program.target == "run_check":
        return Program(CHECK.target, program.args, CHECK.kind), {}
    from slaunch.cli.ipu import PORT, poprun

    port = values["start_port"].value if "start_port" in values else PORT
    made = poprun(program.args, values.get("devices"), int(str(port)), env)
    source = "the word ipu"
    return made, {"mode": Value("ipu", source), "devices": Value((), source), "start_port": Value(0, source)}


def translated(values: Mapping[str, Value]) -> dict[str, Value]:
    """The fields of `Options` that Paddle's options set."""
    found = dict(values)
    if "node_rank" in found and found["node_rank"].value == -1:
        del found["node_rank"]
    if "np" in found:
        found.setdefault("nnodes", found["np"])
    if "elastic_server" in found:
        server = found["elastic_server"]
        found.setdefault("master", Value(f"etcd://{server.value}", server.source))
    restarts = (with_deadline, with_level, with_restarts)
    for translate in (with_host, with_addresses, with_backend, *restarts, with_legacy, with_tuning):
        found = translate(found)
    return found


def with_host(found: dict[str, Value]) -> dict[str, Value]:
    """A host counts only if it is an address (F55)."""
    host = str(found["host"].value) if "host" in found else ""
    return found if "." in host or ":" in host else {field: value for field, value in found.items() if field != "host"}


def with_addresses(found: dict[str, Value]) -> dict[str, Value]:
    """A list of addresses brings fixed ports, and with several nodes a place to meet."""
    ips = texts(found, "ips")
    if "start_port" in found and not found["start_port"].value and "ips" in found:  # 0 turns the list off (F25)
        del found["ips"]
        return found
    if not ips:
        return found
    if len(ips) > 1 and any(ip.startswith("127.") or ip == "localhost" for ip in ips):
        seen = f"{found['ips'].source} {','.join(ips)}"
        raise UsageError("use the addresses of the nodes", seen, "give each node's address on the network, not the loopback's")
    port = found.setdefault("start_port", Value(START_PORT, "Paddle's default with --ips"))
    if len(ips) > 1:
        found.setdefault("master", Value(f"{ips[0]}:{int(str(port.value)) - 1}", found["ips"].source))
    return found


def with_backend(found: dict[str, Value]) -> dict[str, Value]:
    """The communication back end; gloo runs on CPUs. Others than auto are for collective jobs."""
    backend = found.get("backend", Value("auto", ""))
    if backend.value == "auto":
        return {field: value for field, value in found.items() if field != "backend"}
    if found.get("mode", Value("collective", "")).value != "collective":
        seen = f"{backend.source} {backend.value} and {found['mode'].source} {found['mode'].value}"
        raise UsageError("choose the communication back end", seen, "leave --backend out, or use --run_mode collective")
    if backend.value == "gloo":
        found.setdefault("nproc_per_node", Value(1, backend.source))
        found["one_per"] = Value("cpu", backend.source)
    return found


def with_deadline(found: dict[str, Value]) -> dict[str, Value]:
    """The deadline of the meeting: ten times as long where the number of nodes is fixed (F113)."""
    if "elastic_timeout" in found:
        nodes = found["nnodes"].value if "nnodes" in found else ()
        ranged = isinstance(nodes, tuple) and len(set(nodes)) == 2
        limit = found["elastic_timeout"]
        wait_s = float(str(limit.value)) * (1 if ranged else 10)
        found["rendezvous_timeout_s"] = Value(wait_s if wait_s > 1 else 3.0, limit.source)
    return found


def with_level(found: dict[str, Value]) -> dict[str, Value]:
    """What a range of nodes is for (F120): at level -1 the job never goes on, at level 0 without the node whose worker failed."""
    level = found.get("elastic_level")
    if level is None or int(str(level.value)) > 0:
        return found
    wish = ("elastic", False) if int(str(level.value)) < 0 else ("leave_out_failed", True)
    return {**found, wish[0]: Value(wish[1], level.source)}


def with_restarts(found: dict[str, Value]) -> dict[str, Value]:
    """How often the workers are started anew (F33, F34): exactly so often, where Paddle does it once more (W22)."""
    if not restarting(found) or "max_restarts" in found:
        return found
    why = found.get("elastic_level") or found["elastic_server"]
    return {**found, "max_restarts": found.get("max_restart", Value(MAX_RESTART, why.source))}


def with_legacy(found: dict[str, Value]) -> dict[str, Value]:
    """What the older launcher did: devices are shared out in contiguous groups (F290), a hook runs in a shell (F308)."""
    if "legacy" in found and found["legacy"].value and "workers_per_device" not in found:
        found.setdefault("devices_per_worker", Value(-1, found["legacy"].source))
    if "elastic_pre_hook" in found:
        hook = found["elastic_pre_hook"]
        found["pre_hook"] = Value(("/bin/sh", "-c", str(hook.value)), hook.source)
    return found


def with_tuning(found: dict[str, Value]) -> dict[str, Value]:
    """What the JSON file of `--auto_parallel_config` asks for (F85).

    Raises:
        UsageError: the file cannot be read, or asks for something unknown.
    """
    if "auto_parallel_config" not in found:
        return found
    import json

    given = found["auto_parallel_config"]
    path = os.path.abspath(str(given.value))
    stages = {"tuner_only": "only", "run_only": "skip", "tuner_and_run": "first"}
    try:
        with open(path, encoding="utf-8") as file:
            word = json.load(file).get("tuner_run_mode", "tuner_and_run")
        tuning = stages[word]
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError("read the tuning step's configuration", f"{given.source} {path}: {error}", "name a JSON file") from None
    except (KeyError, TypeError):
        seen = f"tuner_run_mode is {word!r} in {path}"
        raise UsageError("read the tuning step's configuration", seen, f"use one of {', '.join(stages)}") from None
    found["auto_parallel_config"] = Value(path, given.source)
    return {**found, "tuning": Value(tuning, path)}


def help_text() -> str:
    """The text of `slaunch paddle --help`."""
    lines = [
        "usage: slaunch paddle [options] PROGRAM [its options]           PROGRAM: a script, any executable, -m MODULE, -c CODE",
        "       slaunch paddle [options] run_check                       check ranks and collectives with what is installed",
        "       slaunch paddle --devices N ipu [its options] PROGRAM …   an IPU job, by poprun",
        "",
        "The options of Paddle's launchers, and what becomes of them; slaunch's own (`slaunch --help`) can be given, too.",
        "Each can be set by the variable behind it; the command line wins.",
        "",
    ]
    shown = [line + f" [{row.variable}]" * bool(row.variable) for row, line in zip(ROWS, help_lines(ROWS), strict=True)]
    return "\n".join(lines + shown)
