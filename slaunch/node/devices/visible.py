"""Visible lists: `CUDA_VISIBLE_DEVICES` and its kin.

Items are opaque: ordinals, UUIDs, MIG names. Source of the rules: CUDA C++ programming guide, "CUDA environment variables"; Slurm
writes `NoDevFiles` for a job without devices; container tools write `all`, `none` and `void`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

NOTHING = ("", "NoDevFiles", "none", "void")


def tokens(text: str) -> tuple[str, ...] | None:
    """Items of a visible list; None for `all`.

    The list ends before the first item that names nothing (empty or negative), as it does in the driver.
    """
    text = text.strip()
    if text == "all":
        return None
    if text in NOTHING:
        return ()
    items = (item.strip() for item in text.split(","))
    return tuple(takewhile(lambda item: item and not item.startswith("-"), items))


def first_set(env: Mapping[str, str], variables: tuple[str, ...]) -> str:
    """The first of these variables that is set, even to nothing; "" if none is."""
    return next((name for name in variables if name in env), "")


def repeated(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels that occur more than once."""
    return tuple(sorted({label for label in labels if labels.count(label) > 1}))
