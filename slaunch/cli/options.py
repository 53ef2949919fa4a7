"""How a command line, variables and configuration files become `Options`.

    slaunch [options] PROGRAM …             slaunch's own (`cli.rows`)
    slaunch torchrun [options] PROGRAM …    torchrun's (`cli.torchrun`)
    slaunch paddle [options] PROGRAM …      Paddle's (`cli.paddle`); `slaunch fleetrun` is the same

The command line is stronger than variables, these than files, these than defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module

from slaunch.cli.dialects import DIALECTS
from slaunch.cli.modes import with_mode
from slaunch.cli.rows import ROWS, TABLE
from slaunch.cli.table import Env, Value, from_env, from_line, help_lines, split
from slaunch.errors import UsageError
from slaunch.frozen import names
from slaunch.options import Options, Program

CONFIG = "slaunch.toml"
FILES = ("config", "profile")
"""Fields that name where other fields come from."""


def read_options(argv: Sequence[str], env: Env) -> Options:
    """`Options` from the command line, the variables, the configuration files and the defaults.

    Raises:
        UsageError: naming the option, variable or file, and the bad text; or no program was named.
    """
    given = split(argv, TABLE)
    dialect = dialect_of(argv, given.program)
    if dialect and given.program:
        made = import_module(dialect).read(given.program.args, env, from_line(TABLE, given))
        assert isinstance(made, Options)
        return made
    return settle(given.program, with_mode(beneath(from_line(TABLE, given), env)), ())


def dialect_of(argv: Sequence[str], program: Program | None) -> str:
    """The module of another launcher's command line, if its word stands in the program's place; "" if not, or after `--`."""
    if program is None or program.kind != "script" or argv[: -len(program.args) - 1][-1:] == ["--"]:
        return ""
    return DIALECTS.get(program.target, "")


def beneath(line: Mapping[str, Value], env: Env) -> dict[str, Value]:
    """What the command line gives, and beneath it slaunch's own variables and configuration files."""
    values = {**from_env(TABLE, env), **line}
    config, profile = (str(values[name].value) if name in values else "" for name in FILES)
    if not (config or profile or any(map(os.path.exists, places(env)))):
        return values
    from slaunch.cli.config import from_files

    rows = [row for row in ROWS if row.field not in FILES]
    return without_files({**from_files(rows, (config,) if config else places(env), bool(config), profile), **values})


def places(env: Env) -> tuple[str, ...]:
    """Where configuration files are looked for, nearest first."""
    home = env.get("XDG_CONFIG_HOME") or (os.path.join(env["HOME"], ".config") if env.get("HOME") else "")
    return (CONFIG, *((os.path.join(home, CONFIG),) if home else ()), os.path.join("/etc", CONFIG))


def without_files(values: Mapping[str, Value]) -> dict[str, Value]:
    """The values less those that name a file or profile to read."""
    return {field: value for field, value in values.items() if field not in FILES}


def settle(program: Program | None, values: Mapping[str, Value], notes: Sequence[str]) -> Options:
    """The values as `Options`.

    Raises:
        UsageError: there is no program, or it does not fit the roles.
    """
    if "parts" in values:
        from slaunch.cli.roles import check_numbers, with_program

        given = values["parts"]
        check_numbers(given, values)
        mode = str(values["mode"].value) if "mode" in values else Options.mode
        parts = with_program(given.value, program, mode, given.source)  # type: ignore[arg-type]
        values = {**values, "parts": Value(parts, given.source)}
        program = program or parts[0].program
    if program is None:
        raise UsageError(
            "start workers", "no program on the command line", "name a script: slaunch [options] train.py [its options]"
        )
    defaults = {name: "default" for name in names(Options) if name not in ("program", "origins", "notes")}
    origins = {**defaults, **{field: value.source for field, value in values.items()}}
    fields = {field: value.value for field, value in values.items()}
    return Options(program, **fields, notes=tuple(notes), origins=origins)  # type: ignore[arg-type]


def help_text() -> str:
    """The text of `slaunch --help`."""
    lines = [
        "usage: slaunch [options] PROGRAM [its options]       PROGRAM: script.py, any executable, -m MODULE, -c CODE",
        "       slaunch torchrun [torchrun's options] PROGRAM [its options]",
        "       slaunch paddle [options of paddle.distributed.launch] PROGRAM [its options]",
        "       slaunch tune CONFIG [options] PROGRAM [its options]",
        "       slaunch submit [options of sbatch and these] PROGRAM [its options]",
        "       slaunch status [JOB]",
        "       slaunch logs | cancel | report [options] JOB",
        "       slaunch explain [--bind] [--json] [--step] [--env FILE] [options] PROGRAM [its options]",
        "       slaunch doctor [--json] [--quick] [--scratch DIR] [--step-args 'ARGS'] [PROGRAM]",
        "       slaunch --version | --help",
        "",
        "Start PROGRAM as a distributed job: inside srun or mpirun, from a batch or allocation shell, or on a plain machine.",
        "Ranks, addresses and ports come from the scheduler and the nodes themselves; none is asked of you.",
        "",
        'options (each can also be set by SLAUNCH_<NAME>, e.g. SLAUNCH_LOG_DIR, or in slaunch.toml, e.g. log_dir = "logs"):',
    ]
    return "\n".join(lines + help_lines(ROWS))
