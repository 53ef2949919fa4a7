"""The history as a table: the columns and ranking of Paddle's tuner, further ones behind them.

It is made anew from the records each time.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence

from slaunch.errors import OutputError
from slaunch.tune.choice import ranked
from slaunch.tune.trial.values import OOM, Record
from slaunch.tune.values import Study

Cell = object
LAST = (
    "error_info",
    "status",
    "error_bits",
    "metric_error",
    "metric_samples",
    "start_time",
    "memory_known",
    "repeat_of",
    "origin",
)


def rows(study: Study, records: Sequence[Record]) -> tuple[list[str], list[dict[str, Cell]]]:
    """Column names and rows: job_id, the setting, sizes, time, memory, metric, estimates, and how it ended."""
    table = [row(study, record) for record in records]
    first = list(dict.fromkeys(name for cells in table for name in cells if name not in LAST))
    if all(cells["max_peak_memory"] is None for cells in table):
        first = [name for name in first if name != "max_peak_memory"]
    return [*first, *LAST], table


def row(study: Study, record: Record) -> dict[str, Cell]:
    """One record."""
    return {
        "job_id": record.number,
        **record.setting,
        **record.derived,
        "exec_time": round(record.start_s + record.run_s, 2),
        "max_mem_usage": "OOM" if record.status == OOM else record.memory_mib,
        study.metric.name: record.metric,
        "max_peak_memory": record.peak_mib,
        **record.extra,
        "error_info": one_line(record.detail),
        "status": record.status,
        "error_bits": record.bits,
        "metric_error": record.error,
        "metric_samples": record.samples,
        "start_time": round(record.start_s, 2),
        "memory_known": record.memory_mib is not None,
        "repeat_of": record.repeat_of or None,
        "origin": record.origin,
    }


def one_line(text: str) -> str:
    """A text without line breaks, so that a row is a line."""
    return " ".join(text.split())


def render(columns: Sequence[str], table: Sequence[Mapping[str, Cell]]) -> str:
    """As CSV; nothing known is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([plain(cells.get(name)) for name in columns] for cells in table)
    return out.getvalue()


def plain(value: Cell) -> str:
    """A cell's text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 and not isinstance(value, bool) else repr(value)
    return str(value)


def write_history(path: str, study: Study, records: Sequence[Record]) -> None:
    """Write all records in the order of their rank.

    Raises:
        OutputError: it cannot be written.
    """
    write(path, render(*rows(study, ranked(records, study.metric.maximize))))


def write_enhanced(path: str, study: Study, records: Sequence[Record], column: str) -> None:
    """Write the single replicas that had a result, by their estimate, largest first.

    Raises:
        OutputError: it cannot be written.
    """
    kept = [record for record in records if record.ran and "sharding_overlap" not in record.setting]
    best_first: Callable[[Record], float] = lambda record: -(record.extra.get(column) or float("-inf"))  # noqa: E731
    write(path, render(*rows(study, sorted(kept, key=best_first))))


def write(path: str, text: str) -> None:
    """Replace a file as a whole.

    Raises:
        OutputError: it cannot be written.
    """
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(part, path)
    except OSError as error:
        raise OutputError("write the tuner's history", f"{path}: {error.strerror}", "make this folder writable") from None
