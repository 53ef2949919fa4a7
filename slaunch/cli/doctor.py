"""`slaunch doctor`: is this site, are these nodes fit for a job?"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from slaunch.allocation.select import read
from slaunch.allocation.values import Task
from slaunch.doctor.examine import examine
from slaunch.doctor.text import exit_code, render, render_json
from slaunch.doctor.values import Request
from slaunch.errors import UsageError
from slaunch.frozen import dataclass, replace
from slaunch.launch import current

HELP = """\
usage: slaunch doctor [--json] [--quick] [--scratch DIR]... [--step-args 'ARGS'] [SCRIPT]

Examine this machine; in a batch script or a shell of salloc, all nodes of the job, by one srun step. Takes less than a minute.
Looks at Slurm, MPI and PMI, munge, GPUs and driver, CPUs, limits, clocks, /tmp, /dev/shm and scratch, the network between all
pairs of nodes, Python and its packages, containers, leftover processes; SCRIPT is compared between the nodes.

  --json              print one JSON object instead of text
  --quick             leave out what takes seconds: bandwidth, loading MPI, containers, the time of imports
  --scratch DIR       look at this folder as well; may be given several times
  --step-args 'ARGS'  more arguments for the srun that it starts

Exit code: 0 all is well, 1 there are warnings, 78 there are errors. See docs/doctor.md."""

FLAGS = ("--json", "--quick", "--scratch", "--step-args")


@dataclass(frozen=True)
class Call:
    """The command line: the form of the answer, what to examine, and arguments for srun."""

    json: bool = False
    request: Request = Request()
    extra: tuple[str, ...] = ()


def doctor_command(args: Sequence[str], env: Mapping[str, str]) -> int:
    """Run `slaunch doctor` with these arguments (without the word doctor) and return its exit code.

    Raises:
        SlaunchError: the command line is wrong, or no step can be started on the nodes.
    """
    if args and args[0] in ("--help", "-h"):
        print(HELP)
        return 0
    call = parse(args)
    standing = current(read(env, "auto", os.uname().nodename))
    if isinstance(standing, Task) and standing.slot.size > 1:
        seen = f"this is one of {standing.slot.size} tasks"
        raise UsageError("examine the nodes", seen, "call `slaunch doctor` without srun or mpirun: it starts its own step")
    report = examine(call.request, standing, env, call.extra)
    print(render_json(report) if call.json else render(report, colour=sys.stdout.isatty()))
    return exit_code(report)


def parse(args: Sequence[str]) -> Call:
    """The command line.

    Raises:
        UsageError: an option is unknown, or its value is missing.
    """
    call, rest = Call(), list(args)
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag not in FLAGS:
            raise UsageError("read the options of `slaunch doctor`", flag, f"use some of {', '.join(FLAGS)}, then the script")
        if flag in ("--scratch", "--step-args") and not rest:
            raise UsageError("read the options of `slaunch doctor`", f"{flag} without a value", f"write {flag} VALUE")
        call = with_flag(call, flag, rest)
    return replace(call, request=replace(call.request, program=rest[0])) if rest else call


def with_flag(call: Call, flag: str, rest: list[str]) -> Call:
    """The call with one more option, whose value is taken off the front of `rest`."""
    if flag == "--json":
        return replace(call, json=True)
    if flag == "--quick":
        return replace(call, request=replace(call.request, quick=True))
    if flag == "--scratch":
        return replace(call, request=replace(call.request, scratch=(*call.request.scratch, rest.pop(0))))
    import shlex

    return replace(call, extra=(*call.extra, *shlex.split(rest.pop(0))))
