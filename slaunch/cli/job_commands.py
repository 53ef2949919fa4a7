"""The commands about jobs that are in the queue: `slaunch submit`, `logs`, `cancel` and `report`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from slaunch.cli.table import Given, Row, Table, from_line, help_lines, split
from slaunch.cli.texts import ranks, seconds, truth
from slaunch.errors import UsageError

FOLLOW = Row(("--follow", "-f"), "follow", truth, "", "go on until the job ends, and end with its exit code")
POLL = Row(("--poll",), "poll_s", seconds, "SECONDS", "longest pause between two questions to Slurm meanwhile (default: 30)")
RANK = Row(("--rank", "-r"), "ranks", ranks, "R,S,…|all", "the logs of these workers instead of the job's output")
PATIENCE = Row(("--patience",), "patience_s", seconds, "SECONDS", "how long the job may take to stop (default: 60)")
JSON = Row(("--json",), "json", truth, "", "the report as JSON")

LOGS = Table("slaunch logs", (FOLLOW, RANK, POLL), {})
CANCEL = Table("slaunch cancel", (PATIENCE,), {})
REPORT = Table("slaunch report", (JSON,), {})

ABOUT = {
    LOGS.command: "Show the output of a job, or of some workers. JOB: an id (12, 12_3, 12.0), a name, or a folder of logs.",
    CANCEL.command: "End jobs in good order: SIGTERM to their steps first, so that slaunch stops workers and tells its report.",
    REPORT.command: "Tell how a job ended. JOB: an id (12, 12_3, 12.0), a name, or a folder of logs.",
}


def submit_command(args: Sequence[str], env: Mapping[str, str]) -> int:
    """`slaunch submit`: its exit code, with --wait or --follow the job's.

    Raises:
        SlaunchError: the job cannot be submitted, or not be followed.
    """
    from slaunch.cli.submit import help_text, parse
    from slaunch.submit.follow import Way
    from slaunch.submit.main import dry_run, enqueue, follow, say

    if args and args[0] in ("--help", "-h"):
        print(help_text())
        return 0
    asked = parse(args, env)
    command = ("slaunch", "submit", *args)
    if asked.dry_run:
        return dry_run(asked.request, command, env)
    job = enqueue(asked.request, command, env)
    return follow(job.id, job.cluster, Way(asked.follow, asked.poll_s, say), env, fresh=True) if asked.wait else 0


def logs_command(args: Sequence[str], env: Mapping[str, str]) -> int:
    """`slaunch logs`."""
    from slaunch.submit.follow import Way
    from slaunch.submit.logs import show
    from slaunch.submit.main import say

    if wants_help(args):
        return help_of(LOGS)
    given, jobs = taken(args, LOGS)
    poll_s = float(str(given.get("poll_s", 30.0)))
    chosen = given.get("ranks")
    assert chosen is None or isinstance(chosen, tuple)
    return max(show(job, chosen, Way(bool(given.get("follow")), poll_s, say), env) for job in jobs)


def cancel_command(args: Sequence[str], env: Mapping[str, str]) -> int:
    """`slaunch cancel`."""
    from slaunch.submit.cancel import cancel
    from slaunch.submit.main import say

    if wants_help(args):
        return help_of(CANCEL)
    given, jobs = taken(args, CANCEL)
    return max(cancel(job, float(str(given.get("patience_s", 60.0))), env, say) for job in jobs)


def report_command(args: Sequence[str], env: Mapping[str, str]) -> int:
    """`slaunch report`."""
    from slaunch.submit.reports import tell

    if wants_help(args):
        return help_of(REPORT)
    given, jobs = taken(args, REPORT)
    return max(tell(job, env, bool(given.get("json"))) for job in jobs)


def taken(args: Sequence[str], table: Table) -> tuple[dict[str, object], list[str]]:
    """Options by field, and the jobs; both may stand in any order.

    Raises:
        UsageError: no job is named, or an option is wrong.
    """
    options: dict[str, object] = {}
    jobs: list[str] = []
    rest: Sequence[str] = args
    while rest:
        given = split(rest, table)
        options |= {field: value.value for field, value in from_line(table, Given(given.texts, None)).items()}
        jobs += [given.program.target] if given.program else []
        rest = given.program.args if given.program else ()
    if not jobs:
        raise UsageError(f"run {table.command}", shlex.join(args) or "nothing follows it", f"name a job: {table.command} 4711")
    return options, jobs


def wants_help(args: Sequence[str]) -> bool:
    """Whether the user asks what the command does."""
    return any(word in ("--help", "-h") for word in args)


def help_of(table: Table) -> int:
    """Print what a command does."""
    print(f"usage: {table.command} [options] JOB …\n\n{ABOUT[table.command]}\n\noptions:")
    print("\n".join(help_lines(table.rows)))
    return 0
