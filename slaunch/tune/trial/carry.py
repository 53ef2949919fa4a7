"""Carries `Options` to the slaunch inside a trial: one word of its command line, JSON with what differs from the defaults.

Every setting of the outer command line, variables and files is in it, so that the trial runs under exactly the same options,
whatever way they were given.
"""

from __future__ import annotations

import json
from typing import Any

from slaunch.frozen import asdict, names
from slaunch.options import Options, Part, Program

APART = ("origins", "notes")


def pack(options: Options) -> str:
    """The options as one word."""
    usual = Options(Program(""))
    fields = [name for name in names(Options) if getattr(options, name) != getattr(usual, name) and name not in APART]
    plain = asdict(options)
    origins = {name: source for name, source in options.origins.items() if source != "default"}
    return json.dumps({**{name: plain[name] for name in fields}, "origins": origins}, separators=(",", ":"))


def unpack(text: str) -> Options:
    """The options of such a word."""
    raw = _tuples(json.loads(text))
    raw["program"] = Program(**raw["program"])
    if "parts" in raw:
        raw["parts"] = tuple(Part(**{**part, "program": Program(**part["program"])}) for part in raw["parts"])
    return Options(**raw)


def _tuples(value: Any) -> Any:
    """Lists as tuples, at every depth."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
