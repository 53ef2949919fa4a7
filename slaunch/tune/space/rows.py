"""Settings from a table of the user's (`configs_csv`): each row is tried as it is."""

from __future__ import annotations

import csv

from slaunch.errors import UsageError
from slaunch.tune.config.table import GRANULARITIES
from slaunch.tune.values import Setting, Study, Value

WHOLE = (
    *("dp_degree", "mp_degree", "pp_degree", "vpp_degree"),
    *("micro_batch_size", "sharding_degree", "sharding_stage"),
)
WANTED = "read the settings to try"


def read_rows(study: Study) -> tuple[Setting, ...]:
    """The settings of the table, in its order; rows that are the same are tried once.

    Raises:
        UsageError: it cannot be read, or cells are wrong: all of them are named.
    """
    path = study.algorithm.rows
    try:
        with open(path, newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(WANTED, f"configs_csv {path}: {error}", "name a readable CSV file") from None
    problems: list[str] = []
    settings = [read_row(row, line, study, problems) for line, row in enumerate(table, 2)]
    if problems:
        raise UsageError(WANTED, f"{path}:" + "".join(f"\n- {text}" for text in problems), "mend these cells")
    if not settings:
        raise UsageError(WANTED, f"{path} has no rows", "give at least one setting")
    unique = {tuple(setting.items()): setting for setting in settings}
    return tuple(unique.values())


def read_row(row: dict[str, str], line: int, study: Study, problems: list[str]) -> Setting:
    """One row; what is wrong with it goes into `problems`."""
    found: dict[str, Value] = {name: read_whole(row, name, line, problems) for name in WHOLE}
    word = (row.get("use_recompute") or "").strip().lower()
    if word not in ("true", "false"):
        problems.append(f"line {line}, use_recompute: {word!r} is neither true nor false")
    found["use_recompute"] = word == "true"
    granularity = (row.get("recompute_granularity") or "").strip().lower()
    if granularity not in ("", *GRANULARITIES):
        problems.append(f"line {line}, recompute_granularity: {granularity!r} is none of {', '.join(GRANULARITIES)}")
    found["recompute_granularity"] = granularity or None
    return found | read_own(row, line, study, problems)


def read_whole(row: dict[str, str], name: str, line: int, problems: list[str]) -> int:
    """A cell with a whole number of at least 1."""
    text = (row.get(name) or "").strip()
    if not text.isdecimal() or int(text) < 1:
        problems.append(f"line {line}, {name}: {text!r} is no whole number of at least 1")
        return 1
    return int(text)


def read_own(row: dict[str, str], line: int, study: Study, problems: list[str]) -> dict[str, Value]:
    """Cells of own dimensions: one of the values that the configuration lists."""
    found: dict[str, Value] = {}
    for each in study.own:
        text = (row.get(each.name) or "").strip()
        matches = [value for value in each.values if str(value).lower() == text.lower()]
        if matches:
            found[each.name] = matches[0]
        else:
            problems.append(f"line {line}, {each.name}: {text!r} is none of {', '.join(map(str, each.values))}")
    return found
