"""torchrun's command line: `slaunch torchrun …`, so that a batch script changes one word.

The options are those of torch 2.13's `torchrun --help`; each can also be set by its variable PET_<NAME>, as there. What the
scheduler or slaunch knows better has no effect, and a note says so. slaunch's own options work as well (`--network`, `--grace`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from slaunch.cli.modes import with_mode
from slaunch.cli.options import beneath, settle, without_files
from slaunch.cli.rows import ROWS as OWN
from slaunch.cli.table import Env, Row, Table, Value, from_env, from_line, help_lines, split
from slaunch.cli.texts import bounds, filled, natural, one_of, port, positive, ranks, seconds, truth
from slaunch.errors import UsageError
from slaunch.frozen import replace
from slaunch.options import Options, Program


def workers(text: str) -> object:
    """Number of workers, or what one is started for."""
    kinds = {"gpu": "device", "xpu": "device", "cpu": "cpu", "auto": "auto"}
    if text.lower() in kinds:
        return kinds[text.lower()]
    if not text.isdecimal():
        raise ValueError("must be a number, gpu, xpu, cpu or auto")
    return positive(text)


def streams(text: str) -> dict[int, int]:
    """`3` or `0:1,1:2`: for local ranks (-1 = all) 1 = standard output, 2 = standard error, 3 = both, 0 = none."""
    pairs = [item.rpartition(":") for item in text.split(",")]
    chosen = {int(rank) if colon else -1: int(number) for rank, colon, number in pairs}
    if not all(0 <= number <= 3 for number in chosen.values()) or (len(chosen) > 1 and -1 in chosen):
        raise ValueError("must be 0 to 3, or RANK:NUMBER,… with such numbers")
    return chosen


def named(*names: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Names, field and variable of an option, from its long name on."""
    long = next(name for name in names if name.startswith("--"))
    word = long.removeprefix("--").replace("-", "_")
    return (long, *(name for name in names if name != long)), f"torchrun_{word}", (f"PET_{word.upper()}",)


def row(names: Sequence[str], read: Callable[[str], object], metavar: str, help: str) -> Row:
    """A row of the table."""
    shown, field, env = named(*names)
    return Row(shown, field, read, metavar, help, env)


MEETING = "slaunch has its own ways for nodes to meet"
PLUGIN = "it is a plug-in of torchrun's own agent"
POLLS = "the kernel tells at once when a worker ends"
EXECUTED = "workers are programs executed anew"
WHOLE = "the log files have every line"
SIGNALS = "every signal that asks to stop is handled, USR1 and USR2 are passed on"

DEADLINES = ("join_timeout", "timeout")
"""Keys of `--rdzv-conf` that say how long nodes wait for each other, the stronger first."""

NO_EFFECT: Mapping[str, str] = {
    "rdzv_backend": MEETING,
    "monitor_interval": POLLS,
    "start_method": EXECUTED,
    "event_log_handler": PLUGIN,
    "logs_specs": PLUGIN,
    "duplicate_stdout_filters": WHOLE,
    "duplicate_stderr_filters": WHOLE,
    "signals_to_handle": SIGNALS,
}
"""Options without effect, and why."""

ROWS: tuple[Row, ...] = (
    row(["--nnodes"], bounds, "N|MIN:MAX", "number of nodes; must agree with the scheduler"),
    row(["--nproc-per-node"], workers, "N|gpu|cpu|auto", "workers on each node"),
    row(["--rdzv-backend"], str, "NAME", f"no effect: {MEETING}"),
    row(["--rdzv-endpoint"], str, "HOST:PORT", "where nodes meet that no scheduler or MPI started together; else not needed"),
    row(["--rdzv-id"], filled, "NAME", "name of the job in logs and workers"),
    row(["--rdzv-conf"], str, "K=V,…", "join_timeout or timeout: deadline of the meeting in seconds; other keys have no effect"),
    row(["--standalone"], truth, "", "one node only; must agree with the scheduler"),
    row(["--max-restarts"], natural, "N", "start all workers anew after a failure, at most N times"),
    row(["--monitor-interval"], seconds, "SECONDS", f"no effect: {POLLS}"),
    row(["--start-method"], one_of("spawn", "fork", "forkserver"), "METHOD", f"no effect: {EXECUTED}"),
    row(["--event-log-handler"], str, "NAME", f"no effect: {PLUGIN}"),
    row(["--role"], filled, "NAME", "name of the workers' role"),
    row(["-m", "--module"], truth, "", "the program is a Python module"),
    row(["--no-python"], truth, "", "the program is executed, not run by Python"),
    row(["--run-path"], truth, "", "the program is a Python script"),
    row(["--log-dir"], filled, "DIR", "directory of the logs; one file workerlog.<rank> for each worker"),
    row(["-r", "--redirects"], streams, "STREAMS", "workers whose output is not shown; all of it is in the log files"),
    row(["-t", "--tee"], streams, "STREAMS", "workers whose output is shown and in the log files"),
    row(["--local-ranks-filter"], ranks, "R,S,…", "local ranks whose output is shown"),
    row(["--duplicate-stdout-filters"], str, "WORDS", f"no effect: {WHOLE}"),
    row(["--duplicate-stderr-filters"], str, "WORDS", f"no effect: {WHOLE}"),
    row(["--node-rank"], natural, "N", "this node's number; must agree with the scheduler"),
    row(["--master-addr"], filled, "HOST", "as --rdzv-endpoint"),
    row(["--master-port"], port, "PORT", "as --rdzv-endpoint"),
    row(["--local-addr"], filled, "IP", "this node's address for its peers"),
    row(["--logs-specs"], str, "NAME", f"no effect: {PLUGIN}"),
    row(
        ["--numa-binding"],
        one_of("node", "socket", "exclusive", "core-complex"),
        "MODE",
        "CPU binding: node and socket as --bind numa, the others as --bind auto, which is in force without it, too",
    ),
    row(["--signals-to-handle"], str, "SIGNALS", f"no effect: {SIGNALS}"),
    row(["--shutdown-timeout"], seconds, "SECONDS", "time between the request to stop and SIGKILL"),
    row(["--virtual-local-rank"], truth, "", "each worker sees its own device only, and LOCAL_RANK 0"),
)

