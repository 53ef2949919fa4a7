"""`slaunch explain`: everything slaunch would do and why, as text for people or JSON for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

from slaunch.allocation.values import Shell, Sighting, StepCall, Task
from slaunch.options import Options
from slaunch.plan.values import Plan, WorkerSpec
from slaunch.rendezvous.values import Membership
from slaunch.report.explanation import Tree, explanation
from slaunch.report.style import counted

NODES_SHOWN = 16
"""Nodes that the text shows; JSON has all."""


def explain_json(  # noqa: PLR0917 - the stages' values, in their order
    standing: Task | Shell,
    sightings: Sequence[Sighting],
    membership: Membership,
    plan: Plan,
    specs: Sequence[WorkerSpec],
    options: Options,
    call: StepCall | None,
) -> str:
    """The explanation as one JSON object; see `explanation` for its fields."""
    return json.dumps(explanation(standing, sightings, membership, plan, specs, options, call), indent=2)


def explain_text(  # noqa: PLR0917 - the stages' values, in their order
    standing: Task | Shell,
    sightings: Sequence[Sighting],
    membership: Membership,
    plan: Plan,
    specs: Sequence[WorkerSpec],
    options: Options,
    call: StepCall | None,
) -> str:
    """The explanation for people, in the order of the stages."""
    tree = explanation(standing, sightings, membership, plan, specs, options, call)
    parts = (
        ("launcher", launcher(tree["launcher"])),
        ("allocation", allocation(tree["allocation"])),
        ("step that slaunch starts", [shlex.join(tree["step"]["argv"])] if tree["step"] else []),
        ("options", options_lines(tree["options"])),
        ("meeting", [f"{tree['rendezvous']['way']}: {tree['rendezvous']['reason']}"]),
        ("nodes", nodes(tree)),
        ("plan", plan_lines(tree["plan"])),
        ("workers", workers(tree["workers"])),
        ("environment of rank 0", environment([spec for spec in tree["workers"] if spec["rank"] < tree["plan"]["world"]])),
        ("removed from the environment", removed(tree["workers"])),
    )
    return "\n\n".join(section(title, lines) for title, lines in parts if lines)


def section(title: str, lines: Iterable[str]) -> str:
    """A headline and indented lines."""
    return "\n".join((title, *(f"  {line}" for line in lines)))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns as wide as their widest cell; the last column is free."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)] if rows else []
    return ["  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])).rstrip() for row in rows]


def launcher(tree: Tree) -> list[str]:
    """The launcher chosen, and all that was seen of it and others."""
    lines = [f"{tree['chosen']}: {tree['why']}"]
    for seen in tree["seen"]:
        lines.append(f"seen of {seen['reader']} (depth {seen['depth']}):")
        lines += [f"  {line}" for line in evidence_table(seen["evidence"])]
    return lines


def evidence_table(items: Sequence[Tree]) -> list[str]:
    """Variable, value, meaning."""
    return table([(item["variable"], repr(item["value"]), item["meaning"]) for item in items])


def allocation(tree: Tree) -> list[str]:
    """Job, nodes, our place."""
    name = f"job {tree['job']}" if tree["job"] else "no job"
    lines = [f"{name}{', step ' + tree['step'] if tree['step'] else ''}, restarted {tree['restarts']} times"]
    if tree["nodes"]:
        lines.append(f"{counted(len(tree['nodes']), 'node')}: {', '.join(tree['nodes'])}")
    if "slot" in tree:
        slot = tree["slot"]
        lines.append(f"this is task {slot['rank']} of {slot['size']}, number {slot['local_rank']} on its node")
    else:
        lines.append("this is a batch or allocation shell: slaunch starts a step")
    return lines + evidence_table(tree["evidence"]) + [f"warning: {warning}" for warning in tree["warnings"]]


def options_lines(tree: Tree) -> list[str]:
    """The program, and options that were set by somebody."""
    program = tree["program"]["value"]
    lines = [f"program: {shlex.join((program['target'], *program['args']))} ({program['kind']})"]
    given = [(name, str(entry["value"]), f"({entry['origin']})") for name, entry in tree.items() if entry["origin"] != "default"]
    return lines + table([row for row in given if row[0] != "program"])


def nodes(tree: Tree) -> list[str]:
    """Each node: address, CPUs, devices, what it noticed."""
    lines = []
    planned = tree["plan"]["nodes"]
    facts = {task["host"]: task for task in reversed(tree["tasks"])}
    for node in planned[:NODES_SHOWN]:
        address, seen = node["address"], facts.get(node["host"])
        lines.append(f"{node['index']} {node['host']}: {address['ip']} on {address['interface']}, {node['address_why']}")
        if seen:
            lines += [f"    {line}" for line in machine(seen)]
    return lines + more(len(planned) - NODES_SHOWN, "nodes")


def machine(facts: Tree) -> list[str]:
    """What a task found on its machine."""
    others = [f"{address['ip']} ({address['interface']})" for address in facts["addresses"]]
    lines = [f"addresses: {', '.join(others)}", f"CPUs: {ranges(facts['cpus'])} ({counted(len(facts['cores']), 'core')})"]
    if facts["devices"]:
        devices = ", ".join(f"{device['kind']} {device['label']}" for device in facts["devices"])
        lines.append(f"devices: {devices}, listed by {facts['visible'] or 'the driver'}")
    return lines + [f"note: {note}" for note in facts["notes"]]


def plan_lines(tree: Tree) -> list[str]:
    """The plan in short."""
    layout = {"agent": "an agent on each node starts its workers", "task": "each task becomes its worker"}[tree["layout"]]
    return [
        f"{counted(tree['world'], 'worker')} on {counted(len(tree['nodes']), 'node')}, mode {tree['mode']}; {layout}",
        *commands(tree),
        f"contracts: {', '.join(tree['contracts'])}",
        f"logs: {tree['log_dir'] or 'left to the launcher'}",
        f"job {tree['job']}, attempt {tree['attempt']}, digest {tree['digest'][:12]}",
    ]


def commands(tree: Tree) -> list[str]:
    """The command of all workers, or of each role."""
    if not tree["commands"]:
        return [f"command: {shlex.join(tree['argv'])}"]
    lines = []
    for part in tree["commands"]:
        ranks = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in part["ranks"])
        lines.append(f"command of {part['name']} (ranks {ranks or 'of no other role'}): {shlex.join(part['argv'])}")
    return lines


def workers(specs: Sequence[Tree]) -> list[str]:
    """One line for each worker."""
    head = ("rank", "node", "local", "devices", "CPUs", "log")
    return table([head, *(worker_row(spec) for spec in specs)])


def worker_row(spec: Tree) -> tuple[str, ...]:
    """A worker's line."""
    devices = ",".join(device["label"] for device in spec["devices"]) or "-"
    place = (str(spec["rank"]), spec["host"], str(spec["local_rank"]))
    return (*place, devices, ranges(spec["cpus"]) or "not bound", spec["log_name"])


def environment(specs: Sequence[Tree]) -> list[str]:
    """What rank 0 gets, and which of it differs between workers."""
    if not specs:
        return []
    first = specs[0]["set"]
    rows = [(name, repr(entry["value"]), f"({entry['origin']})") for name, entry in first.items()]
    differ = sorted(name for name, entry in first.items() if any(spec["set"].get(name) != entry for spec in specs[1:]))
    files = [f"{file['variable']} names the file {file['name']} ({file['bytes']} bytes)" for file in specs[0]["files"]]
    return table(rows) + files + ([f"different for each worker: {', '.join(differ)}"] if differ else [])


def removed(specs: Sequence[Tree]) -> list[str]:
    """What workers do not inherit."""
    return table(list(specs[0]["dropped"].items())) if specs else []


def more(number: int, noun: str) -> list[str]:
    """A line for what is not shown."""
    return [f"… and {number} more {noun} (--json shows all)"] if number > 0 else []


def ranges(numbers: Sequence[int]) -> str:
    """ "0-3,8" for 0 1 2 3 8."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[1]}" for run in runs)
