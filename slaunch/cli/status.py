"""`slaunch status [JOB]`: what a job's workers do, from any machine that sees its files."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence

from slaunch.cli.table import Row, Table, from_line, help_lines, split
from slaunch.cli.texts import seconds, truth
from slaunch.errors import AllocationError, UsageError
from slaunch.jobs import Run, find
from slaunch.report.status import Situation, as_json, as_table, as_text, look

TABLE = Table(
    "slaunch status",
    (
        Row(("--json",), "json", truth, "", "once, as JSON"),
        Row(("--once",), "once", truth, "", "once, also on a terminal"),
        Row(("--interval",), "interval_s", seconds, "SECONDS", "how often a live view looks again (default: 2)"),
    ),
    kinds={},
)
AROUND_TABLE = 8
"""Lines of the terminal that are not for workers."""


def status_command(args: Sequence[str], env: Mapping[str, str]) -> int:
    """Show what is known of a job, the latest one without a name; live on a terminal until it ends. 0 if something is known.

    Raises:
        AllocationError: nothing is known of such a job.
        UsageError: the command line is wrong.
    """
    if args and args[0] in ("--help", "-h"):
        print(help_text())
        return 0
    first = [word for word in args if not word.startswith("-")][:1]
    ordered = [*(word for word in args if word not in first), *first]  # the job may stand before the options, too
    given = split(ordered, TABLE)
    wanted = given.program.target if given.program else ""
    if given.program and given.program.args:
        raise UsageError("show a job", f"{wanted} and {' '.join(given.program.args)}", "name one job")
    options = {name: value.value for name, value in from_line(TABLE, given).items()}
    runs = runs_of(wanted, env)
    situation = look(runs[-1], time.time())
    if options.get("json"):
        print(as_json(situation))
        return 0
    if not sys.stdout.isatty() or options.get("once") or situation.word != "running":
        print(as_text(situation, colour=sys.stdout.isatty()))
        others(runs)
        return 0
    return live(runs[-1], float(str(options.get("interval_s", 2.0))))


def runs_of(wanted: str, env: Mapping[str, str]) -> tuple[Run, ...]:
    """The runs that the user may mean: those of the job named, of the job that we are in, or all."""
    inside = env.get("SLURM_JOB_ID", "")
    runs = find(wanted or inside, env, os.getcwd()) or (find("", env, os.getcwd()) if not wanted else ())
    if not runs:
        seen = "no run of that id or name is remembered, nor has slaunch-logs here a folder for it"
        raise AllocationError(f"find job {wanted or '(any)'}", seen, "name the directory of its logs instead")
    return runs


def others(runs: Sequence[Run]) -> None:
    """Name the other runs that may have been meant: other tasks of the array, other steps."""
    ids = [run.id for run in runs[:-1]]
    if 0 < len(ids) <= 20 and len({id.partition("_")[0].partition(".")[0] for id in (*ids, runs[-1].id)}) == 1:
        print(f"also: {', '.join(ids)}")


def live(run: Run, interval_s: float) -> int:
    """Show a run until it has ended, or somebody presses Ctrl-C."""
    try:
        from rich.live import Live
    except ImportError:
        return plain_live(run, interval_s)
    situation = look(run, time.time())
    with Live(as_table(situation, room()), auto_refresh=False, screen=True) as view:
        while situation.word == "running":
            time.sleep(interval_s)
            situation = look(run, time.time())
            view.update(as_table(situation, room()), refresh=True)
    return last_view(situation)


def plain_live(run: Run, interval_s: float) -> int:
    """The same without rich."""
    while (situation := look(run, time.time())).word == "running":
        print(f"\033[H\033[2J{as_text(situation, colour=True, most=room())}", flush=True)
        time.sleep(interval_s)
    return last_view(situation)


def last_view(situation: Situation) -> int:
    """What stays on the terminal."""
    print(as_text(situation, colour=True))
    return 0


def room() -> int:
    """Number of workers that the terminal has room for."""
    return max(3, os.get_terminal_size().lines - AROUND_TABLE)


def help_text() -> str:
    """The text of `slaunch status --help`."""
    lines = [
        "usage: slaunch status [options] [JOB]",
        "",
        "Show what a job's workers do: state, CPUs, memory, output, last line. JOB: an id (12, 12_3, 12.0), a name, or a folder",
        "of logs; without it the job that this shell is in, or the latest. Nothing is asked of the scheduler.",
        "",
        "options:",
    ]
    return "\n".join(lines + help_lines(TABLE.rows))
