"""Finds a named number in a line of a log. Pure.

Accepted are `name: 12.5`, `name=1.5e3`, `name 1,234.5`, `"name": -3` inside other text, a line that is one JSON object, and
`12.5 name` where no number follows the name. The name counts only as a whole word. A line that gives the name two different
numbers is ambiguous: which one is meant cannot be known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

NUMBER = r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:[nN][aA][nN]|[iI]nf(?:inity)?)\b"
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Reader = Callable[[str], tuple[float, ...]]
"""The numbers that a line gives; more than one: it is ambiguous."""


def reader(name: str, pattern: str = "") -> Reader:
    """What reads the metric of this name, or by the user's own regular expression."""
    if pattern:
        return by_pattern(re.compile(pattern))
    word = re.escape(name)
    after = re.compile(rf"(?<!\w){word}(?!\w)[\"']?\s*[:=]*\s*({NUMBER})")
    before = re.compile(rf"(?<![\w.])({NUMBER})\s*{word}(?!\w)")
    last = name.rpartition(".")[2]

    def read(line: str) -> tuple[float, ...]:
        if last not in line:
            return ()
        if line.lstrip().startswith("{"):
            found = in_json(line, name)
            if found is not None:
                return (found,)
        return numbers(after.findall(line)) or numbers(before.findall(line))

    return read


def by_pattern(pattern: re.Pattern[str]) -> Reader:
    """What reads by a regular expression: its group "value", or else its first."""
    group: str | int = "value" if "value" in pattern.groupindex else 1

    def read(line: str) -> tuple[float, ...]:
        return numbers([match[group] for match in pattern.finditer(line) if match[group]])

    return read


def numbers(texts: list[str]) -> tuple[float, ...]:
    """The different numbers of the texts; what is no number is left out."""
    found = []
    for text in texts:
        try:
            found.append(float(text.replace(",", "")))
        except ValueError:
            continue
    return tuple({repr(value): value for value in found}.values())  # by text, as nan does not equal itself


def in_json(line: str, name: str) -> float | None:
    """The number of a JSON object's member, also by dotted path; None if there is none."""
    try:
        here = json.loads(line)
    except ValueError:
        return None
    if isinstance(here, dict) and name in here:
        here = here[name]
    else:
        for part in name.split("."):
            here = here.get(part) if isinstance(here, dict) else None
    return float(here) if isinstance(here, int | float) and not isinstance(here, bool) else None


def clean(line: str) -> list[str]:
    """The lines that a terminal would have shown: progress bars write over themselves, colours are no text."""
    return [COLOURS.sub("", part) for part in line.rstrip("\r\n").split("\r")]
