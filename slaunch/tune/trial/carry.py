"""Carries `Options` and the trial's variables to the slaunch inside it: one word of its command line, JSON.

Every setting of the outer command line, variables and files is in it, so that the trial runs under exactly the same options,
whatever way they were given; and its variables, as not every launcher hands its environment to all nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from slaunch.frozen import asdict, names
from slaunch.options import Options, Part, Program

APART = ("origins", "notes")


def pack(options: Options, env: Mapping[str, str]) -> str:
    """The options, as far as they differ from the defaults, and further variables, as one word."""
    usual = Options(Program(""))
    fields = [name for name in names(Options) if getattr(options, name) != getattr(usual, name) and name not in APART]
    plain = asdict(options)
    origins = {name: source for name, source in options.origins.items() if source != "default"}
    found = {**{name: plain[name] for name in fields}, "origins": origins}
    return json.dumps({"options": found, "env": dict(env)}, separators=(",", ":"))


def unpack(text: str) -> tuple[Options, dict[str, str]]:
    """The options and variables of such a word."""
    whole = json.loads(text)
    return _options(whole["options"]), whole["env"]


def _options(given: Any) -> Options:
    raw = _tuples(given)
    raw["program"] = Program(**raw["program"])
    if "parts" in raw:
        raw["parts"] = tuple(Part(**{**part, "program": Program(**part["program"])}) for part in raw["parts"])
    return Options(**raw)


def _tuples(value: Any) -> Any:
    """Lists as tuples, at every depth."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
