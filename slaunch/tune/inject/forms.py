"""The forms in which `run_cmd` says how a value reaches the program, read into values.

The first item of a list tells the form, and only as a whole: a path that happens to contain `--` or `-o` stays a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from slaunch.frozen import dataclass
from slaunch.tune.config.kinds import meant
from slaunch.tune.space.dimensions import NAMES

FILES = (".json", ".yaml", ".yml")
DERIVED = ("local_batch_size", "gradient_accumulation_steps", "global_batch_size", "refined_recompute")
"""Keys of `run_cmd` that are no dimensions; `sequence_parallel` is derived unless it is one."""
SETTINGS = ("generate_launch_cfg", "config_files", "search_stage", "run_best_stage")
HYBRIDS = ("sharding_mp", "sharding_pp", "sharding_mp_pp", "no_overlap")


@dataclass(frozen=True)
class Arguments:
    """Words for the program's command line; `{}` in the word at `slot` is the value."""

    words: tuple[str, ...]
    slot: int


@dataclass(frozen=True)
class Flag:
    """An option that is there if the value is true."""

    option: str


@dataclass(frozen=True)
class Variable:
    """An environment variable."""

    name: str
    prefix: str = ""


@dataclass(frozen=True)
class Edit:
    """A value in a JSON or YAML file, by dotted path; `prefix` None = the value itself, else a text that begins with it."""

    file: str
    key: str
    prefix: str | None = None


Form = Arguments | Flag | Variable | Edit


def read_form(given: object) -> Form:
    """The form of a checked entry of `run_cmd`.

    Raises:
        ValueError: it is none; says why.
    """
    if isinstance(given, list):
        return read_list(given)
    assert isinstance(given, dict)
    prefix = str(given["prefix"]) if "prefix" in given else None
    if "option" in given:
        return Arguments((given["option"], f"{prefix or ''}{{}}"), 1)
    if "flag" in given:
        return Flag(given["flag"])
    if "env" in given:
        return Variable(given["env"], prefix or "")
    return read_list([given["file"], given["key"], *([] if prefix is None else [prefix])])


def read_list(given: Sequence[object]) -> Form:
    """The form of a list, as Paddle's tuner has them.

    Raises:
        ValueError: it is none; says why.
    """
    words = [str(item) for item in given]
    first = words[0]
    if first.endswith(FILES):
        if len(words) not in (2, 3):
            raise ValueError(f"{first} needs a dotted path, and may have a prefix: {len(words) - 1} words follow it")
        return Edit(first, words[1], words[2] if len(words) == 3 else None)
    if first == "-o":
        if len(words) < 2:
            raise ValueError("-o needs the name of a setting")
        return Arguments((first, f"{words[1]}={{}}", *words[2:]), 1)
    if first.startswith("--"):
        return Arguments((first, f"{words[1] if len(words) > 1 else ''}{{}}", *words[2:]), 1)
    raise ValueError(f"{first!r} is neither an option (--name), -o, nor a .json or .yaml file")


def read_fixed(given: Sequence[object]) -> Arguments | tuple[Edit, object]:
    """An extra setting that does not depend on the trial: words for the command line, or an edit and its value.

    Raises:
        ValueError: it is none; says why.
    """
    first = str(given[0])
    if not first.endswith(FILES):
        if not first.startswith("-"):
            raise ValueError(f"{first!r} is neither an option nor a .json or .yaml file")
        return Arguments(tuple(map(str, given)), -1)
    if len(given) != 3:
        raise ValueError(f"{first} needs a dotted path and a value")
    return Edit(first, str(given[1])), given[2]


def overlap_groups(given: Sequence[object], single: bool) -> list[Sequence[object]]:
    """Keys and values after the file: each key has one value; in single-replica estimation it may have two, with and without.

    Raises:
        ValueError: they do not come out even.
    """
    rest = given[1:]
    width = 3 if single and rest and len(rest) % 3 == 0 else 2
    if not rest or len(rest) % width:
        raise ValueError(f"{given[0]} needs a dotted path and a value, as often as needed")
    return [rest[i : i + width] for i in range(0, len(rest), width)]


def wrong_overlap(where: str, given: object, single: bool) -> Iterator[str]:
    """What is wrong with one kind of overlap settings."""
    assert isinstance(given, list)
    first = str(given[0])
    try:
        if first.endswith(FILES):
            overlap_groups(given, single)
        elif not first.startswith("-"):
            raise ValueError(f"{first!r} is neither an option nor a .json or .yaml file")
        elif first.startswith("--") and len(given) % 2:
            raise ValueError("options and values must come in pairs")
    except ValueError as error:
        yield f"{where}: {error}"


def wrong_forms(inject: Mapping[str, object], own: Sequence[str], overlap: Mapping[str, object], single: bool) -> Iterator[str]:
    """What is wrong with `run_cmd` and `sharding_overlap`, one line for each. `single`: for single-replica estimation."""
    known = (*NAMES, *DERIVED, *own)
    for name, given in inject.items():
        if name in ("search_stage", "run_best_stage"):
            yield from wrong_stage(f"run_cmd.{name}", given)
        elif name not in SETTINGS:
            if name not in known:
                yield f"run_cmd.{name}: there is no such dimension{meant(name, known)}"
            yield from wrong_form(f"run_cmd.{name}", name, given)
    for name, given in overlap.items():
        if name not in HYBRIDS:
            yield f"search_algo.sharding_overlap.{name}: there is no such key{meant(name, HYBRIDS)}"
        yield from wrong_overlap(f"search_algo.sharding_overlap.{name}", given, single)


def wrong_form(where: str, name: str, given: object) -> Iterator[str]:
    """What is wrong with one entry."""
    try:
        form = read_form(given)
    except ValueError as error:
        yield f"{where}: {error}"
        return
    if name == "refined_recompute" and not (isinstance(form, Edit) and form.prefix is None):
        yield f"{where}: its value is an object, so it needs a JSON or YAML file and a dotted path without a prefix"


def wrong_stage(where: str, given: object) -> Iterator[str]:
    """What is wrong with the settings of a stage."""
    assert isinstance(given, dict)
    for name, each in given.items():
        try:
            read_fixed(each)
        except ValueError as error:
            yield f"{where}.{name}: {error}"
