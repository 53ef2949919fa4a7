"""Host lists in the notation of Slurm, Flux and pdsh: `n[1-3,7],login` and back.

python-hostlist knows the grammar. Three things are put right here, all checked against `scontrol show hostnames`: lists with
three or more brackets come in Slurm's order, a host named twice stays twice, and blanks separate hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from slaunch.errors import AllocationError

_GROUP = re.compile(r"(\[[^\[\]]*\])")


def expand(text: str, source: str = "host list") -> tuple[str, ...]:
    """Return the hosts of a list, in the order in which Slurm numbers them.

    Args:
        text: the list, e.g. "rack[0-1]node[00-11],login".
        source: the variable or file it came from, for the error.

    Raises:
        AllocationError: the list is empty or malformed.
    """
    parts = text.replace(",", " ").split() if "[" not in text and "]" not in text else _split(text, source)
    hosts: list[str] = []
    for part in parts:
        hosts.extend(_expand_part(part, text, source) if "[" in part or "]" in part else (part,))
    if not hosts:
        raise AllocationError("read the host list", f"{source}={text!r} names no host", "start slaunch from within a job")
    return tuple(hosts)


def compress(hosts: Iterable[str]) -> str:
    """Return the shortest host list that names these hosts (sorted, each once), as `srun --nodelist` takes it."""
    from hostlist import collect_hostlist

    return str(collect_hostlist(list(hosts)))


def _split(text: str, source: str) -> list[str]:
    """Split at commas and blanks outside brackets; blanks inside brackets are dropped."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif depth == 0 and (char == "," or char.isspace()):
            parts.append(text[start:position])
            start = position + 1
        if depth not in (0, 1):
            raise _malformed(text, source, "brackets do not match")
    if depth:
        raise _malformed(text, source, "a bracket is not closed")
    parts.append(text[start:])
    return ["".join(part.split()) for part in parts if part.strip()]


def _expand_part(part: str, text: str, source: str) -> Sequence[str]:
    from hostlist import BadHostlist, expand_hostlist

    groups = _GROUP.split(part)
    try:
        if len(groups) <= 5:
            # Text after the last bracket is ClusterShell's and Flux's extension (Slurm refuses it); their brackets are sets.
            return [str(host) for host in expand_hostlist(part, allow_duplicates=part.endswith("]"))]
        return _in_slurm_order(groups, [expand_hostlist(group, allow_duplicates=True) for group in groups[1::2]])
    except BadHostlist as error:
        raise _malformed(text, source, f"{part!r}: {error}") from None


def _in_slurm_order(groups: Sequence[str], values: Sequence[Sequence[str]]) -> list[str]:
    """Combine three or more brackets: the last one runs fastest, then the first, the second, and so on (Slurm's hostlist.c)."""
    from itertools import product
    from math import prod

    if prod(len(value) for value in values) > 100_000:
        from hostlist import BadHostlist

        raise BadHostlist("results too large")
    last, before = values[-1], values[:-1]
    hosts = []
    for combination in product(*reversed(before), last):
        chosen = (*reversed(combination[:-1]), combination[-1])
        hosts.append("".join(fixed + value for fixed, value in zip(groups[::2], (*chosen, ""), strict=True)))
    return hosts


def _malformed(text: str, source: str, why: str) -> AllocationError:
    return AllocationError("read the host list", f"{source}={text!r}: {why}", "Slurm writes lists like n[1-3,7]")
