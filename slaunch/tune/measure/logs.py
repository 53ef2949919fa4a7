"""Reads everything that the tuner wants to know from the logs of a trial, in one pass over each of them."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from slaunch.frozen import dataclass, replace
from slaunch.tune.measure.line import Reader, clean, reader
from slaunch.tune.measure.oom import oom_pattern
from slaunch.tune.values import Study

LOGS = re.compile(r"(workerlog|trainerlog)\.")
METRICS = "metrics"
"""File, or start of the files, into which a program may write its metric: the variable SLAUNCH_METRIC_FILE names it."""
LAST_LINES, LONGEST = 100, 500
COMPLETED = re.compile(r"training completed.", re.IGNORECASE)
ERROR = re.compile("error", re.IGNORECASE)


@dataclass(frozen=True)
class Seen:
    """What a log, or several together, showed.

    Attributes:
        samples: values of the metric in order, by log.
        ambiguous: lines that gave the metric two values.
        peak: largest value of the program's own memory figure, in its unit; None if it told none.
        step_s: values of the step's time, by log, if it is wanted.
        oom: the first line that tells of lacking memory; "" if none does.
        completed: a line says that the training is completed.
        errors: among the last lines, those with the word error.
    """

    samples: Mapping[str, tuple[float, ...]]
    ambiguous: int = 0
    peak: float | None = None
    step_s: Mapping[str, tuple[float, ...]] | None = None
    oom: str = ""
    completed: bool = False
    errors: tuple[str, ...] = ()


class Eyes:
    """What to look for, compiled once for all logs of a study."""

    def __init__(self, study: Study) -> None:
        self.metric = reader(study.metric.name, study.metric.pattern)
        self.memory = reader(study.memory.name, study.memory.pattern)
        conversion = study.algorithm.conversion
        self.step: Reader = reader(conversion.step_time) if conversion else lambda line: ()
        self.oom = oom_pattern(study.oom)

    def read(self, lines: Iterable[str], name: str) -> Seen:
        """What the lines of the log `name` show."""
        samples: list[float] = []
        steps: list[float] = []
        peaks: list[float] = []
        last: deque[str] = deque(maxlen=LAST_LINES)
        ambiguous, oom, completed = 0, "", False
        for line in (part for raw in lines for part in clean(raw)):
            values = self.metric(line)
            ambiguous += len(values) > 1
            samples += values if len(values) == 1 else ()
            steps += self.step(line)[:1]
            peaks += self.memory(line)
            oom = oom or (line.strip() if self.oom.search(line) else "")
            completed = completed or bool(COMPLETED.search(line))
            last.append(line)
        errors = tuple(dict.fromkeys(line.strip()[:LONGEST] for line in last if ERROR.search(line)))
        peak = max(peaks, default=None)
        return Seen({name: tuple(samples)}, ambiguous, peak, {name: tuple(steps)}, oom[:LONGEST], completed, errors)


NOTHING = Seen({}, step_s={})


def together(parts: Iterable[Seen]) -> Seen:
    """What several logs show."""
    whole = NOTHING
    for part in parts:
        peaks = [peak for peak in (whole.peak, part.peak) if peak is not None]
        whole = Seen(
            {**whole.samples, **{name: values for name, values in part.samples.items() if values}},
            whole.ambiguous + part.ambiguous,
            max(peaks, default=None),
            {**(whole.step_s or {}), **{name: values for name, values in (part.step_s or {}).items() if values}},
            whole.oom or part.oom,
            whole.completed or part.completed,
            tuple(dict.fromkeys((*whole.errors, *part.errors))),
        )
    return whole


def read_logs(folder: str, eyes: Eyes) -> Seen:
    """What all workers' logs in a trial's folder show; metrics that the program wrote into its metric files count alone."""
    logs = together(read_file(path, eyes) for path in log_files(folder))
    own = together(read_file(path, eyes) for path in metric_files(folder))
    found = together((own, logs))
    if own.samples:
        found = replace(found, samples=own.samples, ambiguous=own.ambiguous)
    return replace(found, step_s=own.step_s) if own.step_s else found


def read_file(path: str, eyes: Eyes) -> Seen:
    """What one log shows; nothing if it has gone."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            return eyes.read(file, path)
    except OSError:
        return NOTHING


def log_files(folder: str) -> Iterator[str]:
    """The workers' logs, in the order of their names."""
    for above, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(above, name) for name in sorted(names) if LOGS.match(name))


def metric_files(folder: str) -> Iterator[str]:
    """The program's own metric files."""
    if os.path.isdir(folder):
        yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.startswith(METRICS))


def has_logs(folder: str) -> bool:
    """Whether a worker has started: its log is made just before."""
    return next(log_files(folder), None) is not None
