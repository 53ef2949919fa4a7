"""The course of a search: phases, trials one after another, repeats of near ties, the end."""

from __future__ import annotations

from slaunch.frozen import replace
from slaunch.options import Options
from slaunch.tune import tell
from slaunch.tune.choice import near_ties
from slaunch.tune.history.fingerprint import fingerprint
from slaunch.tune.history.table import render, write
from slaunch.tune.rules.history import PARTNERS
from slaunch.tune.search.choose import Search, method
from slaunch.tune.search.estimator import sift
from slaunch.tune.search.ladder import Ladder
from slaunch.tune.session import Session
from slaunch.tune.space.estimate import gains, partner
from slaunch.tune.space.make import Space
from slaunch.tune.trial.name import whole_text
from slaunch.tune.trial.values import CANCELLED, OOM, PRUNED, Record
from slaunch.tune.values import Dropped, Setting, Study

BATCH_PHASE = "GBSSearch"


def run_study(session: Session, study: Study, options: Options) -> str:
    """All phases of the search; why it ended.

    Raises:
        SlaunchError: no setting is left to try, or no trial can start.
    """
    if not study.model.global_batch_size and study.algorithm.name not in ("gbs", "customize"):
        first = replace(study, algorithm=replace(study.algorithm, name="gbs"))
        why = run_phase(session, first, options, BATCH_PHASE)
        found = largest_batch(session.records)
        if not found or session.over():
            return why
        session.teller.say(f"global batch size {found}: the largest that ran")
        study = replace(study, model=replace(study.model, global_batch_size=found))
    why = run_phase(session, study, options, BATCH_PHASE if study.algorithm.name == "gbs" else "")
    return repeat_ties(session) or why


def largest_batch(records: list[Record]) -> int:
    """The largest global batch that ran; 0 if none did."""
    return max((record.derived["global_batch_size"] for record in records if record.ran), default=0)


def run_phase(session: Session, study: Study, options: Options, phase: str) -> str:
    """One search; why it ended."""
    cluster = session.place.cluster
    chosen = method(study.algorithm.name)
    space, estimates = sift(study, chosen.space(study, cluster))
    session.enter(study, fingerprint(study, cluster, options))
    session.teller.say(tell.opening(study, cluster, space))
    write_dropped(session, space)
    if not space.settings:
        raise tell.no_settings(study, cluster, space)
    memory = {id(setting): estimates.get(place) for place, setting in enumerate(space.settings)}
    return walk(session, chosen.search(study, cluster, space.settings), phase, memory)


def walk(session: Session, search: Search, phase: str, estimates: dict[int, int | None]) -> str:
    """Ask, try, tell, until nothing is left or something ends the search; why it ended."""
    noted = 0
    while True:
        why = session.over()
        if why:
            return why
        setting = search.ask()
        noted = note_skips(session, search, noted)
        if setting is None:
            return "nothing is left to try"
        record = session.attempt(setting, phase)
        needed = estimates.get(id(setting))
        if needed is not None:
            record = replace(record, extra={"estimated_memory_usage": float(needed), **record.extra})
        take(session, search, setting, record)
        if record.status == CANCELLED:
            return session.over() or record.detail


def take(session: Session, search: Search, setting: Setting, record: Record) -> None:
    """Hand a result to the records, the search and the user."""
    session.file(record)
    add_gain(session, record)
    search.tell(setting, record.ran, record.status == OOM)
    say = session.teller.say
    say(tell.result(session.study, record), "INFO" if record.ran else "WARNING")
    skipped = len(search.skipped) if not isinstance(search, Ladder) else 0
    paces = tuple(each.start_s + each.run_s for each in session.records if each.origin == "run")
    limits = session.study.limits
    further = limits.tasks - session.handed, session.time_left()
    how_far = tell.Progress(search.total, search.left, skipped, tuple(session.records), limits.trial_s, paces, *further)
    progress = tell.schedule(how_far)
    say(progress)
    session.teller.show(session.study, session.records, caption=progress)
    best = session.best()
    if best is not None and (best.number == record.number or len(session.records) == 1):
        say(tell.current_best(session.study, best))


def note_skips(session: Session, search: Search, noted: int) -> int:
    """Write the settings that were skipped since, with the reasons, into journal and log; how many there are now."""
    for dropped in search.skipped[noted:]:
        session.journal.append("skip", status=PRUNED, setting=dict(dropped.setting), rule=dropped.rule, reason=dropped.reason)
        session.teller.note(f"skipped {whole_text(session.study, dropped.setting)}: {dropped.rule}: {dropped.reason}")
    return len(search.skipped)


def repeat_ties(session: Session) -> str:
    """Run the settings again whose results cannot be told from the best one's, if the user wants that; why that ended."""
    while session.study.limits.repeats and not session.over():
        ties = near_ties(session.records, session.study.metric, session.study.limits)
        if not ties:
            return ""
        for record in ties:
            why = session.over()
            if why:
                return why
            session.teller.say(f"again, as it came near the best: trial {record.number}")
            again = session.attempt(record.setting, "", record.number)
            session.file(again)
            session.teller.say(tell.result(session.study, again))
            if not again.ran:
                return "" if again.status != CANCELLED else session.over()
    return ""


def add_gain(session: Session, record: Record) -> None:
    """After a trial with overlap: add its gain to the estimate of the setting that it belongs to."""
    conversion = session.study.algorithm.conversion
    if conversion is None or record.setting.get("sharding_overlap") is not True or record.metric is None:
        return
    settings = [each.setting for each in session.records]
    without = partner(record.setting, settings, (*PARTNERS, "sharding_degree"), overlap=False)
    plain = partner(record.setting, settings, PARTNERS, overlap=None)
    if without < 0 or plain < 0 or not session.records[without].metric:
        return
    first = session.records[plain]
    metric = session.study.metric.name
    extra = gains(conversion, metric, first.extra, session.records[without].metric or 0.0, record.metric)
    session.records[plain] = replace(first, extra={**first.extra, **extra})
    session.write_tables()


def write_dropped(session: Session, space: Space) -> None:
    """Every setting that the rules dropped, with rule and reason, as a table beside the history."""
    rows = [cells(dropped) for dropped in space.dropped]
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["rule", "reason"]
    write(session.files.path("dropped.csv"), render(names, rows))


def cells(dropped: Dropped) -> dict[str, object]:
    """One of them."""
    return {**dropped.setting, "rule": dropped.rule, "reason": dropped.reason}
