"""The state of a running job for people, from the file that its hub writes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from slaunch.frozen import dataclass
from slaunch.jobs import Run
from slaunch.report.style import BOLD, DIM, RED, counted, duration, paint, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from rich.console import RenderableType

PATIENCE_S = 15.0
"""A state that is so much older than it may be comes from an agent that is gone, or over a file system that hangs."""
HEADS = ("NODE", "RANK", "STATE", "CPUS", "MEMORY", "DEVICES", "OUTPUT", "SILENT", "LAST LINE")
LEFT = ("NODE", "STATE", "LAST LINE")
LAST_CHARS = 60


@dataclass(frozen=True)
class Situation:
    """What is known of a run.

    Attributes:
        run: the run.
        word: "running", "ended", "silent" (its hub has written nothing for too long) or "unknown" (nothing is written yet).
        state: what the hub has written last; {} if nothing.
        report: the report of the run; {} if it has not ended.
        age_s: how old the state is.
    """

    run: Run
    word: str
    state: Mapping[str, Any]
    report: Mapping[str, Any]
    age_s: float


def look(run: Run, now_s: float) -> Situation:
    """What is known of a run at `now_s`, seconds since the epoch. Files of a former run in the same place do not count."""
    state, report = _read(run.status), _read(run.report)
    state = state if float(state.get("now_s", 0.0)) >= run.started_s and _is_of(run, state.get("id")) else {}
    report = report if _is_of(run, report.get("job")) else {}
    report = report if float(report.get("ended_s", 0.0)) >= max(run.started_s, float(state.get("started_s", 0.0))) else {}
    age_s = max(0.0, now_s - float(state["now_s"])) if state else 0.0
    if report or state.get("state") == "ended":
        return Situation(run, "ended", state, report, age_s)
    if not state:
        return Situation(run, "unknown", state, report, age_s)
    silent = age_s > 3 * float(state["interval_s"]) + PATIENCE_S
    return Situation(run, "silent" if silent else "running", state, report, age_s)


def _is_of(run: Run, name: object) -> bool:
    """Whether a file in the run's folder is this run's: a folder that the user names may be several runs'."""
    return not run.host or name is None or name in (run.id, run.name)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def as_json(situation: Situation) -> str:
    """Everything, for programs."""
    from slaunch.frozen import asdict

    known = {"run": asdict(situation.run), "state": situation.word, "age_s": round(situation.age_s, 1)}
    return json.dumps({**known, "status": situation.state or None, "report": situation.report or None}, sort_keys=True)


def as_text(situation: Situation, colour: bool = False, most: int = 0) -> str:
    """Everything, for people; of the workers at most `most` where that is not 0."""
    lines = headline(situation, colour)
    table = rows(situation.state)
    shown = table[:most] if most else table
    if shown:
        widths = [max(len(row[i]) for row in (HEADS, *shown)) for i in range(len(HEADS))]
        lines += [paint(_aligned(HEADS, widths), BOLD, colour), *(_aligned(row, widths) for row in shown)]
    if len(table) > len(shown):
        lines.append(paint(f"… and {counted(len(table) - len(shown), 'more worker')}", DIM, colour))
    return "\n".join(lines)


def headline(situation: Situation, colour: bool = False) -> list[str]:
    """What the job does, and where its files are."""
    run, state = situation.run, situation.state
    name = f" ({run.name})" if run.name not in ("", run.id) else ""
    lines = [f"job {run.id}{name}: {_doing(situation, colour)}"]
    nodes, world = _extent(run, state)
    size_of = f"{counted(world, 'worker')} on {counted(nodes, 'node')}; " if world else ""
    return [*lines, f"{size_of}logs in {run.log_dir}", *_counts(state)]


def _extent(run: Run, state: Mapping[str, Any]) -> tuple[int, int]:
    """Number of nodes and workers: after a restart, of those that are there."""
    active = [len(node["workers"]) for node in state.get("nodes", ()) if node["workers"]]
    if state.get("attempt") and active:
        return len(active), sum(active)
    return len(state.get("nodes", ())) or run.nodes, state.get("world") or run.world


