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
    """The lines of a value, without their ends; the last one has "." where the others have "+".

    Args:
        sender: a word without blanks.
        value: what to tell.
    """
    text = json.dumps(value)
    for start in range(0, len(text), PIECE_CHARS):
        last = start + PIECE_CHARS >= len(text)
        yield f"{MARK} {sender} {'.' if last else '+'} {text[start : start + PIECE_CHARS]}"


class Joiner:
    """Puts the pieces of many senders together."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {}

    def take(self, line: str) -> tuple[str, dict[str, Any]] | None:
        """A sender and his value, if this line completes one. Other programs' lines are passed over."""
        words = line.rstrip("\n").split(" ", 3)
        if len(words) < 4 or words[0] != MARK:
            return None
        _, sender, sign, piece = words
        self._parts.setdefault(sender, []).append(piece)
        if sign != ".":
            return None
        try:
            value = json.loads("".join(self._parts.pop(sender)))
        except ValueError:  # a piece is lost: then this node has not answered
            return None
        return sender, value
