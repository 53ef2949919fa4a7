"""The whole way of a launch, top to bottom: allocation, node, rendezvous, plan, agent, report."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from slaunch.agent.attempts import Again
from slaunch.agent.blame import Book, keep
from slaunch.agent.memory import Memory
from slaunch.agent.node_side import SAVE_SIGNALS
from slaunch.agent.phases import Phases, began
from slaunch.agent.policy import active_of, may_be_met, restarts
from slaunch.agent.run import run
from slaunch.allocation.claims import check_met, check_rank, heed
from slaunch.allocation.components import component_of
from slaunch.allocation.enclosing import restarts as scheduler_restarts
from slaunch.allocation.jobid import slurm_job
from slaunch.allocation.select import read
from slaunch.allocation.values import Allocation, Shell, Task
from slaunch.ending import begin_ledger, conclude, leave, ledger
from slaunch.errors import AllocationError, MissingToolError, PlanError, SlaunchError
from slaunch.frozen import replace
from slaunch.jobs import LOGS, Run
from slaunch.making import again, card_of, job_name, plan_for
from slaunch.node.files import problem
from slaunch.node.mempolicy import set_policy
from slaunch.node.nics import read_listed
from slaunch.node.ports import Reserved
from slaunch.node.probe import probe
from slaunch.node.values import Device, NodeFacts, Problem
from slaunch.options import Options
from slaunch.plan.modes import find
from slaunch.plan.notes import notes_of
from slaunch.plan.parts import here
from slaunch.plan.prelude import crew, lone
from slaunch.plan.values import Plan, WorkerSpec
from slaunch.rendezvous.lateness import LateError
from slaunch.rendezvous.meet import Meeting, meet
from slaunch.rendezvous.values import Membership
from slaunch.selfcall import own_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import NoReturn

    from slaunch.agent.reception import Doors, Way
    from slaunch.node.stage import Place


def launch(options: Options, env: Mapping[str, str], args: Sequence[str]) -> int:
    """Start the job that `options` describe and return the exit code of the whole job.

    Args:
        options: what the user asked for.
        env: this process's environment.
        args: slaunch's own command line, to be repeated inside a step that slaunch starts.

    Raises:
        SlaunchError: for everything that keeps the workers from starting.
    """
    phases = Phases(env)
    standing = current(read(env, options.scheduler, os.uname().nodename))
    standing, options = heed(standing, options)
    phases.mark("allocation")
    for warning in standing.allocation.warnings if not options.join else ():
        say(standing, f"note: {warning}")
    if isinstance(standing, Shell):
        return start_step(standing, options, env, args)
    return run_task(standing, options, env, phases)


def current(standing: Task | Shell) -> Task | Shell:
    """A shell's allocation may have changed since its variables were set."""
    if isinstance(standing, Task):
        return standing
    from slaunch.slurm.resized import as_it_is_now

    return as_it_is_now(standing)


def start_step(shell: Shell, options: Options, env: Mapping[str, str], args: Sequence[str]) -> int:
    """Replace this process by the scheduler's own starter, which runs slaunch on every node.

    Where the job may have to go back into the queue, stay beside it instead and return its exit code.
    """
    from slaunch.channel.secret import VARIABLE, fresh_text
    from slaunch.slurm.start import start_call

    call = start_call(shell, env, (*own_command(sys.argv[0]), *args), options.step_args)
    # srun hands its environment to all tasks; mpirun may hand it only to those on this node
    secret = {VARIABLE: fresh_text()} if call.argv[0] == "srun" else {}
    call = replace(call, env={**call.env, **secret, **began(env)})
    try:
        if options.requeue and call.argv[0] == "srun":
            from slaunch.slurm.batch import run_step

            return run_step(call, shell.allocation.job, shell.allocation.restarts, ledger(options, shell.allocation.job))
        os.execvpe(call.argv[0], call.argv, call.env)
    except FileNotFoundError:
        raise MissingToolError(
            "start a job step on the allocation's nodes",
            f"no program {call.argv[0]} on PATH={env.get('PATH', '')}",
            f"run slaunch inside `{call.argv[0]}` yourself, or put the scheduler's tools on PATH",
        ) from None


