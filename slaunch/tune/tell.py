"""What the tuner says: lines on the console and in its log, and a table where a person looks on."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence

from slaunch.errors import TuneError, UsageError
from slaunch.frozen import dataclass
from slaunch.report.style import duration
from slaunch.tune.screen import screen
from slaunch.tune.space.make import Space, reasons
from slaunch.tune.trial.name import whole_text
from slaunch.tune.trial.values import OK, Record
from slaunch.tune.values import Cluster, Setting, Study


class Teller:
    """Writes lines to the console and, with time and level, to the tuner's log."""

    def __init__(self, path: str, keep: bool) -> None:
        """`keep`: append to an earlier log instead of beginning a new one."""
        self._log = open(path, "a" if keep else "w", encoding="utf-8")  # noqa: SIM115 - closed by close()
        self._screen = screen()
        self._caption = ""

    def say(self, line: str, level: str = "INFO") -> None:
        """One line for the user."""
        text = f"slaunch tune: {line}"
        if self._screen is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._screen.say(text)
        self.note(line, level)

    def show(
        self, study: Study, records: Sequence[Record], running: tuple[int, Setting] | None = None, caption: str = ""
    ) -> None:
        """Renew the table, where a person looks on. `caption`: how far the search is; "" = as before."""
        self._caption = caption or self._caption
        if self._screen is not None:
            self._screen.show(study, records, running, self._caption)

    def note(self, line: str, level: str = "INFO") -> None:
        """One line for the log alone."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        self._log.write(f"{stamp} - auto_tuner - {level} - {line}\n")
        self._log.flush()

    def close(self) -> None:
        """Close the log, and leave the table as it is."""
        if self._screen is not None:
            self._screen.close()
        self._log.close()


@dataclass(frozen=True)
class Progress:
    """How far the search is.

    Attributes:
        total, left, skipped: settings: all, those not looked at, those that rules skipped.
        records: trials so far.
        trial_s: time limit of a trial.
        paces: seconds of each trial that ran.
        trials_left, search_s: how many trials, and how long, limits and the allocation permit still.
    """

    total: int
    left: int
    skipped: int
    records: tuple[Record, ...]
    trial_s: float
    paces: tuple[float, ...] = ()
    trials_left: int = sys.maxsize
    search_s: float = math.inf


def opening(study: Study, cluster: Cluster, space: Space) -> str:
    """What is to be searched."""
    nodes = f"{cluster.nodes} node{'s' * (cluster.nodes > 1)}"
    text = f"{len(space.settings)} settings for {cluster.gpus} workers on {nodes}"
    if space.dropped:
        why = ", ".join(f"{rule} {count}" for rule, count in reasons(space.dropped).items())
        text += f"; {len(space.dropped)} of {space.total} dropped by rules ({why})"
    return f"{text}; at most {study.limits.tasks} trials; search {study.algorithm.name}"


def began(record_number: int, study: Study, setting: Mapping[str, object], folder: str) -> str:
    """A trial starts."""
    return f"trial {record_number}: {whole_text(study, setting)}; logs in {folder}"  # type: ignore[arg-type]


def result(study: Study, record: Record) -> str:
    """How a trial ended."""
    name = f"trial {record.number}"
    took = f"in {duration(record.start_s + record.run_s)}" if record.origin == "run" else f"from {record.origin}"
    if record.status == OK:
        return f"{name}: {figures(study, record)}, {took}"
    return f"{name}: {record.status}: {record.detail}, {took}" if record.detail else f"{name}: {record.status}, {took}"


def figures(study: Study, record: Record) -> str:
    """The result in figures."""
    error = f" ± {record.error:.3g}" if record.error else ""
    memory = record.memory_mib if record.memory_mib is not None else record.peak_mib
    shown = f", {memory:.0f} MiB" if memory is not None else ", memory unknown"
    return f"{study.metric.name} {record.metric:g}{error}{shown}"


def schedule(progress: Progress) -> str:
    """How far the search is, and how long it may take."""
    done = progress.total - progress.left
    failed = [record for record in progress.records if record.status != OK]
    counts: dict[str, int] = {}
    for record in failed:
        counts[record.status] = counts.get(record.status, 0) + 1
    errors = f" ({', '.join(f'{count} {status}' for status, count in counts.items())})" if counts else ""
    text = f"{done}/{progress.total} settings done: {len(progress.records)} trials, {progress.skipped} skipped"
    text += f", {len(failed)} failed{errors}"
    left = min(progress.left, progress.trials_left)
    text += f"; at most {duration(min(left * progress.trial_s, progress.search_s))} left"
    if left and progress.paces:
        pace = sum(progress.paces) / len(progress.paces)
        text += f", {duration(min(left * pace, progress.search_s))} at the pace so far"
    return text


def current_best(study: Study, record: Record | None) -> str:
    """The best so far."""
    if record is None:
        return "no setting has a result yet"
    return f"best so far: trial {record.number}: {figures(study, record)}: {whole_text(study, record.setting)}"


def no_settings(study: Study, cluster: Cluster, space: Space) -> UsageError:
    """The error of an empty list."""
    seen = f"{study.path}: none of {space.total} combinations for {cluster.gpus} workers on {cluster.nodes} nodes is left"
    if space.dropped:
        why = ", ".join(f"{rule} {count}" for rule, count in reasons(space.dropped).items())
        seen += f"; dropped by rules: {why}; e.g. {space.dropped[0].reason}"
    todo = "widen the ranges: the degrees must multiply to the number of workers, and the model's batch and layers be divisible"
    return UsageError("make the list of settings", seen, todo)


def no_best(records: Sequence[Record], history: str) -> TuneError:
    """The error of a search without a result."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record.status] = counts.get(record.status, 0) + 1
    ends = ", ".join(f"{count} {status}" for status, count in counts.items()) or "none was run"
    last = f"; the last one: {records[-1].detail}; its logs are in {records[-1].folder}" if records else ""
    return TuneError("find the best setting", f"{len(records)} trials, none with a result: {ends}{last}", f"look at {history}")
