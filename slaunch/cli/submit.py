"""`slaunch submit [options of sbatch and of slaunch] PROGRAM [its options]`: what the command line asks for.

Options of sbatch and of slaunch may stand in any order. A name that both have is sbatch's where this table has it; sbatch's other
options go into `--sbatch`. What wins: command line, then sbatch's own variables (SBATCH_…), then the table [submit] of the
configuration files. A colon parts the components of a heterogeneous job.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from slaunch.cli import sbatch_rows
from slaunch.cli.dialects import DIALECTS
from slaunch.cli.options import FILES, places, read_options
from slaunch.cli.rows import ROWS
from slaunch.cli.table import Given, Row, Table, Value, from_env, help_lines, read, split
from slaunch.cli.texts import filled, one_of, seconds, shell_words, truth
from slaunch.errors import UsageError
from slaunch.frozen import dataclass
from slaunch.options import Program
from slaunch.submit.values import Request
from slaunch.templates import own_folders

OWN = (
    Row(("--template", "-T"), "submit:template", filled, "NAME", "template, by name or path (default: by the options)"),
    Row(("--set",), "submit:set", shell_words, "'NAME=VALUE …'", "further fields of the template"),
    Row(("--setup",), "submit:setup", filled, "'COMMAND'", "shell command before slaunch, e.g. 'module load cuda'"),
    Row(("--sbatch",), "submit:sbatch", shell_words, "'ARGS'", "more arguments for sbatch, e.g. of a site's plug-ins"),
    Row(("--dry-run",), "submit:dry-run", truth, "", "print the script, let sbatch check it, and submit nothing"),
    Row(("--wait", "-W"), "submit:wait", truth, "", "wait for the end of the job, and end with its exit code"),
    Row(("--follow", "-f"), "submit:follow", truth, "", "as --wait, and show the job's output"),
    Row(("--poll",), "submit:poll", seconds, "SECONDS", "longest pause between two questions to Slurm meanwhile (default: 30)"),
    Row(("--templates",), "submit:templates", filled, "DIR:DIR", "where to look for templates first; in files: the site's"),
    Row(
        ("--gpu-form",),
        "submit:gpu-form",
        one_of("auto", "gpus-per-node", "gres"),
        "FORM",
        "how to ask for GPUs: gpus-per-node, gres, or auto (as the site's Slurm can; default)",
    ),
    Row(("--gpu-type",), "submit:gpu-type", filled, "TYPE", "type of GPU to name where --gpus-per-node has none"),
)
SBATCH = sbatch_rows.rows()
TABLE = Table("slaunch submit", (*OWN, *SBATCH, *ROWS), {"-m": "module"})
OPTIONS = Table("slaunch", ROWS).by_name()
LEADS = ("account", "partition", "qos", "reservation", "time", "exclusive", "constraint", "wckey")
"""Options whose defaults hold for every component of a job; the others' for the first."""


@dataclass(frozen=True)
class Asked:
    """What the user asked for: the job, and what to do with it."""

    request: Request
    dry_run: bool
    wait: bool
    follow: bool
    poll_s: float


def parse(args: Sequence[str], env: Mapping[str, str]) -> Asked:
    """Read the command line, with variables and configuration files beneath it.

    Raises:
        UsageError: naming what is wrong, also in the options of slaunch.
    """
    given = parts(args)
    words = merged(given)
    line = {field: Value(read(TABLE.by_name()[name], name, text), name) for field, (name, text) in words.items()}
    below = beneath(line, env)
    own = {field: value.value for field, value in {**below, **line}.items() if field.startswith("submit:")}
    asked = tuple(component(part, below, number == 0) for number, part in enumerate(given))
    components, again = requeued(tuple(without_bad(part, words) for part in asked))
    program = given[-1].program
    template = str(own.get("submit:template") or choose(program, components[0], line))
    request = Request(
        (named(components[0], program), *components[1:]),
        template,
        command(program, {**words, **again}, template, env),
        lines(own.get("submit:setup")),
        dict(pair(word) for word in texts(own.get("submit:set"))),
        (*filter(None, str(own.get("submit:templates", "")).split(":")), *own_folders(env)),
        texts(own.get("submit:sbatch")),
        str(own.get("submit:gpu-form", "auto")),
        str(own.get("submit:gpu-type", "")),
        program.target if program and program.kind == "script" and program.target not in (*DIALECTS, "tune") else "",
    )
    follow = bool(own.get("submit:follow"))
    return Asked(
        request,
        bool(own.get("submit:dry-run")),
        follow or bool(own.get("submit:wait")),
        follow,
        float(str(own.get("submit:poll", 30.0))),
    )


def parts(args: Sequence[str]) -> tuple[Given, ...]:
    """The command line, by components of the job."""
    found = [split(args, TABLE)]
    while (program := found[-1].program) and (program.target, program.kind) == (":", "script"):
        found.append(split(program.args, TABLE))
    return tuple(found)


def merged(given: Sequence[Given]) -> dict[str, tuple[str, str]]:
    """The options that are not sbatch's, wherever they stand."""
    found: dict[str, tuple[str, str]] = {}
    for part in given:
        for field, text in part.texts.items():
            if field.startswith(sbatch_rows.FIELD):
                continue
            if field in found:
                raise UsageError(f"read option {text[0]}", "it is given twice, for two components", "give it once")
            found[field] = text
    return found


