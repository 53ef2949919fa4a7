"""Option tables, and how a command line is taken apart by one.

One row per option; help, environment variable, parsing and the explanation all come from the row. Options are written with dashes
or underscores (`--nproc-per-node`, `--nproc_per_node`), are never abbreviated, and end where the program begins: everything after
it belongs to the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from slaunch.errors import UsageError
from slaunch.frozen import dataclass, field
from slaunch.options import Program

Env = Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """One option.

    Attributes:
        names: as written on the command line; the first is the one shown.
        field: the field of `Options` that it sets, or the dialect's own name for it.
        read: how its text becomes its value; raises ValueError.
        metavar: how its value is called in the help; "" for a flag, which takes none.
        help: its help line.
        env: variables that set it, strongest first; () = `SLAUNCH_<NAME>`.
        optional: it may stand without its value, which is attached with `=` if it is there.
    """

    names: tuple[str, ...]
    field: str
    read: Callable[[str], object]
    metavar: str
    help: str
    env: tuple[str, ...] = ()
    optional: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that sets this option."""
        return self.env[0] if self.env else "SLAUNCH_" + self.names[0].lstrip("-").replace("-", "_").upper()

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables that set it, strongest first."""
        return self.env or (self.variable,)


@dataclass(frozen=True)
class Table:
    """The options of one command.

    Attributes:
        command: how the user calls it, e.g. "slaunch torchrun".
        rows: its options.
        kinds: flags that say what kind of program follows them.
        last_wins: of an option given twice the last counts, as in the launcher whose options these are; else that is an error.
    """

    command: str
    rows: tuple[Row, ...]
    kinds: Mapping[str, str] = field(default_factory=lambda: {"-m": "module", "-c": "code"})
    last_wins: bool = False

    def by_name(self) -> dict[str, Row]:
        """The rows by every name; of two rows with one name the first."""
        found: dict[str, Row] = {}
        for row in self.rows:
            for name in row.names:
                found.setdefault(name, row)
        return found


@dataclass(frozen=True)
class Given:
    """A command line taken apart: option texts by field (with the name used), and the program (None = none was named)."""

    texts: Mapping[str, tuple[str, str]]
    program: Program | None


@dataclass(frozen=True)
class Value:
    """An option's value and where it came from."""

    value: object
    source: str


def split(argv: Sequence[str], table: Table) -> Given:
    """Take `argv` (without the program name) apart at the first word that is no option.

    Raises:
        UsageError: for an unknown option, a missing value, or an option given twice.
    """
    texts: dict[str, tuple[str, str]] = {}
    by_name = table.by_name()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word in table.kinds:
            return Given(texts, program(rest, table.kinds[word], word))
        if word == "--" or not word.startswith("-") or word == "-":
            return Given(texts, program(rest if word == "--" else [word, *rest], "script", word))
        name, inline = _name(word, by_name)
        row = _row(name, word, by_name, table)
        if row.field in texts and not table.last_wins:
            raise UsageError(f"read option {name}", f"it is given twice, as {texts[row.field][0]} and {name}", "give it once")
        texts[row.field] = (name, _value(name, row, inline, rest))
    return Given(texts, None)


def _name(word: str, by_name: Mapping[str, Row]) -> tuple[str, str | None]:
    """Name and attached value: `--name=value`, `-nvalue`; None = no value attached."""
    if not word.startswith("--") and word[:2] in by_name and len(word) > 2 and by_name[word[:2]].metavar:
        return word[:2], word[2:].removeprefix("=")
    name, equals, value = word.partition("=")
    return (name.replace("_", "-") if name.startswith("--") else name), (value if equals else None)


def _row(name: str, word: str, by_name: Mapping[str, Row], table: Table) -> Row:
    row = by_name.get(name)
    if row is None:
        given = word.split("=", 1)[0]
        raise UsageError(f"read option {given}", f"{table.command} has no such option", suggestion(name, by_name, table.command))
    return row


def suggestion(name: str, known: Iterable[str], command: str) -> str:
    """What to write instead of an unknown option."""
    return f"{nearest(name, known)}`{command} --help` lists all; options of the program go after the program"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, as a question; "" if none is near."""
    import difflib

    longer = [each for each in known if len(name) > 3 and each.startswith(name)]
    near = longer or difflib.get_close_matches(name, [*known], n=1)
    return f"did you mean {near[0]}? " if near else ""


def _value(name: str, row: Row, inline: str | None, rest: list[str]) -> str:
    if not row.metavar:
        if inline is not None:
            raise UsageError(f"read option {name}", f"it takes no value, but has {inline!r}", f"write {name} alone")
        return "true"
    if inline is not None or row.optional:
        return inline or ""
    if not rest:
        raise UsageError(f"read option {name}", "its value is missing", f"write {name} {row.metavar}")
    return rest.pop(0)


def program(rest: Sequence[str], kind: str, word: str) -> Program:
    """The program and its arguments."""
    if not rest:
        raise UsageError("start workers", f"nothing follows {word}", "name the program: a script, -m MODULE or -c CODE")
    return Program(rest[0], tuple(rest[1:]), kind)


def from_line(table: Table, given: Given) -> dict[str, Value]:
    """Values that the command line gives, by field."""
    by_name = table.by_name()
    return {field: Value(read(by_name[name], name, text), name) for field, (name, text) in given.texts.items()}


def from_env(table: Table, env: Env, skip: Iterable[str] = ()) -> dict[str, Value]:
    """Values that variables give, by field; those named in `skip` are left alone."""
    found: dict[str, Value] = {}
    for row in table.rows:
        name = next((name for name in row.variables if name in env and name not in skip), "")
        if name and row.field not in found:
            found[row.field] = Value(read(row, name, env[name]), name)
    return found


def read(row: Row, source: str, text: str) -> object:
    """The value of an option's text.

    Raises:
        UsageError: naming the option or variable and the bad text.
    """
    try:
        return row.read(text)
    except ValueError as error:
        why = str(error) if "must" in str(error) else "is not a number"
        raise UsageError(f"read {source}", f"its value {text!r} {why}", f"{row.metavar or 'BOOL'}: {row.help}") from None


def help_lines(rows: Iterable[Row]) -> list[str]:
    """The options as the help shows them."""
    return [f"  {', '.join(row.names)} {row.metavar}".rstrip() + f"\n        {row.help}" for row in rows]