def run_task(task: Task, options: Options, env: Mapping[str, str], phases: Phases) -> int:
    """Look at this machine and take part in the job, from its beginning or in the middle of it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SAVE_SIGNALS)  # a request to save waits until there are workers
    for line in remarks(options):
        say(task, line)
    if options.requeue and not slurm_job(env):
        say(task, "note: --requeue: no effect outside a Slurm job")
    facts, reserved = look(env, replace(options, log_dir=folder_to_check(options, task.allocation)))
    facts = replace(facts, problems=(*facts.problems, *claims(task, options)))
    options = replace(options, node_rank=own_number(facts, options))
    phases.mark("node")
    try:
        if not options.join:
            return begin(task, facts, reserved, options, env, phases)
        reserved.release()
        found = None
    except LateError as late:
        found = late
    except SlaunchError as error:
        if error.unfit:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # the others have ended: the launcher may end this task
            book = Book(options.exclude_bad, job_name(options, task.allocation), task.allocation.nodes)
            keep(book, error.unfit, lambda line: say(task, line))
        raise
    from slaunch.late import come_late

    return come_late(task, found, facts, options, env, phases)


def begin(  # noqa: PLR0917 - the stages' values
    task: Task, facts: NodeFacts, reserved: Reserved, options: Options, env: Mapping[str, str], phases: Phases
) -> int:
    """Meet the other tasks, agree on the plan, and run this task's part of it.

    Raises:
        LateError: the job runs already.
    """
    with reserved, meet(task, facts, options, env, lambda line: say(task, line)) as meeting:
        phases.mark("rendezvous")
        first = starters(meeting.membership.facts, options)
        plan = plan_for(first_of(meeting.membership, first), options, task.allocation, env)
        check_met(len(plan.nodes), options)
        phases.mark("plan")
        meeting.agree(plan.digest)
        phases.mark("agreement")
        for note in (*notes_of(plan), *waiting(first, meeting.membership, plan.layout)):
            say(task, f"note: {note}")
        if plan.layout == "task":
            for note in unattended(options):
                say(task, f"note: {note}")
            meeting.close()
            become(lone(plan, task.slot.rank, env, options), reserved, env)
        doors = doors_of(facts, meeting.membership, options, task.allocation, env)
        if doors and meeting.held:  # from the meeting on, nobody else could listen where nodes come
            doors = partial(where_they_met, doors, meeting.held)
        following = again(plan, meeting.membership, facts, options, task.allocation, env, doors)
        unfit = frozenset(index for index, each in enumerate(meeting.membership.facts) if each.problems)
        following = replace(following, starters=first, unfit=unfit)
        further = following if restarts(options) or doors or following.policy.new_ports else None
        card = card_of(plan, task.allocation, env)
        with copies(task, plan, meeting, options):
            return supervise(plan, meeting, reserved, options, env, facts.devices, further, card, phases, first)


def copies(task: Task, plan: Plan, meeting: Meeting, options: Options) -> Place | Meeting:
    """The copies that the user wants on this node's own disk, to be removed in the end; the meeting itself, which may end twice,
    where none are wanted."""
    if not options.stage:
        return meeting
    from slaunch.staging import staged

    return staged(task, plan, meeting, options, lambda line: say(task, line))


def where_they_met(doors: Doors, held: Sequence[socket.socket]) -> Way:
    """How nodes come to this job, at the sockets at which others have come to the meeting."""
    return replace(doors(), listeners=held)


def doors_of(
    own: NodeFacts, members: Membership, options: Options, allocation: Allocation, env: Mapping[str, str]
) -> Doors | None:
    """How nodes come to this job once it runs; None where none can."""
    if not may_be_met(options):
        return None
    from slaunch import late

    return late.doors(own, members, options, allocation, env)


def unattended(options: Options) -> tuple[str, ...]:
    """What is told where tasks become workers, which nobody watches.

    Raises:
        PlanError: the user wants what only an agent can do.
    """
    if options.stage:
        raise PlanError(
            "make copies with --stage",
            "several tasks on a node, which become its workers: nobody is left to remove copies",
            "start one task on each node (srun --ntasks-per-node=1), or slaunch in the batch script",
        )
    each = "start one task on each node"
    saving, logging = saving_wishes(options), logging_wishes(options)
    notes = {
        f"--spares: no effect, tasks are workers; {each}": options.spares,
        f"--max-restarts: no effect, nobody watches tasks that are workers; {each}": options.max_restarts,
        f"{', '.join(saving)}: no effect, nobody watches tasks that are workers": saving,
        f"{', '.join(logging)}: no effect, tasks are workers, whose output is the launcher's": logging,
    }
    return tuple(note for note, wished in notes.items() if wished)


def saving_wishes(options: Options) -> tuple[str, ...]:
    """Options on the end of the job's time that need an agent."""
    wishes = {"--warn-before-end": options.warn_before_end_s, "--requeue": options.requeue}
    return tuple(name for name, wish in wishes.items() if wish)


def logging_wishes(options: Options) -> list[str]:
    """The user's options of logs, console and figures, by the names under which they were given."""
    fields = ("log_name", "log_max_bytes", "log_timestamps", "log_writer", "tee", "metrics_file", "metrics_port")
    given = (options.origins.get(field, "default") for field in fields)
    return [source for source in given if not source.endswith("default")]


def remarks(options: Options) -> tuple[str, ...]:
    """What to tell of the options: notes, and at level "debug" all of them."""
    notes = tuple(f"note: {note}" for note in options.notes) if options.log_level != "warning" else ()
    if options.log_level != "debug":
        return notes
    from slaunch.report.configuration import configuration

    return (*configuration(options), *notes)


def look(env: Mapping[str, str], options: Options) -> tuple[NodeFacts, Reserved]:
    """This machine's facts, and its ports held, as the job's mode and its roles want them."""
    try:
        own = read_listed(options.ips)[0].ip if options.ips else ""
    except SlaunchError:  # `probe` finds it again, and tells it together with the other nodes' problems
        own = ""
    component = component_of(env, os.uname().nodename)
    facts, reserved = probe(env, options, wish=find(options.mode).wish(here(options, component), own))
    return replace(facts, component=component), reserved


