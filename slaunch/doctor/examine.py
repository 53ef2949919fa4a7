"""`slaunch doctor` from the request to the report: look, then judge."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from slaunch.allocation.hostlist import compress
from slaunch.allocation.values import Shell, Task
from slaunch.doctor import clocks, reach, send
from slaunch.doctor.checks import CHECKS, munge, slurm
from slaunch.doctor.looks import look_at_all
from slaunch.doctor.values import ERROR, NOTE, SEVERITIES, WARNING, Check, Facts, Finding, Outcome, Report, Request
from slaunch.doctor.visit import Order, Visit, visit
from slaunch.doctor.vote import compare
from slaunch.frozen import replace
from slaunch.slurm.client import parse_version

SAID_CHARS = 600
Outcomes = Mapping[str, Mapping[str, Outcome]]


def examine(request: Request, standing: Task | Shell, env: Mapping[str, str], extra: Sequence[str] = ()) -> Report:
    """Examine this machine, or in a job's shell under Slurm all nodes of the job.

    Args:
        request: what to look at.
        standing: where we are.
        env: this process's environment.
        extra: further srun arguments for the step on the nodes.

    Raises:
        SlaunchError: no step can be started.
    """
    begun = time.monotonic()
    in_job = isinstance(standing, Shell) and standing.allocation.launcher == "slurm"
    nodes = compress(standing.allocation.nodes) if in_job else ""
    site = slurm.look(env.get("SLURM_JOB_ID", ""), nodes)
    if in_job and isinstance(standing, Shell):
        told = visit(Order(standing, env, request, tuple(extra), parse_version(site["client"])))
        report = of_visit(told, site, f"job {standing.allocation.job} on {nodes}")
    else:
        here = os.uname().nodename
        report = of_one(here, look_at_all(request, env), site)
    return replace(report, took_s=round(time.monotonic() - begun, 2))


def of_one(host: str, outcomes: Mapping[str, Outcome], site: Facts) -> Report:
    """The report on one machine."""
    nodes = {host: outcomes}
    return Report(host, ordered([*slurm.judge(site), *judged(nodes, site)]), nodes, site)


def of_visit(told: Visit, site: Facts, where: str) -> Report:
    """The report on a job's nodes."""
    single = judged(told.outcomes, site)
    findings = [
        *slurm.judge(site),
        *absent(told),
        *single,
        *(new for group in told.groups for new in news(compared(told.outcomes, group), single)),
        *compare(VERSIONS, {node: {"version": version} for node, version in site["nodes"].items()}),
        *clocks.judge(told.readings, os.uname().nodename),
        *(munge.foreign(error, node) for node, error in told.refused.items()),
        *reach.judge(told.failures, told.shared),
        *send.judge(told.rates),
    ]
    return Report(where, ordered(findings), told.outcomes, site, told.rates, absent=told.absent)


VERSIONS = Check(slurm.NAME, lambda request, env: {}, traits=lambda facts: slurm.traits(facts["version"]), differs=slurm.DIFFERS)
"""Compares slurmd's release, of which the controller knows."""


def absent(told: Visit) -> list[Finding]:
    """Nodes that did not answer, and a plug-in with which the step did not start."""
    found = []
    said = complaint(told.complaints)
    if told.absent:
        seen = f"no answer from {compress(told.absent)}" + (f"; srun said: {said}" if said else "")
        means = "no step starts there: slurmd cannot be reached, or cannot prove who asks (munge, clock), or the node is busy"
        todo = "see `scontrol show node`, and munge, clock, network there; leave it out (--exclude), and tell the administrator"
        found.append(Finding("step", ERROR, seen, means, todo, told.absent))
    if told.plugin:
        seen = f"a step with srun's default for --mpi did not start; srun said: {said or 'nothing'}"
        todo = "use srun --mpi=none, or another of `srun --mpi=list`; tell the administrator"
        found.append(Finding("step", ERROR, seen, "no step starts without another --mpi", todo))
    return found


def complaint(text: str) -> str:
    """What matters of srun's words: the nodes that failed, if it names any."""
    lines = [line.strip().removeprefix("srun: error: ") for line in text.splitlines() if line.strip()]
    return "; ".join([line for line in lines if "failed on node" in line] or lines)[:SAID_CHARS]


def judged(nodes: Outcomes, site: Facts) -> list[Finding]:
    """What is wrong on single nodes; the same finding on several nodes is one."""
    found: dict[Finding, list[str]] = {}
    for node, outcomes in nodes.items():
        for check in CHECKS:
            for finding in verdict(check, outcomes.get(check.name), site):
                found.setdefault(finding, []).append(node)
    return [replace(finding, nodes=tuple(where)) for finding, where in found.items()]


def verdict(check: Check, outcome: Outcome | None, site: Facts) -> list[Finding]:
    """What a check found on one node; that it failed is a finding of its own."""
    if outcome is None:
        return []
    if not outcome.fault:
        return check.judge(outcome.facts, site)
    todo = f"see whether {check.asks} answers on that node; tell the administrator"
    seen = f"the check itself failed: {outcome.fault}"
    return [Finding(check.name, WARNING, seen, f"nothing is known of it; {check.asks} may not answer, to jobs too", todo)]


def compared(nodes: Outcomes, group: Sequence[str]) -> list[Finding]:
    """How nodes that should be alike differ."""
    found = []
    for check in CHECKS:
        seen = {node: outcomes[check.name] for node, outcomes in nodes.items() if node in group and check.name in outcomes}
        found += compare(check, {node: outcome.facts for node, outcome in seen.items() if not outcome.fault})
    return found


def news(differences: Sequence[Finding], single: Sequence[Finding]) -> list[Finding]:
    """The differences, without those of which the same check has said already what is wrong with just these nodes."""
    said = {(each.check, each.nodes) for each in single if each.severity != NOTE}
    return [each for each in differences if (each.check, each.nodes) not in said]


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The worst first, else in the order in which they were found."""
    return tuple(sorted(findings, key=lambda each: SEVERITIES.index(each.severity)))
