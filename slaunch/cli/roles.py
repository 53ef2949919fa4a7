"""The file of `--roles`: which workers run which program, with which devices and cores.

[[role]]                                   the same in JSON: {"role": [{"name": "learner", …}, …]}
name = "learner"                           in modes with roles of their own, the name of one of them, e.g. "server"
ranks = "0"                                a rank, a range "4-7", several "0,4-7"; left out or "*": all others
workers = 2                                or its number of workers on each node,
component = 1                              and the component of a heterogeneous job whose nodes these are
program = "learner.py"                     or module = "pkg.learner", or command = ["./simulator", "--fast"]; none = the job's
args = ["--lr", "0.1"]                     its own arguments, behind those of the job's program
env = {OMP_NUM_THREADS = "1"}
device = "gpu"                             kind of device that its workers need; "cpu" = none
devices = 2                                number of devices of each
cores = 4                                  physical cores of each
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slaunch.cli.modes import SERVING
from slaunch.cli.table import Value
from slaunch.errors import UsageError
from slaunch.frozen import replace
from slaunch.options import Part, Program

KEYS = ("name", "ranks", "workers", "component", "program", "module", "command", "args", "env", "device", "devices", "cores")


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
    names = [each.name for each in parts]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise wrong(path, f"several roles are called {', '.join(twice)}", "give each role a name of its own")
    if any(map(by_number, parts)) and any(each.ranks for each in parts):
        raise wrong(path, "some roles have ranks, others workers or a component", "tell all of them in one way")
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
    kind = entry.get("device", "")
    if not isinstance(kind, str):
        raise wrong(path, f"device of role {name} is {kind!r}", 'write a kind of device, e.g. "gpu", or "cpu"')
    return Part(
        name,
        rank_pairs(path, name, str(entry.get("ranks", "*"))),
        program(path, name, entry),
        tuple(sorted(env.items())),
        workers=count(path, name, entry, "workers", -1),
        component=count(path, name, entry, "component", -1),
        kind=kind,
        devices=count(path, name, entry, "devices", -1),
        cores=count(path, name, entry, "cores", 0),
    )


def count(path: str, name: str, entry: Mapping[str, Any], key: str, absent: int) -> int:
    """A number of a role."""
    value = entry.get(key, absent)
    if isinstance(value, bool) or not isinstance(value, int) or (key in entry and value < 0):
        raise wrong(path, f"{key} of role {name} is {value!r}", "write a number, 0 or more")
    return value


def program(path: str, name: str, entry: Mapping[str, Any]) -> Program:
    """What a role runs; of the kind "" if it is the job's program with further arguments."""
    given = [key for key in ("program", "module", "command") if key in entry]
    if len(given) > 1:
        raise wrong(path, f"role {name} has {' and '.join(given)}", "give one of program, module and command")
    words = entry[given[0]] if given == ["command"] else [entry[given[0]]] if given else ["the job's"]
    args = entry.get("args", [])
    texts = isinstance(words, list) and isinstance(args, list) and all(isinstance(word, str) for word in [*words, *args])
    if not texts or not words or not words[0]:
        raise wrong(path, f"the program of role {name} is {words!r} with {args!r}", "write texts, and lists of texts")
    kind = {"program": "script", "module": "module", "command": "executable"}[given[0]] if given else ""
    return Program(words[0], (*words[1:], *args), kind)


ALIKE = ("collective", "rpc", "ipu")
"""Modes whose workers have no roles by themselves."""


def with_program(parts: tuple[Part, ...], program: Program | None, mode: str, source: str) -> tuple[Part, ...]:
    """The roles with the command line's program: where they have none of their own, and for workers of no role.

    Raises:
        UsageError: that program is missing, nobody would run it, or several roles are for all other workers.
    """
    rest = [each.name for each in parts if not (each.ranks or by_number(each))]
    if len(rest) > 1 and mode in ALIKE:
        raise wrong(source, f"more than one role has no ranks of its own: {', '.join(rest)}", "give ranks to all roles but one")
    borrowed = [each.name for each in parts if not each.program.kind]
    if program is None:
        if borrowed:
            raise wrong(source, f"no program for {', '.join(borrowed)}", "give it in the file, or on the command line for all")
        return parts
    whole = tuple(each if each.program.kind else replace(each, program=extended(program, each)) for each in parts)
    if mode in ALIKE and (rest or any(map(by_number, parts))):
        if not borrowed:
            raise wrong(source, f"all roles have programs, and there is {program.target}", "leave one of them out")
        return whole
    return (*whole, Part("", (), program))


def check_numbers(given: Value, values: Mapping[str, Value]) -> None:
    """Numbers of workers in the file and beside it must agree.

    Raises:
        UsageError: they do not.
    """
    parts = [part for part in given.value if part.workers >= 0]  # type: ignore[attr-defined]
    told = {f"{part.name}_num": part.workers for part in parts}
    if parts and not any(field in values for field in SERVING["ps"]):
        told["nproc_per_node"] = sum(told.values())
    for field, number in told.items():
        other = values.get(field)
        if other is not None and other.value not in (0, number):
            seen = f"{given.source} has {number}, and {other.source} is {other.value}"
            raise UsageError("know how many workers a node has", seen, "leave one of them out")


def by_number(part: Part) -> bool:
    """Whether a role is told by its number of workers."""
    return part.workers >= 0 or part.component >= 0


def extended(program: Program, part: Part) -> Program:
    """The job's program with a role's arguments behind its own."""
    return replace(program, args=(*program.args, *part.program.args))


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
