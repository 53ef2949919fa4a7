"""Kinds of values in the configuration: what is right, and the same as JSON schema.

A kind checks a value and yields what is wrong, naming the place; it does not change the value. `normal` has the second step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from slaunch.frozen import dataclass

Schema = dict[str, object]

SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|[KMGT]i?B?)\s*", re.IGNORECASE)
"""A size with its unit: "80GiB", "512 MB"."""


class Kind:
    """What a value may be."""

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """What is wrong with `value`, one line for each; `where`: its place in the file, e.g. "model_cfg.num_layers"."""
        raise NotImplementedError

    def schema(self) -> Schema:
        """The same as JSON schema."""
        raise NotImplementedError


@dataclass(frozen=True)
class Int(Kind):
    """A whole number, not below `least`."""

    least: int = 1

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        if not is_int(value) or value < self.least:  # type: ignore[operator]
            yield f"{where}: {show(value)} is no whole number of at least {self.least}"

    def schema(self) -> Schema:
        """See `Kind`."""
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True)
class Number(Kind):
    """A number, not below `least`."""

    least: float = 0

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not value >= self.least:  # type: ignore[operator]
            yield f"{where}: {show(value)} is no number of at least {self.least:g}"

    def schema(self) -> Schema:
        """See `Kind`."""
        return {"type": "number", "minimum": self.least}


@dataclass(frozen=True)
class Bool(Kind):
    """True or false."""

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        if not isinstance(value, bool):
            yield f"{where}: {show(value)} is neither true nor false"

    def schema(self) -> Schema:
        """See `Kind`."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Text(Kind):
    """A text that is not empty; one of `words` (in any case) if these are given, or one that `pattern` describes."""

    words: tuple[str, ...] = ()
    pattern: str = ""
    means: str = "a text"

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        if not isinstance(value, str) or not value.strip():
            yield f"{where}: {show(value)} is not {self.meaning()}"
        elif self.words and value.strip().lower() not in self.words:
            yield f"{where}: {show(value)} is not {self.meaning()}{meant(value, self.words)}"
        elif self.pattern and not re.search(self.pattern, value):
            yield f"{where}: {show(value)} is not {self.meaning()}"

    def meaning(self) -> str:
        """What is expected, in words."""
        return f"one of {', '.join(self.words)}" if self.words else self.means

    def schema(self) -> Schema:
        """See `Kind`. The words may be written in any case, so each is a pattern."""
        if self.words:
            return {"type": "string", "pattern": f"^\\s*({'|'.join(map(any_case, self.words))})\\s*$"}
        return {"type": "string", "pattern": self.pattern or "\\S"}


@dataclass(frozen=True)
class Plain(Kind):
    """A number, a text, true or false."""

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        if not isinstance(value, int | float | str):
            yield f"{where}: {show(value)} is no number, text, true or false"

    def schema(self) -> Schema:
        """See `Kind`."""
        return {"type": ["number", "string", "boolean"]}


@dataclass(frozen=True)
class Many(Kind):
    """A list of one kind of value, of at least `least` of them."""

    item: Kind
    least: int = 0

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        if not isinstance(value, list):
            yield f"{where}: {show(value)} is no list"
            return
        if len(value) < self.least:
            yield f"{where}: a list of at least {self.least} is needed, but it has {len(value)}"
        for index, each in enumerate(value):
            yield from self.item.wrong(each, f"{where}[{index}]")

    def schema(self) -> Schema:
        """See `Kind`."""
        return {"type": "array", "items": self.item.schema(), "minItems": self.least}


@dataclass(frozen=True)
class Any(Kind):
    """One of several kinds. Of a wrong value only the summary is told, unless one kind is meant by its type."""

    kinds: tuple[Kind, ...]
    means: str

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        found = [list(kind.wrong(value, where)) for kind in self.kinds]
        if [] not in found:
            inner = [lines for kind, lines in zip(self.kinds, found, strict=True) if meant_by_type(kind, value)]
            yield from min(inner, key=len) if inner else [f"{where}: {show(value)} is not {self.means}"]

    def schema(self) -> Schema:
        """See `Kind`."""
        return {"anyOf": [kind.schema() for kind in self.kinds]}


@dataclass(frozen=True)
class Key:
    """A key of an object: its name, kind, what it does without, and a line of help."""

    name: str
    kind: Kind
    default: str
    help: str
    needed: bool = False


@dataclass(frozen=True)
class Object(Kind):
    """An object with known keys; further keys, if `rest` is given, have that kind."""

    keys: tuple[Key, ...] = ()
    rest: Kind | None = None

    def wrong(self, value: object, where: str) -> Iterator[str]:
        """See `Kind`."""
        if not isinstance(value, dict):
            yield f"{where or 'the file'}: {show(value)} is no object"
            return
        kinds = {key.name: key.kind for key in self.keys}
        for key in self.keys:
            if key.needed and key.name not in value:
                yield f"{join(where, key.name)}: is missing ({key.help})"
        for name, each in value.items():
            kind = kinds.get(name, self.rest)
            if kind is None:
                yield f"{join(where, str(name))}: there is no such key{meant(str(name), list(kinds))}"
            else:
                yield from kind.wrong(each, join(where, str(name)))

    def schema(self) -> Schema:
        """See `Kind`."""
        found: Schema = {
            "type": "object",
            "properties": {key.name: {**key.kind.schema(), "description": key.help} for key in self.keys},
            "additionalProperties": self.rest.schema() if self.rest else False,
        }
        needed = [key.name for key in self.keys if key.needed]
        return {**found, "required": needed} if needed else found


def is_int(value: object) -> bool:
    """Whether it is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def meant_by_type(kind: Kind, value: object) -> bool:
    """Whether a list or object was meant to be of this kind, so that its own errors tell more."""
    return (isinstance(value, list) and isinstance(kind, Many)) or (isinstance(value, dict) and isinstance(kind, Object))


def meant(name: str, known: Sequence[str]) -> str:
    """The known name that was probably meant, as a question; "" if none is near."""
    import difflib

    near = difflib.get_close_matches(name.strip().lower(), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def any_case(word: str) -> str:
    """A pattern for the word in any case."""
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in word)


def join(where: str, name: str) -> str:
    """The place of a key inside an object."""
    return f"{where}.{name}" if where else name


def show(value: object) -> str:
    """A value as the file has it, shortened."""
    import json

    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def mib(value: float | str, unit_mib: float) -> float:
    """A size in MiB; a number without unit counts in `unit_mib`."""
    match = SIZE.fullmatch(str(value)) if isinstance(value, str) else None
    if match is None:
        return float(value) * unit_mib
    scale = {"B": -2, "K": -1, "M": 0, "G": 1, "T": 2}[match[2][0].upper()]
    return float(match[1]) * 1024.0**scale


def objects(value: object) -> Mapping[str, object]:
    """A checked object; {} where there is none."""
    return value if isinstance(value, dict) else {}
