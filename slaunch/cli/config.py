"""Configuration files: `slaunch.toml` here, in ~/.config and in /etc; or the one that `--config` or SLAUNCH_CONFIG names.

    network = "ib0"             # option names as on the command line, with dashes or underscores
    keep_env = ["MY_*"]         # lists where the command line has commas

    [submit]                    # defaults for `slaunch submit`: its own options and sbatch's
    partition = "gpu"

    [profile.debug]             # chosen by --profile debug or SLAUNCH_PROFILE=debug; stronger than the lines above
    grace = 2

A nearer file wins over a farther one, option by option. Files are weaker than variables, and those than the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slaunch.cli.table import Row, Value, nearest, read
from slaunch.errors import MissingToolError, UsageError

SECTIONS = ("submit",)
"""Tables that belong to one command."""


def from_files(rows: Sequence[Row], paths: Sequence[str], needed: bool, profile: str, section: str = "") -> dict[str, Value]:
    """Values that configuration files give, by field.

    Args:
        rows: the options that a file may set.
        paths: the files, nearest first.
        needed: they must be there; else those that are not are left aside.
        profile: the profile to use, which one of the files must have; "" = none.
        section: the table that has them, in a file and in a profile; "" = they stand outside such tables.

    Raises:
        UsageError: a file cannot be read, names an unknown option or gives one a wrong value, or no file has the profile.
    """
    trees = [(path, parse(path, text)) for path in paths if (text := content(path, needed))]
    if profile and not any(profile in profiles(path, tree) for path, tree in trees):
        raise no_profile(profile, trees, paths)
    found: dict[str, Value] = {}
    for path, tree in trees:
        own = profiles(path, tree).get(profile, {})
        for values, source in ((own, f"{path} [profile.{profile}]"), (tree, path)):
            for field, value in settings(rows, part(values, section, source), source):
                found.setdefault(field, value)
    return found


def content(path: str, needed: bool) -> str:
    """The text of a file; "" if it is not there and need not be."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError as error:
        if not needed:
            return ""
        problem: Exception = error
    except (OSError, UnicodeDecodeError) as error:
        problem = error
    raise UsageError("read the configuration file", f"{path}: {problem}", "name a readable file in --config, or mend this one")


def parse(path: str, text: str) -> dict[str, Any]:
    """TOML as a tree."""
    toml = library(path)
    try:
        tree: dict[str, Any] = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise UsageError("read the configuration file", f"{path}: {error}", "mend the file: it must be TOML") from None
    return tree


def library(path: str) -> Any:
    """The standard library's TOML reader, or its twin for Python 3.10."""
    if TYPE_CHECKING or sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    try:
        import tomli
    except ImportError:
        todo = "pip install tomli (Python 3.11 has it built in), or remove the file"
        raise MissingToolError(f"read {path}", "no module tomli", todo) from None
    return tomli


def profiles(path: str, tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """The profiles of a file, by name."""
    found = tree.get("profile", {})
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise UsageError("read the configuration file", f"{path}: profile is no table of tables", "write [profile.NAME]")
    return found


def part(values: Mapping[str, Any], section: str, source: str) -> Mapping[str, Any]:
    """The settings of a section, or those outside sections and profiles."""
    if not section:
        return {name: value for name, value in values.items() if name not in ("profile", *SECTIONS)}
    found = values.get(section, {})
    if not isinstance(found, dict):
        raise UsageError(f"read {section} in {source}", f"it is {found!r}, no table", f"write [{section}] and settings below")
    return found


def no_profile(profile: str, trees: Sequence[tuple[str, Mapping[str, Any]]], paths: Sequence[str]) -> UsageError:
    """The error of a profile that no file has."""
    known = sorted({name for path, tree in trees for name in profiles(path, tree)})
    where = ", ".join(path for path, _ in trees) or f"no file {', '.join(paths)}"
    seen = f"{where}: {'profiles ' + ', '.join(known) if known else 'no profile at all'}"
    return UsageError(
        f"use the profile {profile!r}", seen, f"add [profile.{profile}] to one of the files, or name another profile"
    )


def settings(rows: Sequence[Row], values: Mapping[str, Any], source: str) -> Iterator[tuple[str, Value]]:
    """Field and value of each setting."""
    known = {name.lstrip("-"): row for row in rows for name in row.names}
    for name, value in values.items():
        row = known.get(name.replace("_", "-"))
        if row is None:
            todo = nearest(name.replace("_", "-"), known) + "`slaunch --help` lists all options"
            raise UsageError(f"read {name} in {source}", "slaunch has no such option", todo)
        yield row.field, Value(read(row, f"{name} in {source}", text_of(name, value, source)), source)


def text_of(name: str, value: object, source: str) -> str:
    """A TOML value as the command line would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return words_of(name, [str(item) for item in value])
    raise UsageError(
        f"read {name} in {source}", f"its value is {value!r}", "give a text, a number, true, false or a list of these"
    )


def words_of(name: str, items: Sequence[str]) -> str:
    """A list as one text: words for a shell where the option wants those, else with commas."""
    if name == "setup":
        return "\n".join(items)
    if name.replace("_", "-") in ("step-args", "container", "pre-hook", "sbatch", "set"):
        import shlex

        return shlex.join(items)
    return ",".join(items)
