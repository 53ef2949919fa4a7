"""Counts per node in Slurm's notation: `2(x3),1` is 2, 2, 2, 1 (srun manual, output variables)."""

from __future__ import annotations

import re

from slaunch.errors import AllocationError

_ITEM = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?")
_MOST_NODES = 100_000


def expand(text: str, source: str = "counts") -> tuple[int, ...]:
    """Return one count per node.

    Args:
        text: e.g. "72(x2),36".
        source: the variable it came from, for the error.

    Raises:
        AllocationError: the text is not in this notation.
    """
    counts: list[int] = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        repeat = int(match[2] or 1) if match else 0
        if not match or not 0 < repeat <= _MOST_NODES:
            raise AllocationError(
                "read the counts per node", f"{source}={text!r}: {item!r} is not a count", "expected a list like 2(x3),1"
            )
        counts += [int(match[1])] * repeat
    return tuple(counts)


def compress(counts: tuple[int, ...]) -> str:
    """Return the counts in Slurm's notation."""
    from itertools import groupby

    runs = [(count, len(list(run))) for count, run in groupby(counts)]
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in runs)
