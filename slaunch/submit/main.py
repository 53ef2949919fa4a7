"""From a request to a job in the queue, and to its end if the user wants to see it."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache

from slaunch.errors import AllocationError, MissingToolError
from slaunch.jobs import find
from slaunch.slurm.client import ask
from slaunch.slurm.records import Record, past
from slaunch.submit.follow import Follower, Way, code_of
from slaunch.submit.gpus import Site, hint, read_site
from slaunch.submit.script import GPUS, own_folder, script_of
from slaunch.submit.send import Answer, check, remember, submit
from slaunch.submit.tail import Tail
from slaunch.submit.values import Request, Submitted


@cache
def ask_site() -> Site:
    """What Slurm's controller says of the site.

    Raises:
        SlaunchError: it does not answer, or Slurm's tools are not there.
    """
    return read_site(ask(("scontrol", "show", "config")), ask(("sinfo", "--noheader", "--all", "--format=%P|%G")))


def any_site() -> Site:
    """As `ask_site`; where there is no Slurm, a site of which nothing is known."""
    try:
        return ask_site()
    except MissingToolError:
        return Site("", ())


def dry_run(request: Request, command: Sequence[str], env: Mapping[str, str]) -> int:
    """Print the script, and what sbatch says to it, if it is here."""
    from slaunch.submit.highlight import show

    script = script_of(request, any_site, command, own_folder())
    show(script)
    sys.stdout.flush()
    say(f"to be submitted by: {shlex.join(('sbatch', *request.extra))}  (nothing was)")
    try:
        answer = check(script, request.extra, env)
    except MissingToolError:
        say("not checked: no sbatch here")
        answer = Answer("")
    else:
        say(answer.text.removeprefix("sbatch: ") or "sbatch would take it")
    advise(request, answer.note)
    return 0


def enqueue(request: Request, command: Sequence[str], env: Mapping[str, str]) -> Submitted:
    """Submit the job, write it down, and tell where to look.

    Raises:
        SlaunchError: the script cannot be made, or sbatch refuses it.
    """
    script = script_of(request, ask_site, command, own_folder())
    answer = check(script, request.extra, env)
    job, cluster, sbatch = submit(script, request.extra, env)
    lead = request.components[0]
    folder = os.path.abspath(lead.get("chdir", ""))
    made = Submitted(job, cluster, lead["job-name"], folder, tuple(command), sbatch, script, time.time())
    made, problem = remember(made, env)
    print(job, flush=True)
    say(f"job {job} ({made.name}) is in the queue{' of ' + cluster if cluster else ''}")
    for label, line in places(made, lead):
        print(f"  {label + ':':<8}{line}", file=sys.stderr)
    advise(request, answer.note)
    if problem:
        say(f"note: {problem}")
    return made


def places(job: Submitted, options: Mapping[str, str]) -> list[tuple[str, str]]:
    """Where to look, as (label, text)."""
    default = "%x-%A_%a.out" if "array" in options else "%x-%j.out"
    pattern = options.get("output", default)
    output = pattern.replace("%x", job.name).replace("%j", job.id).replace("%A", job.id)
    lines = [("output", os.path.join(job.folder, output)), ("follow", f"slaunch logs -f {job.id}")]
    lines += [("state", f"slaunch status {job.id}"), ("stop", f"slaunch cancel {job.id}")]
    return [*lines, ("script", job.saved)] if job.saved else lines


def advise(request: Request, note: str) -> None:
    """What the user may not have meant."""
    wanted = request.components[0].get(GPUS, "")
    types = hint(wanted, request.components[0].get("partition", ""), any_site()) if wanted and not request.gpu_type else ""
    for line in filter(None, (unseen(request), note, types)):
        say(f"note: {line}")


def unseen(request: Request) -> str:
    """That the program is not to be seen from here, which may be a slip, or right: nodes may have other files; "" if it is."""
    from shutil import which

    name = request.program
    path = os.path.join(request.components[0].get("chdir", ""), name)
    if not name or os.path.exists(path) or which(name):
        return ""
    return f"there is no {name} in {os.path.abspath(os.path.dirname(path))}, seen from here"


def follow(  # noqa: PLR0917 - a job, and how to follow it
    job: str, cluster: str, way: Way, env: Mapping[str, str], fresh: bool = False, tails: Sequence[Tail] = ()
) -> int:
    """Follow a job to its end; its exit code. `fresh` and `tails` as for `Follower`.

    Raises:
        SlaunchError: it can never start, or Slurm is away for too long.
    """
    try:
        records = Follower(job, cluster, way, fresh, tails).run()
    except KeyboardInterrupt:
        say(f"job {job} goes on: `slaunch logs -f {job}` shows it again, `slaunch cancel {job}` ends it")
        return 130
    return code_at_the_end(job, cluster, records, env)


def code_at_the_end(job: str, cluster: str, records: Sequence[Record], env: Mapping[str, str]) -> int:
    """The exit code of a job that has ended; if the controller has forgotten it, from accounting, or the report of its run.

    Args:
        job: its id.
        cluster: its cluster; "" = the only one.
        records: the last that the controller told of it.
        env: for the folder where runs are remembered.

    Raises:
        AllocationError: nobody knows.
    """
    if not (records and all(record.ended for record in records)):
        records = past(job, cluster)
    if records:
        return code_of(records)
    from slaunch.report.revive import read_report

    runs = find(job, env, os.getcwd())
    codes = [read_report(run.report).code for run in runs if os.path.exists(run.report)]
    if not codes:
        todo = "see its output; `sacct` may still know it"
        raise AllocationError(f"tell how job {job} ended", "neither Slurm's controller nor a report of slaunch knows it", todo)
    return max(codes)


def say(line: str) -> None:
    """One line to the console."""
    print(f"slaunch: {line}", file=sys.stderr, flush=True)