TABLE = Table("slaunch torchrun", (*ROWS, *OWN), kinds={}, last_wins=True)
DIALECT = Table("slaunch torchrun", ROWS, kinds={}, last_wins=True)

DIRECT: Mapping[str, str] = {
    "nnodes": "nnodes",
    "rdzv_id": "job_id",
    "role": "role",
    "log_dir": "log_dir",
    "node_rank": "node_rank",
    "local_addr": "host",
    "shutdown_timeout": "grace_s",
    "max_restarts": "max_restarts",
}
"""Options that are slaunch's own under another name, with the field of `Options`."""


def read(argv: Sequence[str], env: Env, before: Mapping[str, Value]) -> Options:
    """`Options` from torchrun's command line and variables, and beneath them slaunch's own.

    Args:
        argv: what follows the word `torchrun`.
        env: the environment.
        before: slaunch's own options in front of that word.

    Raises:
        UsageError: naming the option or variable, and the bad text.
    """
    given = split(argv, TABLE)
    line = from_line(TABLE, given)
    own = {**before, **{field: value for field, value in line.items() if not field.startswith("torchrun_")}}
    theirs = {**from_env(DIALECT, env), **{field: value for field, value in line.items() if field not in own}}
    options = {field.removeprefix("torchrun_"): value for field, value in theirs.items()}
    default = {"one_per": Value("node", "torchrun's default"), "tee_limit": Value(0.0, "torchrun's default"), **shown({})}
    values = {**default, **beneath(own, env), **translated(options, env), **without_files(own)}
    return settle(given.program and kind_of(given.program, options), with_mode(values), notes(options))


def kind_of(program: Program, options: Mapping[str, Value]) -> Program:
    """The program with what the flags say of it; torchrun runs by Python whatever is not said to be something else.

    Raises:
        UsageError: they contradict each other.
    """
    kinds = {"module": "module", "run_path": "python", "no_python": "executable"}
    given = {flag: options[flag] for flag in kinds if flag in options and options[flag].value}
    if "no_python" in given and len(given) > 1:
        seen = " and ".join(value.source for value in given.values())
        raise UsageError(f"run {program.target}", seen, "leave one of them out")
    return replace(program, kind=next((kinds[flag] for flag in given), "python"))


def translated(options: Mapping[str, Value], env: Env) -> dict[str, Value]:
    """The fields of `Options` that torchrun's options set."""
    values = {field: options[name] for name, field in DIRECT.items() if name in options}
    if any(name in options for name in ("local_ranks_filter", "tee", "redirects")):
        values.update(shown(options))
    if "shutdown_timeout" not in options and "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" in env:
        name = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
        values["grace_s"] = Value(seconds_of(env[name], name), name)
    for translate in (workers_of, meeting_of, flags_of):
        values.update(translate(options))
    return values


def seconds_of(text: str, name: str) -> object:
    """A variable's number of seconds."""
    from slaunch.cli.table import read as read_row

    return read_row(Row((name,), "grace_s", seconds, "SECONDS", "time between the request to stop and SIGKILL"), name, text)


def workers_of(options: Mapping[str, Value]) -> dict[str, Value]:
    """Number of workers, or what one is started for."""
    if "nproc_per_node" not in options:
        return {}
    given = options["nproc_per_node"]
    if isinstance(given.value, int):
        return {"nproc_per_node": given}
    return {"nproc_per_node": Value(0, given.source), "one_per": given}


