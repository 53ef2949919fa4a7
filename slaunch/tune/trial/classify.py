"""The class of a trial's end, from all that is known: how its processes ended, slaunch's report, the logs of all ranks. Pure."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping

from slaunch.errors import (
    AgentLostError,
    AgreementError,
    AllocationError,
    DeviceError,
    MissingToolError,
    OutputError,
    PlanError,
    RendezvousError,
    ScriptError,
    ScriptMissingError,
    UsageError,
)
from slaunch.frozen import dataclass
from slaunch.report.json import NAME
from slaunch.tune.config.kinds import objects
from slaunch.tune.measure.logs import Seen
from slaunch.tune.measure.stats import Figure
from slaunch.tune.trial.values import CANCELLED, ERROR, INFRASTRUCTURE, OK, OOM, TIMEOUT, Ended

Report = Mapping[str, object]

MACHINE = frozenset(
    each.exit_code for each in (AllocationError, RendezvousError, AgreementError, OutputError, AgentLostError, MissingToolError)
)
"""slaunch's own exit codes that blame the machine."""

OVERDUE = {"hang": "no worker said anything for longer than --hang-timeout", "time": "it ran longer than --time-limit"}
"""Ends by time limits of the launch itself."""

HOPELESS = frozenset(each.exit_code for each in (UsageError, DeviceError, PlanError, ScriptError, ScriptMissingError))
"""slaunch's own exit codes that every trial would end with."""


@dataclass(frozen=True)
class End:
    """Status of a trial, and why in one line."""

    status: str
    detail: str = ""


def classify(  # noqa: PLR0917 - all that is known
    ended: Ended, report: Report, seen: Seen, metric: Figure | None, said: str, count_cut: bool
) -> End:
    """The class of a trial's end.

    Lack of memory is asked for before time limits, as other ranks often hang when one lacks it; and before exit codes, as the
    rank that the job died of is often another one.

    Args:
        ended: how its processes ended.
        report: slaunch's report of the run; {} if there is none.
        seen: what the logs of all ranks show.
        metric: the figure of its metric.
        said: last line that its launcher printed.
        count_cut: a trial that its time limit ended counts with what it had measured.
    """
    if ended.why == "asked":
        return End(CANCELLED, "the search was asked to stop")
    if memory_lacked(report, seen):
        return End(OOM, "Out of memory")
    if ended.why == "limit" and not seen.completed:
        return cut(ended, metric, count_cut)
    if ended.why == "start":
        return End(INFRASTRUCTURE, f"no worker had started after {ended.start_s:.0f} s{also(said)}")
    outcome = objects(report.get("verdict")).get("outcome")
    if outcome == "success" or (ended.why == "limit" and seen.completed):
        return measured(metric, seen)
    return failed(ended, report, seen, said)


def memory_lacked(report: Report, seen: Seen) -> bool:
    """Whether any rank lacked memory."""
    verdict = objects(report.get("verdict"))
    others = verdict.get("others")
    failures = [verdict.get("first"), *(others if isinstance(others, list) else [])]
    return bool(seen.oom) or any(objects(failure).get("cause") == "memory" for failure in failures)


def cut(ended: Ended, metric: Figure | None, count_cut: bool) -> End:
    """A trial that its time limit ended."""
    if count_cut and metric is not None and math.isfinite(metric.value):
        return End(OK, f"ended by its time limit after {ended.run_s:.0f} s")
    return End(TIMEOUT, f"ended by its time limit after {ended.run_s:.0f} s")


def measured(metric: Figure | None, seen: Seen) -> End:
    """A trial that ended well."""
    count = max(map(len, seen.samples.values()), default=0)
    if metric is None and count:
        return End(ERROR, f"of {count} samples of the metric the warm-up takes all (metric_cfg.warmup)")
    if metric is None:
        lines = f"; {seen.ambiguous} lines give it two values" if seen.ambiguous else ""
        return End(ERROR, f"no rank told the metric{lines}")
    if not math.isfinite(metric.value):
        return End(ERROR, "the metric is no finite number")
    return End(OK)


def failed(ended: Ended, report: Report, seen: Seen, said: str) -> End:
    """A trial that did not end well, for another reason than memory or time."""
    verdict = objects(report.get("verdict"))
    outcome = verdict.get("outcome")
    if outcome == "failure":
        return End(ERROR, first_failure(objects(verdict.get("first")), seen))
    if outcome in OVERDUE:
        return End(TIMEOUT, OVERDUE[str(outcome)])
    if outcome is not None:
        return End(INFRASTRUCTURE, told(verdict, str(outcome)))
    if ended.code in HOPELESS:
        return End(ERROR, said or f"exit code {ended.code}")
    said += advice(said)
    if not ended.started or ended.code in MACHINE:
        return End(INFRASTRUCTURE, said or f"its launcher ended with exit code {ended.code}")
    return End(INFRASTRUCTURE, f"it left no report, exit code {ended.code}{also(said)}")


def first_failure(first: Mapping[str, object], seen: Seen) -> str:
    """The first worker that failed, and why."""
    ending = f"signal {first['signal']}" if first.get("signal") else f"exit code {first.get('code')}"
    detail = first.get("detail") or "; ".join(seen.errors)
    return f"rank {first.get('rank')}: {ending}" + (f": {detail}" if detail else "")


def told(verdict: Mapping[str, object], outcome: str) -> str:
    """An end that no worker is to blame for."""
    lost = verdict.get("lost")
    if isinstance(lost, list) and lost:
        return f"lost {objects(lost[0]).get('host')}: {objects(lost[0]).get('why')}"
    problem = objects(verdict.get("problem"))
    if problem:
        return f"{verdict.get('problem_host')}: cannot {problem.get('wanted')}: {problem.get('seen')}"
    stopped = objects(verdict.get("stopped"))
    return f"stopped by signal {stopped.get('signal')} {stopped.get('sender') or ''}".strip() if stopped else outcome


def advice(said: str) -> str:
    """What to do about words of a launcher that help nobody.

    Cray's PALS gives each launch an id on the fabric (VNI), of which many small launches use up all (ALCF's known issues).
    """
    if "No VNIs available" not in said:
        return ""
    return " (the fabric's ids are used up; trials on one node need none: --step-args=--no-vni)"


def also(said: str) -> str:
    """The launcher's last line, behind another text."""
    return f": {said}" if said else ""


def read_report(folder: str) -> Report:
    """slaunch's report of the run in a folder; {} if there is none."""
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8") as file:
            return objects(json.load(file))
    except (OSError, ValueError):
        return {}
