"""Host files and host lists with slots, for sites that have MPI but no scheduler.

`host slots=4` (Open MPI, DeepSpeed), `host:4` (Hydra), or `host` alone, which is one slot; `#` starts a comment.
"""

from __future__ import annotations

import re

from slaunch.allocation.reader import HINT, Env, Given, Reader, check, evidence, file_text, shown
from slaunch.allocation.values import Allocation, Shell, Sighting, StepShape
from slaunch.errors import AllocationError

VARIABLE = "SLAUNCH_HOSTFILE"
_HOST = re.compile(r"([A-Za-z0-9._%-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]+))?")
_SETTING = re.compile(r"(slots|max_slots|max-slots|type)=(\S+)")


def parse(text: str, source: str = "host file") -> dict[str, int]:
    """Return the slots of each host, in the file's order.

    Args:
        text: the file's content.
        source: its name, for the error.

    Raises:
        AllocationError: a line is malformed, a host comes twice, only some hosts have a type, or there is no host.
    """
    slots: dict[str, int] = {}
    typed: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        host, count, kind = _line(words, f"{source}, line {number}: {line.strip()!r}")
        if host in slots:
            raise _malformed(f"{source}, line {number}: {host} comes twice")
        slots[host] = count
        if kind:
            typed.add(host)
    if not slots:
        raise _malformed(f"{source} names no host")
    if typed and len(typed) < len(slots):
        raise _malformed(f"{source}: {', '.join(sorted(set(slots) - typed))} has no type=, others have")
    return slots


def parse_list(text: str, source: str = "host list") -> dict[str, int]:
    """Return the slots of each host of a list like "h1:2,h2:2" (horovodrun's and Hydra's form)."""
    return parse(text.replace(",", "\n"), source)


def _line(words: list[str], where: str) -> tuple[str, int, str]:
    """Return host, slots and type of one line."""
    match = _HOST.fullmatch(words[0])
    settings = [_SETTING.fullmatch(word) for word in words[1:]]
    if not match or not all(settings):
        raise _malformed(where)
    values = {setting[1]: setting[2] for setting in settings if setting}
    count = values.get("slots", match[2] or "1")
    if not count.isdecimal() or count == "0" or ("slots" in values and match[2]):
        raise _malformed(where)
    return match[1], int(count), values.get("type", "")


def _malformed(seen: str) -> AllocationError:
    return AllocationError("read the hosts", seen, "expected lines like `node1 slots=4`, `node1:4` or `node1`")


def sight(env: Env) -> Sighting:
    """See a host file; any scheduler or MPI launcher outweighs it."""
    return Sighting("hostfile", HINT, evidence(env, SLAUNCH_HOSTFILE="file that lists the hosts to use"))


def read(given: Given) -> Shell:
    """Return a shell from which mpirun starts one agent on each host of the file."""
    check(bool(given.env.get(VARIABLE)), f"--scheduler hostfile, but {VARIABLE} is not set")
    hosts = tuple(parse(file_text(given, VARIABLE), shown(given.env, VARIABLE)))
    return Shell(Allocation("hostfile", nodes=hosts, evidence=sight(given.env).evidence), StepShape(len(hosts)))


READER = Reader("hostfile", (), sight, read)
