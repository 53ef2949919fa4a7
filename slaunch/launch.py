"""The whole way of a launch, top to bottom: allocation, node, rendezvous, plan, agent, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from slaunch.agent.run import run
from slaunch.agent.values import RunReport
from slaunch.allocation.select import read
from slaunch.allocation.values import Allocation, Shell, Task
from slaunch.errors import MissingToolError, PlanError
from slaunch.frozen import replace
from slaunch.node.ports import Reserved
from slaunch.node.probe import probe
from slaunch.options import Options
from slaunch.plan.build import build
from slaunch.plan.notes import notes_of
from slaunch.plan.values import Plan, WorkerSpec
from slaunch.plan.workers import worker, worker_argv
from slaunch.rendezvous.meet import Meeting, meet
from slaunch.rendezvous.values import Membership
from slaunch.slurm.step import step_call

LOGS = "slaunch-logs"
"""Where logs go unless the user says otherwise: one folder per job below it, in the working directory."""


def launch(options: Options, env: Mapping[str, str], args: Sequence[str]) -> int:
    """Start the job that `options` describe and return the exit code of the whole job.

    Args:
        options: what the user asked for.
        env: this process's environment.
        args: slaunch's own command line, to be repeated inside a step that slaunch starts.

    Raises:
        SlaunchError: for everything that keeps the workers from starting.
    """
    standing = read(env, options.scheduler, os.uname().nodename)
    for warning in standing.allocation.warnings:
        say(standing, f"note: {warning}")
    if isinstance(standing, Shell):
        return start_step(standing, options, env, args)
    return run_task(standing, options, env)


def start_step(shell: Shell, options: Options, env: Mapping[str, str], args: Sequence[str]) -> NoReturn:
    """Replace this process by the scheduler's own starter, which runs slaunch on every node."""
    call = step_call(shell, env, (sys.executable, "-m", "slaunch", *args), options.step_args)
    try:
        os.execvpe(call.argv[0], call.argv, dict(call.env))
    except FileNotFoundError:
        raise MissingToolError(
            "start a job step on the allocation's nodes",
            f"no program {call.argv[0]} on PATH={env.get('PATH', '')}",
            f"run slaunch inside `{call.argv[0]}` yourself, or put the scheduler's tools on PATH",
        ) from None


def run_task(task: Task, options: Options, env: Mapping[str, str]) -> int:
    """Meet the other tasks, agree on the plan, and run this task's part of it."""
    facts, reserved = probe(env, replace(options, log_dir=folder_to_check(options, task.allocation)))
    with reserved, meet(task, facts, options, env, lambda line: say(task, line)) as meeting:
        plan = plan_for(meeting.membership, options, task.allocation, env)
        meeting.agree(plan.digest)
        for note in notes_of(plan):
            say(task, f"note: {note}")
        if plan.layout == "task":
            meeting.close()
            become(worker(plan, task.slot.rank, env, options), reserved, env)
        return supervise(plan, meeting, reserved, options, env)


def plan_for(membership: Membership, options: Options, allocation: Allocation, env: Mapping[str, str]) -> Plan:
    """The plan of this job, with its name and the place of its logs."""
    job = job_name(options, allocation)
    if not job:
        first = membership.facts[0]
        job = f"{first.host}-{first.pid}"
    argv = worker_argv(options.program, sys.executable, env)
    return build(membership, options, allocation, argv, job, os.path.abspath(options.log_dir or f"{LOGS}/{job}"))


def job_name(options: Options, allocation: Allocation) -> str:
    """The user's name for the job, else job and step as the scheduler numbers them, else ""."""
    return options.job_id or ".".join(part for part in (allocation.job, allocation.step) if part)


def folder_to_check(options: Options, allocation: Allocation) -> str:
    """The log folder as far as it is known before the meeting; "" where tasks are workers and their output is the launcher's."""
    if any(count > 1 for count in allocation.tasks_per_node):
        return ""
    return options.log_dir or "/".join((LOGS, job_name(options, allocation))).rstrip("/")


def supervise(plan: Plan, meeting: Meeting, reserved: Reserved, options: Options, env: Mapping[str, str]) -> int:
    """Layout "agent": start this node's workers, watch them to the end of the job, and tell how it went."""
    node = plan.nodes[meeting.membership.rank]
    specs = tuple(worker(plan, rank, env, options) for rank in node.ranks)
    star = meeting.star()
    reserved.release()
    report = run(plan, node.index, specs, star, env, options)
    if report.speaks:
        tell(report)
    return report.code


def become(spec: WorkerSpec, reserved: Reserved, env: Mapping[str, str]) -> NoReturn:
    """Layout "task": replace this process by its worker."""
    inherited = {name: value for name, value in env.items() if name not in spec.drop_env}
    if spec.cpus:
        os.sched_setaffinity(0, spec.cpus)
    reserved.release()
    sys.stdout.flush()
    try:
        os.execvpe(spec.argv[0], spec.argv, {**inherited, **spec.set_env})
    except OSError as error:
        raise PlanError("become the worker", f"{spec.argv[0]}: {error.strerror}", "check the program's path") from None


def tell(report: RunReport) -> None:
    """Print the closing block on the console."""
    from slaunch.report.text import render

    text = render(report, colour=sys.stderr.isatty())
    if text:
        print(text, file=sys.stderr, flush=True)


def say(standing: Task | Shell, line: str) -> None:
    """One line to the console, from the first task only."""
    if isinstance(standing, Shell) or standing.slot.rank == 0:
        print(f"slaunch: {line}", file=sys.stderr, flush=True)
