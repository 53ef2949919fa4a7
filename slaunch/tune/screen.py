"""A table at the bottom of a terminal, renewed while the search goes on. It needs rich; without it, lines have to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from slaunch.tune.choice import ranked
from slaunch.tune.trial.name import whole_text
from slaunch.tune.trial.values import Record
from slaunch.tune.values import Setting, Study

if TYPE_CHECKING:
    from rich.table import Table

ROWS = 10


class Screen:
    """The table, and the lines above it."""

    def __init__(self) -> None:
        """Raises ImportError where rich is not installed."""
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        # no thread of its own: the tuner forks
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._live.start()

    def say(self, line: str) -> None:
        """A line above the table."""
        self._console.print(line, markup=False, soft_wrap=True)

    def show(self, study: Study, records: Sequence[Record], running: tuple[int, Setting] | None, caption: str) -> None:
        """Renew the table: the trial at work, and the best ones."""
        self._live.update(table(study, records, running, caption), refresh=True)

    def close(self) -> None:
        """Leave the table as it is, and give the terminal back."""
        self._live.stop()


def screen() -> Screen | None:
    """A screen, if a person looks on and rich is there."""
    if not sys.stderr.isatty():
        return None
    try:
        return Screen()
    except ImportError:
        return None


def table(study: Study, records: Sequence[Record], running: tuple[int, Setting] | None, caption: str) -> Table:
    """The trial at work, and the best ones below it."""
    from rich.table import Table

    found = Table(
        "trial", study.metric.name, "MiB", "seconds", "setting", title=f"the best of {len(records)} trials", caption=caption
    )
    if running is not None:
        found.add_row(str(running[0]), "at work", "", "", whole_text(study, running[1]), style="bold", end_section=True)
    for record in ranked(records, study.metric.maximize)[:ROWS]:
        metric = record.status if record.metric is None else f"{record.metric:g}"
        memory = "" if record.memory_mib is None else f"{record.memory_mib:.0f}"
        found.add_row(str(record.number), metric, memory, f"{record.run_s:.1f}", whole_text(study, record.setting))
    return found
