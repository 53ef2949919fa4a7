"""Everything that slaunch would do and why, as one tree of plain values: what `explain` shows as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from slaunch.allocation.values import Evidence, Shell, Sighting, StepCall, Task
from slaunch.node.values import NodeFacts
from slaunch.options import Options
from slaunch.plan.values import Command, NodePlan, Plan, WorkerSpec
from slaunch.rendezvous.values import Membership
from slaunch.report.redact import HIDDEN, is_secret_name, redact_argv, redact_env, redact_text, redact_value

FORMAT = 1
"""Raised when a field changes its meaning or goes; new fields may come at any time."""

Tree = dict[str, Any]


def explanation(  # noqa: PLR0917 - the stages' values, in their order
    standing: Task | Shell,
    sightings: Sequence[Sighting],
    membership: Membership,
    plan: Plan,
    specs: Sequence[WorkerSpec],
    options: Options,
    call: StepCall | None,
) -> Tree:
    """The whole tree. Secrets are hidden in it already."""
    return {
        "format": FORMAT,
        "launcher": launcher(standing, sightings),
        "allocation": allocation(standing),
        "step": {"argv": list(redact_argv(call.argv))} if call else None,
        "options": option_values(options),
        "rendezvous": {"way": membership.way, "reason": membership.reason, "epoch": membership.epoch},
        "tasks": [task(index, facts) for index, facts in enumerate(membership.facts)],
        "plan": plan_values(plan, options),
        "workers": [worker(spec, plan) for spec in specs],
    }


def launcher(standing: Task | Shell, sightings: Sequence[Sighting]) -> Tree:
    """Which launcher's variables count, and what spoke for each."""
    chosen = standing.allocation.launcher
    seen = [sighting for sighting in sightings if sighting.evidence]
    return {
        "chosen": chosen,
        "why": why_chosen(chosen, seen),
        "seen": [
            {"reader": s.reader, "depth": s.depth, "evidence": [evidence(item) for item in s.evidence]}
            for s in sorted(seen, key=lambda s: -s.depth)
        ],
    }


def why_chosen(chosen: str, seen: Sequence[Sighting]) -> str:
    """The reason for the choice, in a line."""
    others = sorted({sighting.reader for sighting in seen} - {chosen})
    if chosen not in {sighting.reader for sighting in seen}:
        return "asked for, or nothing else was seen"
    if not others:
        return "nothing else was seen"
    return f"the innermost launcher; it was started inside, or beside what was left by, {', '.join(others)}"


def evidence(item: Evidence) -> Tree:
    """One thing that was seen."""
    return {"variable": item.variable, "value": redact_value(item.variable, item.value), "meaning": item.meaning}


def allocation(standing: Task | Shell) -> Tree:
    """What the launcher gave us, and where in it we stand."""
    given = standing.allocation
    place = {"slot": asdict(standing.slot)} if isinstance(standing, Task) else {"shape": asdict(standing.shape)}
    return {
        "stands_in": "task" if isinstance(standing, Task) else "shell",
        **{name: getattr(given, name) for name in ("launcher", "job", "step", "restarts")},
        "nodes": list(given.nodes),
        "tasks_per_node": list(given.tasks_per_node),
        "evidence": [evidence(item) for item in given.evidence],
        "warnings": list(given.warnings),
        **place,
    }


def option_values(options: Options) -> Tree:
    """Each option's value and where it came from."""
    values = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in ("origins", "program")}
    name, colon, _ = options.etcd_user.partition(":")
    values["etcd_user"] = name + colon + (HIDDEN if colon else "")
    program = options.program
    shown = {name: {"value": plain(value), "origin": options.origins.get(name, "default")} for name, value in values.items()}
    command = {"target": program.target, "args": list(redact_argv(program.args)), "kind": program.kind}
    return {"program": {"value": command, "origin": options.origins.get("program", "command line")}, **shown}


def plain(value: object) -> object:
    """A value as JSON has it; secrets hidden, as in a command where it is a list of words, or a variable where it is a pair."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        is_pair = len(value) == 2 and is_secret_name(value[0])
        return [value[0], HIDDEN] if is_pair else list(redact_argv(value))
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return redact_text(value) if isinstance(value, str) else value


def task(index: int, facts: NodeFacts) -> Tree:
    """What one task knows of its machine."""
    return {"task": index, **asdict(facts)}


def plan_values(plan: Plan, options: Options) -> Tree:
    """The plan without its workers."""
    values = {name: getattr(plan, name) for name in ("job", "attempt", "mode", "layout", "world", "log_dir", "digest")}
    return {
        **values,
        "argv": list(redact_argv(plan.argv)),
        "commands": [command(part) for part in plan.commands],
        "contracts": list(plan.contracts),
        "nodes": [node(part, options) for part in plan.nodes],
    }


def command(part: Command) -> Tree:
    """A command that some of the ranks run."""
    env = redact_env(dict(part.env))
    ranks = [list(pair) for pair in part.ranks]
    return {"name": part.name, "ranks": ranks, "argv": list(redact_argv(part.argv)), "env": dict(env)}


def node(part: NodePlan, options: Options) -> Tree:
    """One node's part of the plan."""
    return {
        "index": part.index,
        "host": part.host,
        "address": asdict(part.address),
        "address_why": f"--network {options.network}" if options.network else "first in the order of usable addresses",
        "ranks": list(part.ranks),
        "ports": list(part.ports),
        "spare_ports": list(part.spare_ports),
        "visible": part.visible,
    }


def worker(spec: WorkerSpec, plan: Plan) -> Tree:
    """One worker: its place, its command, its environment with the origin of every variable."""
    values = redact_env(spec.set_env)
    return {
        "rank": spec.rank,
        "local_rank": spec.local_rank,
        "node": spec.node,
        "host": plan.nodes[spec.node].host,
        "argv": list(redact_argv(spec.argv)),
        "devices": [asdict(device) for device in spec.devices],
        "cpus": list(spec.cpus),
        "memory": {"policy": spec.memory_policy, "nodes": list(spec.memory)} if spec.memory else None,
        "log_name": spec.log_name,
        "set": {name: {"value": value, "origin": spec.origins.get(name, "")} for name, value in values.items()},
        "dropped": {name: spec.origins.get(name, "") for name in spec.drop_env},
        "files": [{"variable": file.variable, "name": file.name, "bytes": len(file.text)} for file in spec.files],
    }
