"""`slaunch tune`: from the configuration file to the run of the best setting."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from slaunch.allocation.claims import heed
from slaunch.allocation.select import read
from slaunch.errors import AllocationError, MissingToolError, OutputError, TuneError
from slaunch.frozen import asdict, replace
from slaunch.launch import current
from slaunch.options import Options
from slaunch.report.style import duration
from slaunch.slurm.client import time_left_s
from slaunch.tune import tell
from slaunch.tune.config.build import read_study
from slaunch.tune.coordinate import run_study
from slaunch.tune.history.journal import FORMAT, Journal
from slaunch.tune.history.table import write
from slaunch.tune.history.warm import read_table
from slaunch.tune.inject.apply import TRIAL
from slaunch.tune.session import Files, Session, files_for
from slaunch.tune.trial.carry import unpack
from slaunch.tune.trial.leftovers import clear
from slaunch.tune.trial.place import find_place
from slaunch.tune.trial.prepare import Plan, Run, make_files, prepare
from slaunch.tune.trial.values import Order, Record
from slaunch.tune.values import Study

BEST = "best_cfg"
REQUEUED_S = 120.0
"""How long the tuner of a requeued job waits for the one before it to end."""


def tune(config_path: str, options: Options, env: Mapping[str, str], args: Sequence[str]) -> int:
    """Search the settings that the configuration describes, and run the best one at the end.

    Args:
        config_path: the configuration file.
        options: how each trial is launched, and the program.
        env: this process's environment.
        args: slaunch's own command line, for the log.

    Raises:
        SlaunchError: the configuration is wrong, no trial can start, or no setting has a result.
    """
    study = read_study(config_path)
    options = replace(options, auto_tuner_json="")
    standing, options = heed(current(read(env, options.scheduler, os.uname().nodename)), options)
    place = find_place(standing, options, env, study)
    files = files_for(config_path)
    # Slurm may run a requeued job again while what it ran before is still ending
    patience_s = REQUEUED_S if standing.allocation.restarts else 0.0
    with Journal(files.path("journal.jsonl"), patience_s) as journal:
        teller = open_log(files, keep=bool(journal.events))
        try:
            session = Session(study, place, options, env, journal, teller)
            teller.note(f"slaunch tune {shlex.join(args)}")
            order = search(session, study, options)
            asked = session.asked
        finally:
            teller.close()
    if asked:
        return 128 + asked
    return become(order) if order else 0


def open_log(files: Files, keep: bool) -> tell.Teller:
    """The tuner's log.

    Raises:
        OutputError: it cannot be written.
    """
    path = files.path("auto_tuner.log")
    try:
        return tell.Teller(path, keep)
    except OSError as error:
        raise OutputError("keep the tuner's log", f"{path}: {error.strerror}", "make this folder writable") from None


def search(session: Session, study: Study, options: Options) -> Order | None:
    """The whole search; the best run to do in the end, None if there is none."""
    begin(session, study, options)
    why = run_study(session, study, options)
    session.write_tables()
    session.journal.append("end", reason=why)
    took = duration(time.monotonic() - session.began)
    session.teller.say(f"the search ended after {took} with {len(session.records)} trials: {why}")
    session.teller.show(session.study, session.records)
    return finish(session, why)


def begin(session: Session, study: Study, options: Options) -> None:
    """What comes before the first trial: signals, the end of the allocation, left-overs, earlier results."""
    session.heed_signals()
    cluster = session.place.cluster
    session.journal.append("study", format=FORMAT, config=study.path, cluster=asdict(cluster))
    if session.journal.torn:
        session.teller.say(f"the journal's last line was torn, {session.journal.torn} bytes were cut off", "WARNING")
    left = clear(session.journal.events, session.place.slurm_job, options.grace_s)
    if left:
        session.teller.say(f"of an earlier trial: {left}", "WARNING")
    session.allocation_end = allocation_end(session.place.slurm_job)
    if study.resume_csv:
        session.rows = read_table(study.resume_csv)
        keep_copy(study.resume_csv, session.files)


def allocation_end(slurm_job: str) -> float:
    """When the allocation ends, by the monotonic clock; infinite if that is not told."""
    if not slurm_job:
        return float("inf")
    try:
        return time.monotonic() + time_left_s(slurm_job)
    except (AllocationError, MissingToolError):
        return float("inf")


def keep_copy(path: str, files: Files) -> None:
    """Keep the table that the search starts from, as the history may be written to the same file."""
    with open(path, encoding="utf-8", newline="") as file:
        write(files.path("history_copy.csv"), file.read())


def finish(session: Session, why: str) -> Order | None:
    """Tell the best, and make ready its run.

    Raises:
        TuneError: no setting has a result, or the allocation ended before the search.
    """
    found = session.best()
    if found is None and not session.asked:
        raise tell.no_best(session.records, session.files.path("history.csv"))
    if found is None:
        return None
    session.teller.say(tell.current_best(session.study, found))
    plan = best_plan(session, found)
    order = plan.order
    session.teller.say(f"its settings: {shown(order)}")
    write(session.files.path("best.json"), best_json(found, order))
    if session.asked:
        session.teller.say("start the same command again: it goes on from the journal")
        return None
    if session.late() or session.lacking:
        raise TuneError(
            "finish the search",
            f"{why}; the best so far is trial {found.number}",
            "start the same command again in a new allocation: it goes on from the journal",
        )
    if not session.study.choice.run or session.study.algorithm.estimated_gpus:
        return None
    session.journal.append("best", number=found.number, setting=dict(found.setting), folder=order.folder)
    return make_files(plan)


def best_plan(session: Session, found: Record) -> Plan:
    """The run of the best setting: its own job id and folder, no time limit."""
    folder = session.study.choice.folder or os.path.join(session.files.folder, BEST)
    run = Run(0, BEST, BEST, os.path.abspath(folder), "best", f"slaunch-tune-{session.nonce}-best")
    return prepare(session.study, session.place, session.options, session.env, found.setting, run)


def best_json(found: Record, order: Order) -> str:
    """The best setting, and how it is run, for programs."""
    trial = json.loads(unpack(order.call.argv[-1])[1][TRIAL])
    return json.dumps({"record": asdict(found), "trial": trial, "command": order.call.argv}, indent=2) + "\n"


def shown(order: Order) -> str:
    """The best setting as the program is told it."""
    options, env = unpack(order.call.argv[-1])
    program = options.program
    return f"{TRIAL}={shlex.quote(env[TRIAL])} {shlex.join((program.target, *program.args))}"


def become(order: Order) -> NoReturn:
    """Replace this process by the best run, so that its exit code is that of the whole."""
    sys.stderr.flush()
    try:
        os.execvpe(order.call.argv[0], order.call.argv, dict(order.call.env))
    except OSError as error:
        raise MissingToolError("run the best setting", f"{order.call.argv[0]}: {error.strerror}", "look at PATH") from None
