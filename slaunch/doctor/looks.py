"""Runs the checks of one machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slaunch.doctor.bounded import Job, run_all
from slaunch.doctor.checks import CHECKS
from slaunch.doctor.values import Check, Outcome, Request


def look_at_all(request: Request, env: Mapping[str, str]) -> dict[str, Outcome]:
    """What each check saw on this machine. Times are taken last, when nothing else runs."""
    wanted = [check for check in CHECKS if check.quick or not request.quick]
    timing = [check for check in wanted if check.name == "imports"]
    others = {check.name: job_of(check, request, env) for check in wanted if check not in timing}
    found = run_all(others, width=len(others))
    return {**found, **run_all({check.name: job_of(check, request, env) for check in timing})}


def job_of(check: Check, request: Request, env: Mapping[str, str]) -> Job:
    """A check as the runner takes it."""
    look: Callable[[], dict[str, Any]] = lambda: check.look(request, env)  # noqa: E731 - binds this check
    return look, check.limit_s


def plain(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON."""
    return {"facts": dict(outcome.facts), "fault": outcome.fault, "took_s": outcome.took_s}


def outcome_of(value: Mapping[str, Any]) -> Outcome:
    """An outcome from JSON."""
    return Outcome(value["facts"], value["fault"], value["took_s"])