def meeting_of(options: Mapping[str, Value]) -> dict[str, Value]:
    """Where nodes meet that were started by hand, and for how long they wait."""
    values = {}
    if "rdzv_endpoint" in options and options["rdzv_endpoint"].value:
        values["master"] = with_port(options["rdzv_endpoint"])
    elif "master_addr" in options:
        number = options["master_port"].value if "master_port" in options else 29500
        values["master"] = Value(f"{options['master_addr'].value}:{number}", options["master_addr"].source)
    if "rdzv_conf" in options:
        conf = pairs_of(options["rdzv_conf"])
        limit = next((conf[key] for key in DEADLINES if conf.get(key)), "")
        if limit:
            values["rendezvous_timeout_s"] = Value(seconds_of(limit, "--rdzv-conf"), "--rdzv-conf")
    return values


def pairs_of(conf: Value) -> dict[str, str]:
    """Keys and values of `--rdzv-conf`."""
    return dict(item.partition("=")[::2] for item in str(conf.value).split(",") if item)


def with_port(endpoint: Value) -> Value:
    """The endpoint with a port; torchrun's default is 29400."""
    text = str(endpoint.value)
    return endpoint if text.rpartition(":")[2].isdecimal() and not text.endswith("]") else Value(f"{text}:29400", endpoint.source)


def flags_of(options: Mapping[str, Value]) -> dict[str, Value]:
    """What flags and words stand for."""
    values = {}
    if "standalone" in options and options["standalone"].value:
        nodes = options.get("nnodes")
        if nodes is not None and isinstance(nodes.value, tuple) and nodes.value[0] > 1:
            seen = f"{options['standalone'].source}, and {nodes.source} of {nodes.value[0]} at least"
            raise UsageError("know how many nodes take part", seen, "leave one of them out")
        values["nnodes"] = Value((1, 1), options["standalone"].source)
    if "virtual_local_rank" in options and options["virtual_local_rank"].value:
        values["visible"] = Value("virtual", options["virtual_local_rank"].source)
    if "numa_binding" in options:
        policy = "numa" if options["numa_binding"].value in ("node", "socket") else "auto"
        values["bind"] = Value(policy, options["numa_binding"].source)
    return values


def shown(options: Mapping[str, Value]) -> dict[str, Value]:
    """Whose output is copied to the console: all, but where standard output is redirected and not teed, or filtered out."""
    names = [name for name in ("local_ranks_filter", "tee", "redirects") if name in options]
    source = options[names[0]].source if names else "torchrun's default"
    redirects, tee = streams_of(options, "redirects"), streams_of(options, "tee")

    def visible(rank: int) -> bool:
        return bool(tee.get(rank, tee.get(-1, 0))) or not redirects.get(rank, redirects.get(-1, 0)) & 1

    chosen = options["local_ranks_filter"].value if "local_ranks_filter" in options else ()
    named = chosen if isinstance(chosen, tuple) and chosen != (-1,) else ()
    known = named or sorted({*redirects, *tee} - {-1})
    everyone = visible(-1) and not named
    return {
        "tee": Value((-1,) if everyone else (), source),
        "tee_local": Value(() if everyone else tuple(rank for rank in known if visible(rank)), source),
        "mute_local": Value(tuple(rank for rank in known if not visible(rank)) if everyone else (), source),
    }


def streams_of(options: Mapping[str, Value], name: str) -> Mapping[int, int]:
    """The streams of an option; {} if it is not given."""
    value = options[name].value if name in options else {}
    return value if isinstance(value, dict) else {}


def notes(options: Mapping[str, Value]) -> list[str]:
    """One line for each reason why options had no effect."""
    reasons: dict[str, list[str]] = {}
    for row in ROWS:
        value = options.get(row.field.removeprefix("torchrun_"))
        reason = NO_EFFECT.get(row.field.removeprefix("torchrun_"), "")
        if value is not None and reason:
            reasons.setdefault(reason, []).append(value.source)
    conf = options["rdzv_conf"] if "rdzv_conf" in options else Value("", "")
    if idle := [key for key in pairs_of(conf) if key not in DEADLINES]:
        reasons.setdefault(MEETING, []).append(f"{', '.join(idle)} in {conf.source}")
    return [f"{', '.join(sources)}: no effect, {reason}" for reason, sources in reasons.items()]


def help_text() -> str:
    """The text of `slaunch torchrun --help`."""
    lines = [
        "usage: slaunch torchrun [options] PROGRAM [its options]",
        "",
        "torchrun's options, and what becomes of them. Each can also be set by PET_<NAME>, as for torchrun.",
        "slaunch's own options (`slaunch --help`) can be given, too; where both have a name, it is torchrun's.",
        "",
    ]
    return "\n".join(lines + help_lines(ROWS))
