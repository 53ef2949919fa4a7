"""A report as `report.json` has it, as a value again. Fields that this version does not know are left out, those that are missing
have their defaults: the report may be another version's."""

from __future__ import annotations

import json
from typing import Any, get_args, get_origin, get_type_hints

from slaunch.agent.values import RunReport
from slaunch.errors import OutputError
from slaunch.frozen import names


def read_report(path: str) -> RunReport:
    """The report in a file.

    Raises:
        OutputError: it is not there, or is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        made = revive(RunReport, fields)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise OutputError("read the report of a run", f"{path}: {error}", "see the logs beside it") from None
    assert isinstance(made, RunReport)
    return made


def revive(kind: Any, value: Any) -> object:
    """The value of a type from its form in JSON."""
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return tuple(revive(item, each) for each in value)
    if hasattr(kind, "__dataclass_fields__"):
        types = get_type_hints(kind)
        return kind(**{name: revive(types[name], value[name]) for name in names(kind) if name in value})
    options = [each for each in get_args(kind) if each is not type(None)]
    if options and value is not None:
        return revive(options[0], value)
    return value