def beneath(line: Mapping[str, Value], env: Mapping[str, str]) -> dict[str, Value]:
    """What sbatch's variables and the table [submit] of the configuration files say."""
    values = from_env(Table("sbatch", SBATCH), env)
    named = {**from_env(Table("slaunch", tuple(row for row in ROWS if row.field in FILES)), env), **line}
    config, profile = (str(named[name].value) if name in named else "" for name in FILES)
    from slaunch.cli.config import from_files

    return {**from_files((*OWN, *SBATCH), (config,) if config else places(env), bool(config), profile, "submit"), **values}


def component(part: Given, below: Mapping[str, Value], first: bool) -> dict[str, str]:
    """sbatch's options for a component of the job, with what lies beneath the command line."""
    rows = TABLE.by_name()
    line = {field: Value(read(rows[name], name, text), name) for field, (name, text) in part.texts.items()}
    found = {}
    for field, value in {**below, **line}.items():
        name = field.removeprefix(sbatch_rows.FIELD)
        if name != field and (first or field in line or name in LEADS) and value.value is not False:
            found[name] = "" if value.value is True else str(value.value)
    return found


def without_bad(options: dict[str, str], words: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """sbatch's options, without the nodes that --exclude-bad has a list of."""
    if "exclude_bad" not in words:
        return options
    import time

    from slaunch.badnodes import out
    from slaunch.badnodes import read as read_faults

    bad = out(read_faults(words["exclude_bad"][1]), time.time())
    nodes = ",".join(filter(None, (options.get("exclude", ""), *bad)))
    return {**options, "exclude": nodes} if nodes else options


def requeued(components: tuple[dict[str, str], ...]) -> tuple[tuple[dict[str, str], ...], dict[str, tuple[str, str]]]:
    """sbatch's options, and slaunch's that --requeue=WHEN stands for: Slurm may requeue the job, and slaunch asks it to."""
    first, *others = components
    when = first.get("requeue", "")
    if not when:
        return components, {}
    return ({"open-mode": "append", **first, "requeue": ""}, *others), {"requeue": ("--requeue", when)}


def named(options: Mapping[str, str], program: Program | None) -> dict[str, str]:
    """The options, with a name for the job: that of its program."""
    target = program.target if program else "interactive"
    if program and target in (*DIALECTS, "tune") and program.args:
        target = next((word for word in program.args if not word.startswith("-") and word.endswith(".py")), target)
    base = os.path.basename(target)
    plain = "".join(char for char in base.removesuffix(".py") if char.isalnum() or char in "._-")
    return {"job-name": plain or "slaunch", **options}


def choose(program: Program | None, options: Mapping[str, str], line: Mapping[str, Value]) -> str:
    """The template for a job whose user names none."""
    if program and (program.target, program.kind) == ("tune", "script"):
        return "tune"
    if "array" in options:
        return "array"
    if str(line["mode"].value if "mode" in line else "") == "ps" or any(name in line for name in ("server_num", "trainer_num")):
        return "ps"
    nodes = line["nnodes"].value if "nnodes" in line else (0, 0)
    assert isinstance(nodes, tuple)
    return "elastic" if nodes[0] != nodes[1] or "spares" in line else "collective"


def command(
    program: Program | None, words: Mapping[str, tuple[str, str]], template: str, env: Mapping[str, str]
) -> tuple[str, ...]:
    """The command line of slaunch inside the job, which has been read once to see whether it is right."""
    options = tuple(option(name, text) for field, (name, text) in words.items() if not field.startswith("submit:"))
    if program is None:
        return options
    kinds = {"module": ("-m",)}
    rest = (*kinds.get(program.kind, ()), program.target, *program.args)
    if program.target == "tune" and template == "tune":
        rest = rest[1:]
    if template == "tune":
        read_options((*options, *rest[1:]), env)
        return (*rest[:1], *options, *rest[1:])
    read_options((*options, *rest), env)
    return (*options, *rest)


def option(name: str, text: str) -> str:
    """An option as one word."""
    row = OPTIONS[name]
    return f"{row.names[0]}={text}" if row.metavar else row.names[0]


def pair(word: str) -> tuple[str, str]:
    """A field of the template, from NAME=VALUE."""
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError("read option --set", f"{word!r} is not NAME=VALUE", "write --set 'image=torch.sif runtime=apptainer'")
    return name, value


def texts(value: object) -> tuple[str, ...]:
    """A list of words; () if there is none."""
    return value if isinstance(value, tuple) else ()


def lines(value: object) -> tuple[str, ...]:
    """Lines of shell."""
    return tuple(str(value).splitlines()) if value else ()


def help_text() -> str:
    """The text of `slaunch submit --help`."""
    head = """\
usage: slaunch submit [options of sbatch and of slaunch] PROGRAM [its options]

Write a batch script, let sbatch check it, and submit it. The job's id goes to stdout, everything else to stderr.
The options of `slaunch --help` go on to slaunch inside the job. Those below are for sbatch, or for the script. Defaults for them
may stand in the table [submit] of slaunch.toml, and sbatch's variables (SBATCH_…) hold as well.
"""
    return "\n".join([head, "options:", *help_lines(OWN), "", "options for sbatch:", *help_lines(SBATCH)])


