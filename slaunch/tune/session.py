"""One search at work: its journal, records and clock. The coordinator of all nodes: there is one, and the trials only obey."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from types import FrameType

from slaunch.errors import AllocationError, SlaunchError, UsageError
from slaunch.frozen import asdict, dataclass, replace
from slaunch.options import Options
from slaunch.tune.choice import best
from slaunch.tune.history.journal import Event, Journal, read_record
from slaunch.tune.history.table import write_enhanced, write_history
from slaunch.tune.history.warm import Row, as_record, find
from slaunch.tune.measure.logs import Eyes, read_logs
from slaunch.tune.measure.memory import peak_memory
from slaunch.tune.measure.stats import figure, over_ranks, window
from slaunch.tune.space.estimate import convert, ranking_column
from slaunch.tune.space.grid import accumulation, whole
from slaunch.tune.tell import Teller, began
from slaunch.tune.trial.classify import HOPELESS, classify, read_report
from slaunch.tune.trial.name import batch, folder_name
from slaunch.tune.trial.place import Place, renewed
from slaunch.tune.trial.prepare import Run, make_files, prepare
from slaunch.tune.trial.run import last_line, run_order
from slaunch.tune.trial.values import FINAL, INFRASTRUCTURE, OK, Ended, Order, Record
from slaunch.tune.values import Setting, Study, same

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
RESERVE_S = 30.0
"""What is kept of the allocation's time for the end of the search."""
RETRY_S = 5.0
"""Wait before a trial that could not start is tried again, a multiple of it before further tries: nodes may be coming back."""
SICK = 3
"""So many trials in a row that failed for the machine's sake end the search."""


@dataclass(frozen=True)
class Files:
    """Where everything of a search goes: beside the configuration file, named after it."""

    folder: str
    base: str

    def path(self, end: str) -> str:
        """A file of the search, e.g. `path("history.csv")`."""
        return os.path.join(self.folder, f"{self.base}_{end}")


def files_for(config: str) -> Files:
    """The files of a configuration; `base` is its name up to the first dot."""
    folder, name = os.path.split(os.path.abspath(config))
    return Files(folder, name.split(".", 1)[0])


