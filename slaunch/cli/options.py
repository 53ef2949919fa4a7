"""The option table, and how a command line and the environment become `Options`.

One row per option; help, environment variable, parsing and the configuration print-out all come from the row. Options are written
with dashes or underscores (`--nproc-per-node`, `--nproc_per_node`), are never abbreviated, and end where the program begins:
everything after it belongs to the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from slaunch.errors import UsageError
from slaunch.frozen import dataclass, names
from slaunch.options import Options, Program

TRUTH = {
    **dict.fromkeys(("y", "yes", "t", "true", "on", "1"), True),
    **dict.fromkeys(("n", "no", "f", "false", "off", "0"), False),
}


@dataclass(frozen=True)
class Row:
    """One option: its names, the field of `Options` it sets, how its text is read, and its help line."""

    names: tuple[str, ...]
    field: str
    read: Callable[[str], object]
    metavar: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable that sets this option: `SLAUNCH_` and the long name in capitals."""
        return "SLAUNCH_" + self.names[0].lstrip("-").replace("-", "_").upper()


def words(text: str) -> tuple[str, ...]:
    """A comma-separated list, blanks dropped."""
    return tuple(part for part in (piece.strip() for piece in text.split(",")) if part)


def ranks(text: str) -> tuple[int, ...]:
    """A comma-separated list of rank numbers; "none" for none."""
    return () if text == "none" else tuple(natural(part) for part in words(text))


def natural(text: str) -> int:
    """An integer of at least 0."""
    number = int(text)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def positive(text: str) -> int:
    """An integer of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def seconds(text: str) -> float:
    """A positive, finite number of seconds."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError("must be a positive number of seconds")
    return number


def truth(text: str) -> bool:
    """A truth word in any case: y yes t true on 1, n no f false off 0."""
    value = TRUTH.get(text.lower())
    if value is None:
        raise ValueError("must be true or false")
    return value


def shell_words(text: str) -> tuple[str, ...]:
    """Words as a shell splits them, quotes respected."""
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"must be words as a shell reads them ({error})") from None


ROWS: tuple[Row, ...] = (
    Row(("--nproc-per-node",), "nproc_per_node", positive, "N", "workers on each node (default: one per visible device, else 1)"),
    Row(
        ("--devices", "--gpus", "--npus", "--xpus"),
        "devices",
        words,
        "A,B,…",
        "devices to use, by their names in the visible list (default: all)",
    ),
    Row(("--contract",), "contracts", words, "A,B,…", "variables that workers get (default: paddle,torch,slaunch)"),
    Row(("--rendezvous",), "rendezvous", str, "WAY", "how the nodes meet: auto, mpi or slurm (default: auto)"),
    Row(("--rendezvous-timeout",), "rendezvous_timeout_s", seconds, "SECONDS", "deadline of the meeting (default: 60)"),
    Row(("--scheduler",), "scheduler", str, "NAME", "whose variables to read (default: auto, the innermost launcher)"),
    Row(("--job-id",), "job_id", str, "NAME", "name of the job in logs and workers (default: the scheduler's id)"),
    Row(("--log-dir",), "log_dir", str, "DIR", "directory of the logs (default: slaunch-logs/JOB)"),
    Row(("--log-overwrite",), "log_overwrite", truth, "BOOL", "start log files anew instead of appending (default: false)"),
    Row(("--tee",), "tee", ranks, "R,S,…", "ranks whose output is also shown on the console (default: 0)"),
    Row(("--grace",), "grace_s", seconds, "SECONDS", "time between the request to stop and SIGKILL (default: 15)"),
    Row(("--bind",), "bind", str, "POLICY", "CPU binding of workers: auto, numa, core, none, map:…, mask:… (default: auto)"),
    Row(("--network",), "network", str, "NET", "network to use, by interface, subnet or address (default: by rule)"),
    Row(("--keep-env",), "keep_env", words, "A,B*,…", "variables that workers inherit although slaunch would drop them"),
    Row(("--drop-env",), "drop_env", words, "A,B*,…", "further variables that workers must not inherit"),
    Row(("--step-args",), "step_args", shell_words, "'ARGS'", "more arguments for the srun that slaunch starts"),
)