def _doing(situation: Situation, colour: bool) -> str:
    state = situation.state
    if situation.word == "ended":
        return _ending(situation, colour)
    if situation.word == "unknown":
        return "nothing is known of its workers (yet)"
    if situation.word == "silent":
        return paint(f"not heard of for {duration(situation.age_s)}: it was killed, or its disk hangs", RED, colour)
    parts = [f"running for {duration(state['now_s'] - state['started_s'])}"]
    parts += [f"attempt {state['attempt']}"] if state["attempt"] else []
    parts += [f"{duration(state['left_s'])} left"] if state["left_s"] is not None else []
    return f"{', '.join(parts)} (as of {duration(situation.age_s)} ago)"


def _ending(situation: Situation, colour: bool) -> str:
    verdict = situation.report.get("verdict") or situation.state
    outcome, code = verdict.get("outcome", "?"), verdict.get("code", "?")
    ended_s = situation.report.get("ended_s") or situation.state["now_s"]
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ended_s))
    if outcome == "success":
        return f"ended well at {at}"
    return paint(f"ended at {at}: {outcome}, exit code {code}; `slaunch report {situation.run.id}` tells more", RED, colour)


def _counts(state: Mapping[str, Any]) -> list[str]:
    """How many workers do what, where not all do the same; nodes that nothing is heard of."""
    count = Counter(worker["state"] for node in state.get("nodes", ()) for worker in node["workers"])
    lines = [", ".join(f"{number} {name}" for name, number in count.most_common())] if len(count) > 1 else []
    late = 3 * float(state.get("interval_s", 0.0)) + PATIENCE_S
    silent = [node["host"] for node in state.get("nodes", ()) if node["heard_s"] is None or node["heard_s"] > late]
    if silent and state.get("state") == "running":
        lines.append(f"nothing heard of {', '.join(silent[:8])}{f' and {len(silent) - 8} more' if len(silent) > 8 else ''}")
    return lines


def rows(state: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each worker."""
    return [_row(node, worker) for node in state.get("nodes", ()) for worker in node["workers"]]


def _row(node: Mapping[str, Any], worker: Mapping[str, Any]) -> tuple[str, ...]:
    lives = worker["state"] != "ended"
    return (
        node["host"],
        str(worker["rank"]),
        worker["state"],
        f"{worker['cpus']:.1f}" if lives else "",
        size(worker["host_bytes"]) if lives else "",
        devices(worker),
        amount(worker["out_bytes"]),
        duration(worker["silent_s"]) if lives else "",
        printable(worker["last"])[:LAST_CHARS],
    )


def devices(worker: Mapping[str, Any]) -> str:
    """Memory that a worker holds on its devices, and how busy they are; of one that has ended the most that it held."""
    held, percent = worker.get("device_now_bytes", -1), worker.get("device_percent", -1)
    if held < 0:
        return size(worker["device_bytes"]) if worker["device_bytes"] else ""
    return f"{size(held)} {percent} %" if percent >= 0 else size(held)


def amount(count: int) -> str:
    """An amount of output, which may be small."""
    if count >= 1 << 20:
        return size(count)
    return f"{count / 1024:.1f} KiB" if count >= 1 << 10 else f"{count} B"


def printable(text: str) -> str:
    """A worker's line without what would move the cursor."""
    return "".join(char if char.isprintable() else "·" for char in text)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(HEADS, row, widths, strict=True)
    return "  ".join(cell.ljust(width) if head in LEFT else cell.rjust(width) for head, cell, width in cells).rstrip()


def as_table(situation: Situation, most: int) -> RenderableType:
    """The same for a live view by rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in HEADS:
        side: Literal["left", "right"] = "left" if head in LEFT else "right"
        table.add_column(head, justify=side, no_wrap=True, overflow="ellipsis", ratio=1 if head == HEADS[-1] else None)
    found = rows(situation.state)
    for row in found[:most]:
        table.add_row(*(Text(cell) for cell in row))
    more = [Text(f"… and {counted(len(found) - most, 'more worker')}", style="dim")] if len(found) > most else []
    return Group(*(Text(line) for line in headline(situation)), table, *more)