class Session:
    """Everything that lasts longer than one trial.

    Attributes:
        study, place, options, env: what is tuned, where, and how it is launched.
        files, journal, teller: where it is written.
        fingerprint: of program and machine.
        records: trials of this study, in order.
        handed: how many settings were handed out.
        asked: number of the signal that asked to stop; 0 = none.
        lacking: why there are no nodes for another trial; "" if there are.
    """

    def __init__(  # noqa: PLR0917 - one of each
        self, study: Study, place: Place, options: Options, env: Mapping[str, str], journal: Journal, teller: Teller
    ) -> None:
        self.study, self.place, self.options, self.env = study, place, options, env
        self.files, self.journal, self.teller = files_for(study.path), journal, teller
        self.fingerprint = ""
        self.rows: list[Row] = []
        self.records: list[Record] = []
        self.handed = 0
        self.asked = 0
        self.lacking = ""
        self.nonce = os.urandom(3).hex()
        self.began = time.monotonic()
        self.allocation_end = float("inf")
        self._known: dict[object, list[Record]] = {}
        self._number = last_number(journal.events, self.files.folder)
        self._first = True
        self._eyes = Eyes(study)

    # -- signals and clocks ---------------------------------------------------------------------------------------------

    def heed_signals(self) -> None:
        """From now on these signals ask to stop: the trial at work is ended, and the best so far is told."""
        for number in STOPS:
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = self.asked or number

    def must_stop(self) -> bool:
        """Whether the trial at work has to end now."""
        return bool(self.asked) or time.monotonic() > self.allocation_end - RESERVE_S

    def late(self) -> bool:
        """Whether the allocation may end before another trial like the longest one."""
        longest = max((record.start_s + record.run_s for record in self.records if record.origin == "run"), default=0.0)
        return time.monotonic() + longest > self.allocation_end - RESERVE_S

    def time_left(self) -> float:
        """Seconds that the search's own limit and the allocation leave; infinite if neither is known."""
        limits = self.study.limits
        own = self.began + limits.search_s + limits.trial_s if limits.search_s else float("inf")
        return max(0.0, min(own, self.allocation_end - RESERVE_S) - time.monotonic())

    def over(self) -> str:
        """Why no further trial is started; "" if one may be."""
        limits = self.study.limits
        if self.asked:
            return f"asked to stop by {signal.Signals(self.asked).name}"
        if self.handed >= limits.tasks:
            return f"task_limit: {limits.tasks} trials"
        if limits.search_s and self.handed and time.monotonic() - self.began > limits.search_s:
            return f"max_search_time: {limits.search_s:g} s"
        if self.lacking or self.late():
            return self.lacking or "the allocation's time is nearly over"
        if len(self.records) >= SICK and all(record.status == INFRASTRUCTURE for record in self.records[-SICK:]):
            return f"{SICK} trials in a row failed for the machine's sake: {self.records[-1].detail}"
        return ""

    # -- a phase of the search ------------------------------------------------------------------------------------------

    def enter(self, study: Study, fingerprint: str) -> None:
        """Begin a search with this study: earlier results with the same fingerprint are known, the list of records is new."""
        self.study, self.fingerprint, self.records, self.handed = study, fingerprint, [], 0
        self._eyes = Eyes(study)
        self._known = {} if study.resume == "never" else known_results(self.journal.events, fingerprint)

    def attempt(self, setting: Setting, phase: str = "", repeat_of: int = 0) -> Record:
        """The result of a setting: known from the journal or an earlier table, or else by a trial."""
        self.handed += 1
        known = self._known.get(same(setting))
        if known:
            return replace(known.pop(0), origin="journal")
        row = None if repeat_of else find(self.study, self.rows, setting)
        if row is not None:
            self._number += 1
            return self.keep(as_record(self.study, row, setting, self._number, self.study.resume_csv))
        return self.keep(replace(self._try(setting, phase), repeat_of=repeat_of))

    def keep(self, record: Record) -> Record:
        """Write a result into the journal."""
        self.journal.append("trial", **asdict(record))
        return record

    def file(self, record: Record) -> None:
        """Add a result to the records, and renew the tables."""
        self.records.append(record)
        self.write_tables()

    def write_tables(self) -> None:
        """Renew the tables of the history."""
        write_history(self.files.path("history.csv"), self.study, self.records)
        conversion = self.study.algorithm.conversion
        if conversion and self.study.algorithm.name == "dp_estimation":
            column = ranking_column(conversion, self.study.metric.name)
            write_enhanced(self.files.path("history_enhanced.csv"), self.study, self.records, column)

    def best(self) -> Record | None:
        """The best so far."""
        return best(self.records, self.study.metric, self.study.choice)

    # -- a trial --------------------------------------------------------------------------------------------------------

    def _try(self, setting: Setting, phase: str) -> Record:
        """Run a setting; again, if the machine failed."""
        self._number += 1
        name = folder_name(self.study, self._number, setting, phase)
        self.teller.say(began(self._number, self.study, setting, os.path.join(self.files.folder, name)))
        self.teller.show(self.study, self.records, (self._number, setting))
        for retry in range(self.study.limits.retries + 1):
            record = self._run(setting, f"{name}_retry{retry}" if retry else name)
            if record.status != INFRASTRUCTURE or self.must_stop():
                break
            self.teller.say(f"trial {record.number}: the machine failed: {record.detail}", "WARNING")
            self._renew()
            if self.lacking or retry == self.study.limits.retries:
                break
            if not record.run_s:
                self._wait(RETRY_S * (retry + 1))
        self._first = False
        return record

    def _renew(self) -> None:
        """After a failure of the machine: take spare nodes for those that the job has lost."""
        before = self.place.shell
        try:
            self.place = renewed(self.place)
        except AllocationError as error:
            self.lacking = error.seen
        after = self.place.shell
        if after is not None and before is not None and after != before:
            self.teller.say(f"nodes from now on: {', '.join(after.allocation.nodes)}")

    def _run(self, setting: Setting, name: str) -> Record:
        """Run a setting once."""
        number = self._number
        run = Run(number, name, f"auto_tuner_{number}", os.path.join(self.files.folder, name), step=self._step(number))
        order = make_files(prepare(self.study, self.place, self.options, self.env, setting, run))
        order = replace(order, limit_s=self.study.limits.first_s if self._first else order.limit_s)
        self._pause()
        ended = run_order(order, self.must_stop, lambda pid: self._note_start(order, setting, pid))
        record = self._look(order, setting, ended)
        if ended.left:
            self.teller.say(f"trial {number}: {ended.left}", "WARNING")
        if not ended.started and ended.code in HOPELESS:
            raise hopeless(order, ended)
        return record

    def _step(self, number: int) -> str:
        return f"slaunch-tune-{self.nonce}-{number}"

    def _pause(self) -> None:
        if not self._first and self.study.limits.pause_s:
            self._wait(self.study.limits.pause_s)

    def _wait(self, seconds: float) -> None:
        """Wait, unless the search has to stop."""
        deadline = time.monotonic() + seconds
        while not self.must_stop() and time.monotonic() < deadline:
            time.sleep(min(0.2, seconds))

    def _note_start(self, order: Order, setting: Setting, pid: int) -> None:
        host = os.uname().nodename
        fields = {"number": order.number, "folder": order.folder, "setting": dict(setting), "step": order.step}
        self.journal.append("start", **fields, slurm_job=order.slurm_job, pid=pid, host=host)

    def _look(self, order: Order, setting: Setting, ended: Ended) -> Record:
        """What became of a trial."""
        study = self.study
        seen = read_logs(order.folder, self._eyes)
        metric = over_ranks(study.metric, list(seen.samples.values()))
        said = last_line(order.folder)
        report = read_report(order.folder)
        end = classify(ended, report, seen, metric, said, study.limits.count_cut)
        good = end.status == OK and metric is not None
        peak = None if seen.peak is None else round(seen.peak * study.memory.mib, 2)
        record = Record(
            number=order.number,
            job=order.job,
            folder=order.folder,
            setting=dict(setting),
            status=end.status,
            metric=metric.value if good and metric else None,
            error=metric.error if good and metric else None,
            samples=metric.samples if metric else 0,
            memory_mib=peak_memory(report, order.folder, peak, on_host=not self.place.cluster.device),
            peak_mib=peak,
            start_s=round(ended.start_s, 3),
            run_s=round(ended.run_s, 3),
            detail=end.detail,
            code=ended.code,
            fingerprint=self.fingerprint,
            derived={"acc_steps": accumulation(study, setting), "global_batch_size": batch(study, setting)},
        )
        return replace(record, extra=self._estimates(record, seen.step_s or {}))

    def _estimates(self, record: Record, step_s: Mapping[str, tuple[float, ...]]) -> dict[str, float | None]:
        """The estimates of many replicas from this one, if wanted; overlap trials have none of their own."""
        conversion = self.study.algorithm.conversion
        if conversion is None or "sharding_overlap" in record.setting:
            return {}
        times = [figure(window(values, -1, 10)) for values in step_s.values()]
        longest = max((each.value for each in times if each), default=None)
        gpus = whole(record.setting, "num_gpus", self.place.cluster.gpus)
        return convert(conversion, self.study.metric.name, record.metric, longest, gpus)


def hopeless(order: Order, ended: Ended) -> SlaunchError:
    """The error of a launch that no setting can mend."""
    seen = f"{last_line(order.folder)} (exit code {ended.code}; all it said is in {order.folder})"
    return UsageError("start the first worker of a trial", seen, "mend this: every trial would end the same way")


def known_results(events: list[Event], fingerprint: str) -> dict[object, list[Record]]:
    """Results of the journal that say something of their setting and have this fingerprint, by setting."""
    found: dict[object, list[Record]] = {}
    for event in events:
        if event.get("event") == "trial" and event.get("fingerprint") == fingerprint:
            record = read_record(event)
            if record.status in FINAL:
                found.setdefault(same(record.setting), []).append(record)
    return found


def last_number(events: list[Event], folder: str) -> int:
    """The highest number of a trial in the journal, or of a folder that an earlier search left."""
    numbers = [number for event in events if isinstance(number := event.get("number"), int)]
    folders = [match for match in map(re.compile(r"Job(\d+)_").match, os.listdir(folder)) if match]
    return max([*numbers, *(int(match[1]) for match in folders)], default=0)