def claims(task: Task, options: Options) -> tuple[Problem, ...]:
    """What is wrong with the number that the user gave to this node."""
    try:
        check_rank(task, options)
    except AllocationError as error:
        return (problem(error),)
    return ()


def own_number(facts: NodeFacts, options: Options) -> int:
    """This node's number: the user's, else its place among the addresses that the user listed; -1 = unknown."""
    if options.node_rank >= 0 or not options.ips:
        return options.node_rank
    own = facts.addresses[0].ip
    return options.ips.index(own) if own in options.ips else -1


def starters(facts: Sequence[NodeFacts], options: Options) -> tuple[int, ...]:
    """Tasks that take part in the first attempt: where an agent is on each node, maybe not all of them."""
    if len({each.machine for each in facts}) < len(facts):
        return tuple(range(len(facts)))
    fit = tuple(index for index, each in enumerate(facts) if not each.problems)  # others are here only if they are not needed
    return fit[: active_of(len(fit), options)]


def first_of(membership: Membership, first: Sequence[int]) -> Membership:
    """The membership of these tasks."""
    rank = first.index(membership.rank) if membership.rank in first else len(first) - 1
    return replace(membership, facts=tuple(membership.facts[index] for index in first), rank=rank)


def waiting(first: Sequence[int], membership: Membership, layout: str) -> tuple[str, ...]:
    """A note on the nodes that wait."""
    rest = [facts for index, facts in enumerate(membership.facts) if index not in first and not facts.problems]
    hosts = [facts.host for facts in rest] if layout == "agent" else []
    many = f"{len(hosts)} nodes wait" if len(hosts) > 1 else "a node waits"
    return (f"{many} to take the place of a lost one: {', '.join(hosts[:8])}",) if hosts else ()


def folder_to_check(options: Options, allocation: Allocation) -> str:
    """The log folder as far as it is known before the meeting; "" where tasks are workers and their output is the launcher's."""
    if any(count > 1 for count in allocation.tasks_per_node):
        return ""
    return options.log_dir or "/".join((LOGS, job_name(options, allocation))).rstrip("/")


def supervise(  # noqa: PLR0917 - the stages' values
    plan: Plan,
    meeting: Meeting,
    reserved: Reserved,
    options: Options,
    env: Mapping[str, str],
    devices: tuple[Device, ...],
    further: Again | None,
    card: Run,
    phases: Phases,
    first: tuple[int, ...],
) -> int:
    """Layout "agent": start this node's workers, watch them to the end of the job, and tell how it went."""
    own, hosts = meeting.membership.rank, tuple(facts.host for facts in meeting.membership.facts)
    place = first.index(own) if own in first else len(plan.nodes)
    specs = crew(plan, place, env, options) if own in first else ()
    if place == 0:
        show(plan, specs, options)
    star = meeting.star()
    reserved.release()
    job, restarts = slurm_job(env) if options.requeue else "", scheduler_restarts(env)
    if job and own == 0:
        begin_ledger(ledger(options, job), job, restarts)
    report = run(plan, own, specs, star, env, options, devices, further, card, phases, hosts)
    if not report.speaks:
        return report.code
    code = conclude(report, options, env, job, restarts)
    leave(report, env, card.id.partition(".")[2])
    return code


def show(plan: Plan, specs: Sequence[WorkerSpec], options: Options) -> None:
    """The first worker's variables, for who wants to see everything; and the older launcher's file."""
    if not (options.legacy or options.log_level == "debug"):
        return
    from slaunch.report.legacy import table, write_endpoints

    for line in table(min((spec for spec in specs if not spec.first), key=lambda spec: spec.rank)):
        print(f"slaunch: {line}", file=sys.stderr)
    if options.legacy:
        try:
            write_endpoints(plan)
        except OSError as error:  # the workers' own files will tell, if they cannot be written either
            print(f"slaunch: note: no list of endpoints in {plan.log_dir}: {error.strerror}", file=sys.stderr)


def become(spec: WorkerSpec, reserved: Reserved, env: Mapping[str, str]) -> NoReturn:
    """Layout "task": replace this process by its worker."""
    inherited = {name: value for name, value in env.items() if name not in spec.drop_env}
    if spec.cpus:
        os.sched_setaffinity(0, spec.cpus)
    if spec.memory:
        set_policy(spec.memory_policy, spec.memory)
    reserved.release()
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SAVE_SIGNALS)
    try:
        os.execvpe(spec.argv[0], spec.argv, {**inherited, **spec.set_env, **Memory(across_exec=True).variables(spec.files)})
    except OSError as error:
        raise PlanError("become the worker", f"{spec.argv[0]}: {error.strerror}", "check the program's path") from None


def say(standing: Task | Shell, line: str) -> None:
    """One line to the console, from the first task only."""
    if isinstance(standing, Shell) or standing.slot.rank == 0:
        print(f"slaunch: {line}", file=sys.stderr, flush=True)
