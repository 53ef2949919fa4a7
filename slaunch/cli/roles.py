"""The file of `--roles`: which ranks run which program, like `srun --multi-prog`.

[[role]]                                   the same in JSON: {"role": [{"name": "learner", …}, …]}
name = "learner"
ranks = "0"                                a rank, a range "4-7", several "0,4-7"; left out or "*": all others
program = "learner.py"                     or module = "pkg.learner", or command = ["./simulator", "--fast"]
args = ["--lr", "0.1"]
env = {OMP_NUM_THREADS = "1"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slaunch.errors import UsageError
from slaunch.options import Part, Program

KEYS = ("name", "ranks", "program", "module", "command", "args", "env")


def read_roles(path: str) -> tuple[Part, ...]:
    """The parts that a file tells.

    Raises:
        UsageError: the file cannot be read or is not as above.
    """
    from slaunch.cli.config import content

    text = content(path, needed=True)
    entries = tree(path, text).get("role")
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise wrong(path, "it has no list of roles", "write [[role]] for each")
    parts = tuple(part(path, index, entry) for index, entry in enumerate(entries))
    if sum(not each.ranks for each in parts) > 1:
        raise wrong(path, "more than one role has no ranks of its own", "give ranks to all roles but one")
    return parts


def tree(path: str, text: str) -> Mapping[str, Any]:
    """The file as a tree: JSON if it begins like that, else TOML."""
    if not text.lstrip().startswith("{"):
        from slaunch.cli.config import parse

        return parse(path, text)
    import json

    try:
        found = json.loads(text)
    except ValueError as error:
        raise wrong(path, str(error), "mend the file: it must be TOML or a JSON object") from None
    return dict(found)


def part(path: str, index: int, entry: Mapping[str, Any]) -> Part:
    """One role of the file."""
    name = str(entry.get("name", index))
    unknown = [key for key in entry if key not in KEYS]
    if unknown:
        raise wrong(path, f"role {name} has {', '.join(unknown)}", f"use {', '.join(KEYS)}")
    env = entry.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        raise wrong(path, f"env of role {name} is {env!r}", "write variables and their texts")
    return Part(
        name, rank_pairs(path, name, str(entry.get("ranks", "*"))), program(path, name, entry), tuple(sorted(env.items()))
    )


def program(path: str, name: str, entry: Mapping[str, Any]) -> Program:
    """What a role runs."""
    given = [key for key in ("program", "module", "command") if key in entry]
    if len(given) != 1:
        raise wrong(path, f"role {name} has {' and '.join(given) or 'no program'}", "give one of program, module and command")
    words = entry[given[0]] if given == ["command"] else [entry[given[0]]]
    args = entry.get("args", [])
    texts = isinstance(words, list) and isinstance(args, list) and all(isinstance(word, str) for word in [*words, *args])
    if not texts or not words or not words[0]:
        raise wrong(path, f"the program of role {name} is {words!r} with {args!r}", "write texts, and lists of texts")
    kind = {"program": "script", "module": "module", "command": "executable"}[given[0]]
    return Program(words[0], (*words[1:], *args), kind)


def rank_pairs(path: str, name: str, text: str) -> tuple[tuple[int, int], ...]:
    """Pairs (first, last); () for "*"."""
    if text.strip() == "*":
        return ()
    pairs = []
    for item in text.split(","):
        low, dash, high = (word.strip() for word in item.partition("-"))
        if not low.isdecimal() or (dash and not high.isdecimal()) or int(high or low) < int(low):
            raise wrong(path, f"ranks of role {name} are {text!r}", 'write "0", "4-7", "0,4-7" or "*"')
        pairs.append((int(low), int(high or low)))
    return tuple(pairs)


def wrong(path: str, seen: str, todo: str) -> UsageError:
    """The error of a file that is not as it should be."""
    return UsageError("read the roles of the workers", f"{path}: {seen}", todo)
