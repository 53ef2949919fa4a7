"""How an examination is told to people, and to programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slaunch.allocation.hostlist import compress
from slaunch.doctor.send import matrix, speed
from slaunch.doctor.values import ERROR, NOTE, SEVERITIES, WARNING, Finding, Report
from slaunch.frozen import asdict
from slaunch.report.style import BOLD, DIM, RED, counted, duration, paint

FORMAT = 1
"""Of the JSON; raised when a field changes its meaning or goes."""
CODES = {ERROR: 78, WARNING: 1, NOTE: 0}
"""Exit code by the worst finding: 78 is EX_CONFIG of sysexits.h."""
MARKS = {ERROR: "E", WARNING: "!", NOTE: "."}
STYLES = {ERROR: RED + BOLD, WARNING: BOLD, NOTE: DIM}
GROUPS = 20
"""Rows of the table at most."""


def exit_code(report: Report) -> int:
    """The exit code of an examination."""
    return max((CODES[each.severity] for each in report.findings), default=0)


def render_json(report: Report) -> str:
    """The examination as one JSON object."""
    nodes = {node: {name: asdict(outcome) for name, outcome in checks.items()} for node, checks in report.nodes.items()}
    tree: dict[str, Any] = {
        "format": FORMAT,
        "where": report.where,
        "took_s": report.took_s,
        "exit_code": exit_code(report),
        "findings": [asdict(each) for each in report.findings],
        "absent": report.absent,
        "nodes": nodes,
        "site": dict(report.site),
        "rates": [dict(zip(("from", "to", "interface", "bytes_per_s"), rate, strict=True)) for rate in report.rates],
    }
    return json.dumps(tree, indent=2)


def render(report: Report, colour: bool = False) -> str:
    """The findings, then the table by node."""
    blocks = [headline(report), *(finding(each, colour) for each in report.findings)]
    return "\n\n".join([*blocks, "\n".join(table(report)), *networks(report)])


def headline(report: Report) -> str:
    """What was examined, and how it is."""
    counts = {severity: sum(1 for each in report.findings if each.severity == severity) for severity in SEVERITIES}
    told = ", ".join(counted(number, severity) for severity, number in counts.items() if number) or "all is well"
    return f"slaunch doctor: {report.where}, {counted(len(report.nodes), 'node')} in {duration(report.took_s)}: {told}"


def finding(each: Finding, colour: bool) -> str:
    """A finding in three parts."""
    on = f" on {compress(each.nodes)}" if each.nodes else ""
    head = paint(f"{each.severity.upper()} {each.check}{on}", STYLES[each.severity], colour)
    return f"{head}\n  seen:  {each.seen}\n  means: {each.means}\n  do:    {each.todo}"


def table(report: Report) -> Iterator[str]:
    """One row for nodes that are alike: their worst finding in each check that found something, and a few facts."""
    checks = dict.fromkeys(name for outcomes in report.nodes.values() for name in outcomes)
    told = dict.fromkeys(each.check for each in report.findings if each.nodes and each.check != "step")
    names = sorted(told, key=[*checks, *told].index)
    rows: dict[tuple[str, ...], list[str]] = {}
    for node in (*report.nodes, *report.absent):
        rows.setdefault(row(report, node, names), []).append(node)
    lines = [("nodes", *FACTS, *names), *((compress(nodes), *cells) for cells, nodes in list(rows.items())[:GROUPS])]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    if names:
        yield "(E error, ! warning, . note, - well, ? no answer)"
    if well := [name for name in checks if name not in told]:
        yield f"well everywhere: {', '.join(well)}"


def row(report: Report, node: str, names: Sequence[str]) -> tuple[str, ...]:
    """The cells of a node."""
    if node not in report.nodes:
        return ("?",) * (len(names) + len(FACTS))
    return (*facts(report, node), *(mark(report, node, name) for name in names))


def mark(report: Report, node: str, name: str) -> str:
    """The worst that a check found on a node."""
    found = [each.severity for each in report.findings if each.check == name and node in each.nodes]
    return MARKS[min(found, key=SEVERITIES.index)] if found else "-"


FACTS = ("CPUs", "GPUs", "interfaces")


def facts(report: Report, node: str) -> tuple[str, ...]:
    """A few facts of a node that are the same on nodes that are alike."""
    seen: Mapping[str, Mapping[str, Any]] = {name: outcome.facts for name, outcome in report.nodes[node].items()}
    cpus = seen.get("cpus", {}).get("cpus", "?")
    gpus = seen.get("gpus", {}).get("count", "?")
    cards = dict.fromkeys(interface for _, interface, *_ in seen.get("network", {}).get("addresses", ()))
    return str(cpus), str(gpus), ",".join(cards) or "?"


def networks(report: Report) -> list[str]:
    """How fast the networks are."""
    lines = [f"{card}: {speed(rate)} between most pairs, by one TCP connection" for card, rate in matrix(report.rates).items()]
    return ["\n".join(lines)] if lines else []
