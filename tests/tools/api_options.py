"""Write slaunch/api_options.py, the keyword arguments of `slaunch.launch` for type checkers, from the command line's table.

    python tests/tools/api_options.py
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable

from slaunch.cli import texts
from slaunch.cli.rows import ROWS
from slaunch.cli.table import Row

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "slaunch", "api_options.py")
HEAD = '''"""The options of `slaunch.launch`, for type checkers. Made by `python tests/tools/api_options.py`, not by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class LaunchOptions(TypedDict, total=False):
    """Options by their long names; None = not given. What they mean is told by `slaunch --help`."""

'''
WORDS = "str | Sequence[str]"
TYPES: dict[Callable[[str], object], str] = {
    **dict.fromkeys((texts.natural, texts.positive, texts.port), "int"),
    **dict.fromkeys((texts.seconds, texts.seconds_or_none), "float"),
    **dict.fromkeys((texts.words, texts.shell_words), WORDS),
    texts.truth: "bool",
    texts.yes_no_auto: 'bool | Literal["auto"]',
    texts.ranks: 'int | Sequence[int] | Literal["none", "all"]',
    texts.number_or_all: 'int | Literal["all"]',
    texts.bounds: "int | str",
    texts.size: "int | str",
    texts.lines_a_second: 'float | Literal["none"]',
}


def type_of(row: Row) -> str:
    """The type of an option's values: by how its text is read; of a choice, its words."""
    if row.read in TYPES:
        return TYPES[row.read]
    try:
        row.read("\0")
    except ValueError as error:
        found = re.match(r"must be one of (.*)$", str(error))
        if found:
            return "Literal[" + ", ".join(f'"{word}"' for word in found[1].split(", ")) + "]"
    return "str"


def keyword(name: str) -> str:
    """An option's name as Python has it."""
    return name.removeprefix("--").replace("-", "_")


def field(row: Row) -> str:
    """The lines of an option and its aliases."""
    told = textwrap.wrap(row.help, 122, initial_indent="    # ", subsequent_indent="    # ")
    names = [keyword(name) for name in row.names if name.startswith("--")]
    return "\n".join([*told, *(f"    {name}: {type_of(row)} | None" for name in names)])


def made() -> str:
    """The whole module."""
    return HEAD + "\n".join(map(field, ROWS)) + "\n"


if __name__ == "__main__":
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(made())
