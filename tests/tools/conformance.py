"""The conformance table: which test proves each feature (F), pitfall (P) and weakness avoided (W), or why none does.

    python tests/tools/conformance.py            write docs/conformance.md, after dropping "later" reasons of what is tested now
    python tests/tools/conformance.py --check    exit 1, naming what is wrong, if the page, the reasons and the tests disagree

Tests carry the numbers in their names: `test_f77_global_rank`, `test_p06_compressed_counts`, `test_f14_f15_number_of_workers`.
Titles and reasons are in `conformance.txt` beside this file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

TOOLS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(TOOLS))
PAGE = os.path.join(ROOT, "docs", "conformance.md")
LIST = os.path.join(TOOLS, "conformance.txt")
HEAD = """\
# Features of Paddle's launcher (F), pitfalls of launching on Slurm and MPI (P), weaknesses of Paddle's launcher that slaunch must
# not have (W): number | title | why it has no test.
# An entry without a reason must have a test that carries its number; `python tests/tools/conformance.py` says which do not.
"""
LAST = {"F": 331, "P": 104, "W": 65}
NAME = re.compile(r"^\s*(?:async )?def (test((?:_(?:to_)?[fpw]\d+)+)(?:_\w*)?)\(", re.MULTILINE)
NOT_YET = ("later:", "tuner: not built yet")


@dataclass(frozen=True)
class Entry:
    """A feature or pitfall: its number ("F77"), its title, and the reason why no test carries it ("" = one does)."""

    number: str
    title: str
    reason: str


def entries(text: str) -> list[Entry]:
    """The entries of `conformance.txt`."""
    rows = [line.split(" | ") for line in text.splitlines() if line and not line.startswith("#")]
    return [Entry(number.strip(), title.strip(" |"), reason[0].strip() if reason else "") for number, title, *reason in rows]


def tests(root: str) -> dict[str, list[str]]:
    """Tests by the number they carry, each as "folder/file::name"."""
    found: dict[str, list[str]] = {}
    for path in _files(root):
        for match in NAME.finditer(_read(path)):
            for number in numbers(match[2]):
                found.setdefault(number, []).append(f"{os.path.relpath(path, root)}::{match[1]}")
    return found


def numbers(text: str) -> list[str]:
    """The numbers in a test's name: "_f75_to_f78_p06" gives F75 to F78 and P6."""
    found: list[str] = []
    for to, kind, digits in re.findall(r"_(to_)?([fpw])(\d+)", text):
        last = int(digits)
        first = int(found[-1][1:]) + 1 if to else last
        found += [f"{kind.upper()}{number}" for number in range(first, last + 1)]
    return found


def _files(root: str) -> Iterator[str]:
    for folder, _, names in sorted(os.walk(root)):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.startswith("test_") and name.endswith(".py"))


def problems(listed: Sequence[Entry], tested: Mapping[str, Sequence[str]]) -> list[str]:
    """What is wrong: numbers missing or doubled, entries with neither test nor reason, tests and reasons that disagree."""
    numbers = [entry.number for entry in listed]
    wanted = [f"{kind}{n}" for kind, last in LAST.items() for n in range(1, last + 1)]
    wrong = [f"{number}: listed {numbers.count(number)} times" for number in wanted if numbers.count(number) != 1]
    wrong += [f"{number}: no such entry, but tested by {', '.join(tested[number])}" for number in tested if number not in wanted]
    for entry in listed:
        if not entry.reason and entry.number not in tested:
            wrong.append(f"{entry.number} ({entry.title}): neither a test nor a reason")
        if is_stale(entry, tested):
            wrong.append(f"{entry.number} ({entry.title}): '{entry.reason}', but tested by {', '.join(tested[entry.number])}")
    return wrong


def is_stale(entry: Entry, tested: Mapping[str, Sequence[str]]) -> bool:
    """The reason says that it is not built yet, and yet there is a test."""
    return entry.reason.startswith(NOT_YET) and entry.number in tested


def page(listed: Sequence[Entry], tested: Mapping[str, Sequence[str]]) -> str:
    """The text of docs/conformance.md."""
    lines = [
        "# Conformance",
        "",
        "Made by `python tests/tools/conformance.py`; not to be edited by hand. F: features of Paddle's launcher. P: pitfalls of",
        "launching on Slurm and MPI. W: weaknesses of Paddle's launcher and tuner, which slaunch must not have. Each has a test",
        "that carries its number, or the reason why not.",
        "",
        f"With tests: {sum(e.number in tested for e in listed)} of {len(listed)}.",
    ]
    for kind, title in (("F", "Features"), ("P", "Pitfalls"), ("W", "Weaknesses avoided")):
        lines += ["", f"## {title}", "", "| # | what | tests, or why none |", "|---|---|---|"]
        lines += [f"| {e.number} | {e.title} | {_proof(e, tested)} |" for e in listed if e.number.startswith(kind)]
    return "\n".join(lines) + "\n"


def _proof(entry: Entry, tested: Mapping[str, Sequence[str]]) -> str:
    names = [f"`{name}`" for name in tested.get(entry.number, ())]
    return "<br>".join(names + [entry.reason] * bool(entry.reason))


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def main(args: Sequence[str]) -> int:
    listed = entries(_read(LIST))
    tested = tests(os.path.join(ROOT, "tests"))
    wrong = problems(listed, tested)
    if "--check" not in args:
        listed = [replace(entry, reason="") if is_stale(entry, tested) else entry for entry in listed]
        _write(LIST, HEAD + "".join(f"{entry.number} | {entry.title} | {entry.reason}".rstrip() + "\n" for entry in listed))
        _write(PAGE, page(listed, tested))
        wrong = problems(listed, tested)
    elif _read(PAGE) != page(listed, tested):
        wrong.append("docs/conformance.md is out of date: run `python tests/tools/conformance.py`")
    print("\n".join(wrong), file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
