"""How agents and the doctor talk through srun: JSON values in short lines.

srun forwards a task's output line by line, but only up to 1024 bytes at a time; a longer line may be torn apart by other tasks'.
So a value goes in pieces, each of which names its sender.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MARK = "@slaunch-doctor"
PIECE_CHARS = 800


def pieces(sender: str, value: dict[str, Any]) -> Iterator[str]:
    """The lines of a value, without their ends. Each has its number and how many there are, so that a loss is noticed.

    Args:
        sender: a word without blanks.
        value: what to tell.
    """
    text = json.dumps(value)
    starts = range(0, len(text), PIECE_CHARS)
    for number, start in enumerate(starts, 1):
        yield f"{MARK} {sender} {number}/{len(starts)} {text[start : start + PIECE_CHARS]}"


class Joiner:
    """Puts the pieces of many senders together. A value of which a piece is lost does not come."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {}

    def take(self, line: str) -> tuple[str, dict[str, Any]] | None:
        """A sender and his value, if this line completes one. Other programs' lines are passed over."""
        words = line.rstrip("\n").split(" ", 3)
        if len(words) < 4 or words[0] != MARK:
            return None
        _, sender, place, piece = words
        number, _, count = place.partition("/")
        if number == "1":
            self._parts[sender] = []
        parts = self._parts.get(sender, [])
        parts.append(piece)
        if number != count or count != str(len(parts)):
            return None
        try:
            return sender, json.loads("".join(self._parts.pop(sender)))
        except ValueError:  # another program has written into the middle
            return None