BY_NAME = {name: row for row in ROWS for name in row.names}
PROGRAM_FLAGS = {"-m": "module", "-c": "code"}


@dataclass(frozen=True)
class Given:
    """A command line taken apart: option texts by field (with the name used), and the program."""

    texts: Mapping[str, tuple[str, str]]
    program: Program


def split(argv: Sequence[str]) -> Given:
    """Take `argv` (without the program name) apart at the first word that is no option.

    Raises:
        UsageError: for an unknown option, a missing value, an option given twice, or no program.
    """
    texts: dict[str, tuple[str, str]] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word in PROGRAM_FLAGS:
            return Given(texts, _program(rest, PROGRAM_FLAGS[word], word))
        if word == "--" or not word.startswith("-"):
            return Given(texts, _program(rest if word == "--" else [word, *rest], "script", word))
        name, row = _row(word)
        if row.field in texts:
            raise UsageError(f"read option {name}", f"it is given twice, as {texts[row.field][0]} and {name}", "give it once")
        texts[row.field] = (name, _value(name, word, rest))
    raise UsageError("start workers", "no program on the command line", "name a script: slaunch [options] train.py [its options]")


def _row(word: str) -> tuple[str, Row]:
    name = word.split("=", 1)[0].replace("_", "-")
    row = BY_NAME.get(name)
    if row is None:
        raise UsageError(f"read option {word.split('=', 1)[0]}", "slaunch has no such option", _suggestion(name))
    return name, row


def _suggestion(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return hint + "`slaunch --help` lists all; options of the program go after the program"


def _value(name: str, word: str, rest: list[str]) -> str:
    if "=" in word:
        return word.split("=", 1)[1]
    if not rest:
        raise UsageError(f"read option {name}", "its value is missing", f"write {name} {BY_NAME[name].metavar}")
    return rest.pop(0)


def _program(rest: Sequence[str], kind: str, word: str) -> Program:
    if not rest:
        raise UsageError("start workers", f"nothing follows {word}", "name the program: a script, -m MODULE or -c CODE")
    return Program(rest[0], tuple(rest[1:]), kind)


def read_options(argv: Sequence[str], env: Mapping[str, str]) -> Options:
    """`Options` from the command line, then the `SLAUNCH_*` variables, then the defaults.

    Raises:
        UsageError: naming the option or variable and the bad text.
    """
    given = split(argv)
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for row in ROWS:
        source, text = _text(row, given, env)
        if source:
            values[row.field] = _read(row, source, text)
            origins[row.field] = source
    defaults = {name: "default" for name in names(Options) if name not in ("program", "origins")}
    return Options(given.program, **values, origins={**defaults, **origins})  # type: ignore[arg-type]


def _text(row: Row, given: Given, env: Mapping[str, str]) -> tuple[str, str]:
    if row.field in given.texts:
        return given.texts[row.field]
    if row.variable in env:
        return row.variable, env[row.variable]
    return "", ""


def _read(row: Row, source: str, text: str) -> object:
    try:
        return row.read(text)
    except ValueError as error:
        why = str(error) if "must" in str(error) else "is not a number"
        raise UsageError(f"read {source}", f"its value {text!r} {why}", f"{row.metavar}: {row.help}") from None


def help_text() -> str:
    """The text of `slaunch --help`."""
    lines = [
        "usage: slaunch [options] PROGRAM [its options]       PROGRAM: script.py, any executable, -m MODULE, -c CODE",
        "       slaunch explain [--json] [--step] [--env FILE] [options] PROGRAM [its options]",
        "       slaunch --version | --help",
        "",
        "Start PROGRAM as a distributed job: inside srun or mpirun, from a batch or allocation shell, or on a plain machine.",
        "Ranks, addresses and ports come from the scheduler and the nodes themselves; none is asked of you.",
        "",
        "options (each can also be set by SLAUNCH_<NAME>, e.g. SLAUNCH_LOG_DIR):",
    ]
    for row in ROWS:
        lines.append(f"  {', '.join(row.names)} {row.metavar}\n        {row.help}")
    return "\n".join(lines)
