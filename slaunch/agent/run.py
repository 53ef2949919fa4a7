"""One agent's run: start this node's workers, watch them, end with the one verdict of the job."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf

from slaunch.agent import supervisor
from slaunch.agent.aside import Aside
from slaunch.agent.attempts import NO_PLACE, Again, Attempts, Desk, Made
from slaunch.agent.blame import BadNodes, Book
from slaunch.agent.crew import Crew, Place, Worker
from slaunch.agent.guardian import Guardian
from slaunch.agent.journal import Journal, since_start_s
from slaunch.agent.linux import become_subreaper, open_signalfd, read_signalfd
from slaunch.agent.loop import Loop
from slaunch.agent.messages import Follows
from slaunch.agent.node_side import JOB_CONTROL, SAVE_SIGNALS, STOP_SIGNALS
from slaunch.agent.notice import Notice
from slaunch.agent.outlets import Outlets, style_of
from slaunch.agent.phases import NO_PHASES, Phases
from slaunch.agent.policy import FENCE_BEATS, Record
from slaunch.agent.process import MARK
from slaunch.agent.progress import Progress
from slaunch.agent.silence import Silence
from slaunch.agent.tee import console_for, watch_output
from slaunch.agent.telling import Telling
from slaunch.agent.values import RunReport, Verdict
from slaunch.allocation.enclosing import job_nodes
from slaunch.channel.star import Pulse, Star
from slaunch.clock import wall_s
from slaunch.frozen import replace
from slaunch.jobs import Run
from slaunch.node.values import Device
from slaunch.options import Options
from slaunch.plan.services import clients_of
from slaunch.plan.values import Plan, WorkerSpec

FLUSH_S = 2.0
"""How long the hub waits for the verdict to leave; the spokes notice its end anyway."""


def run(  # noqa: PLR0917 - the stages' values, in their order
    plan: Plan,
    own_node: int,
    specs: tuple[WorkerSpec, ...],
    star: Star,
    base_env: Mapping[str, str],
    options: Options,
    devices: Sequence[Device] = (),
    again: Again | None = None,
    card: Run | None = None,
    phases: Phases = NO_PHASES,
    hosts: tuple[str, ...] = (),
) -> RunReport:
    """Run the job on this node and return how the whole job ended. Leaves signals that ask for a stop blocked.

    Args:
        plan: what runs where, at first.
        own_node: this node's index, the same as the agent's index in `star`.
        specs: this node's workers.
        star: the agents' channel; closed in the end.
        base_env: what the workers inherit.
        options: for the grace, the logs and the console.
        devices: this node's, as its own driver names them: those of the plan have stand-ins for long names.
        again: what further attempts are made from; None where `options` allow none.
        card: where the job's run is to be found, to be written down.
        phases: of the start so far.
        hosts: host names by agent, where some have no workers at first; () = those of the plan.
    """
    known = list(hosts or (node.host for node in plan.nodes))  # grows with the nodes that come to the running job
    started_s, signals = wall_s(), Signals()
    become_subreaper()
    mark = f"{os.getpid()}.{os.urandom(8).hex()}"
    guardian = guardian_for(mark, again, star.size)
    console, journal = console_for(plan, options, star), Journal(plan.log_dir, own_node)
    journal.note("begin", since_start_s=round(since_start_s(), 4), job=plan.job, attempt=plan.attempt, digest=plan.digest)
    place = Place(own_node, known[own_node], plan.log_dir, options.log_overwrite, plan.attempt)
    aside = Aside(plan, own_node, options, journal, star, card, known)

    progress, notice = Progress(), Notice()
    env = {**speaking(base_env, options), **notice.variables()}

    def watch(worker: Worker) -> None:
        journal.note("started", rank=worker.spec.rank, pid=worker.pid, log=worker.log, err_log=worker.err_log)
        watch_output(console, worker, attempts.plan, options)
        aside.started(worker)

    try:
        with selectors.DefaultSelector() as selector:
            outlets = Outlets(plan.log_dir, selector, style_of(options), aside.remark)
            crew = Crew(place, selector, mark, guardian, watch, progress, outlets)
            silence = Silence(options.hang_timeout_s, own_node, place.host)
            telling = Telling(notice, crew, silence, aside.remark)
            aside.end_s = lambda: notice.end_s
            bad = bad_nodes(plan, known, options, aside, selector, crew, again if star.is_hub else None, base_env)
            desk = Desk(crew, console, silence, aside, journal, progress, selector, bad, known)
            first = Made(plan, place_of(own_node, plan, again), specs)
            attempts = Attempts(first, own_node, again, desk, env)
            aside.attend(crew, selector, {**base_env, MARK: mark}, devices, console)
            try:
                crew.start(specs, env)
                phases.spawned(journal)
                state = first_state(Made(plan, own_node, specs), known, crew.ranks, options, star.size, again)
                lead = partial(telling.ask_the_scheduler, base_env, options.warn_before_end_s, selector)
                if star.is_hub:
                    lead()
                loop = Loop(state, crew, star, console, journal, silence, aside, attempts, signals.descriptor, telling, lead)
                verdict = loop.run(selector)
                aside.finish(verdict)
            finally:
                for each in (crew, attempts, telling):
                    each.close()
        star.flush(FLUSH_S)
        note = console.drain(signals.stop_asked)
    finally:
        for held in (star, console, aside, progress, notice, journal):
            held.close()
        guardian.dismiss()
        become_subreaper(False)
        signals.close()
    told = report(plan, known, own_node, star.hub, verdict, started_s, (*((note,) if note else ()), *aside.notes()), attempts)
    return replace(told, peaks=aside.peaks())


def guardian_for(mark: str, again: Again | None, size: int) -> Guardian:
    """Who ends the workers if this agent cannot. Where the others may go on without this node, also once it has stood still for
    so long that they have given it up; they start their workers two heartbeats later."""
    if again is None or not again.policy.least:
        return Guardian(mark)
    pulse = Pulse.for_size(size)
    return Guardian(mark, pulse.interval_s, pulse.patience_s + pulse.interval_s / 2)


def first_state(  # noqa: PLR0917 - what it is made from
    made: Made, hosts: Sequence[str], ranks: frozenset[int], options: Options, size: int, again: Again | None
) -> supervisor.State:
    """The supervisor of agent `made.place` of `size`, whose first workers, if it has any, have just been started."""
    services = frozenset(spec.rank for spec in made.specs if spec.service)
    members, unfit = starters(made.plan, again), again.unfit if again else frozenset()
    clients = frozenset(members[node] for node in clients_of(made.plan))
    limit_at = time.monotonic() + (options.time_limit_s or inf)
    grace_s, hang_s = options.grace_s, options.hang_timeout_s or inf
    fence_s = FENCE_BEATS * Pulse.for_size(size).interval_s
    policy = replace(again.policy, fence_s=fence_s) if again else None
    state = supervisor.start(made.place, tuple(hosts), ranks, grace_s, services, clients, limit_at, hang_s, policy)
    state = with_welcome(supervisor.with_members(state, members, unfit), again)
    return supervisor.with_wishes(state, options.warn_before_end_s, options.warn_signal, options.stop_signal)


def starters(plan: Plan, again: Again | None) -> tuple[int, ...]:
    """Agents whose nodes take part in the first attempt, in the order of its plan."""
    return (again.starters if again else ()) or tuple(range(len(plan.nodes)))


def place_of(own: int, plan: Plan, again: Again | None) -> int:
    """This agent's place in the first plan."""
    members = starters(plan, again)
    return members.index(own) if own in members and not (again and again.welcome) else NO_PLACE


def with_welcome(state: supervisor.State, again: Again | None) -> supervisor.State:
    """The agent as it stands if it has come to the running job."""
    if again is None or again.welcome is None:
        return state
    told = again.welcome
    follows = Follows(told.attempt, told.agents, told.members, Record(*told.record))
    return supervisor.joined(state, told.hub, follows, time.monotonic())


def bad_nodes(  # noqa: PLR0917 - what it is made from
    plan: Plan,
    hosts: Sequence[str],
    options: Options,
    aside: Aside,
    selector: selectors.BaseSelector,
    crew: Crew,
    again: Again | None,
    env: Mapping[str, str],
) -> BadNodes:
    """Where nodes that have shown a fault are told of; by the hub, whose `again` this is, at once those not fit at the start."""
    book = Book(options.exclude_bad, plan.job, job_nodes(env) if options.exclude_bad else ())
    bad = BadNodes(book, hosts, aside.announce, selector, crew.spared)
    bad.keep(unfit_at_first(again))
    return bad


def unfit_at_first(again: Again | None) -> tuple[tuple[int, str], ...]:
    """Nodes without which the job has begun, as the meeting has told the user, and why."""
    if again is None or not again.unfit:
        return ()
    from slaunch.rendezvous.check import unfit

    return tuple(unfit(again.membership.facts).items())


def speaking(env: Mapping[str, str], options: Options) -> Mapping[str, str]:
    """Where a hang may have to be explained, Python's fault handler tells on SIGABRT where every thread was."""
    return {"PYTHONFAULTHANDLER": "1", **env} if options.hang_timeout_s else env


def report(  # noqa: PLR0917 - what there is to tell
    plan: Plan,
    hosts: Sequence[str],
    own_node: int,
    hub: int,
    verdict: Verdict,
    started_s: float,
    notes: tuple[str, ...],
    attempts: Attempts,
) -> RunReport:
    """The run as this agent tells it; nodes by their numbers in `plan`, the first attempt's.

    The hub speaks; without one the lowest node that is not known to be gone.
    """
    verdict = replace(verdict, lost=tuple(replace(gone, host=hosts[gone.node]) for gone in verdict.lost))
    gone = {lost.node for lost in verdict.lost}
    speaker = min((node for node in (hub, *attempts.members) if node not in gone), default=hub) if hub in gone else hub
    return RunReport(
        verdict,
        verdict.code,
        own_node == speaker,
        plan.job,
        attempts.plan.attempt,
        attempts.plan.world,
        len(attempts.plan.nodes),
        plan.log_dir,
        started_s,
        wall_s(),
        notes,
        earlier=attempts.earlier,
    )


class Signals:
    """The agent's signals, taken from a descriptor by the loop instead of interrupting it."""

    def __init__(self) -> None:
        heeded = STOP_SIGNALS | SAVE_SIGNALS | JOB_CONTROL
        wanted = {number for number in heeded if signal.getsignal(number) is not signal.SIG_IGN}
        wanted.add(signal.SIGCHLD)
        signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        self.descriptor = open_signalfd(wanted)

    def stop_asked(self) -> bool:
        """Whether a request to stop has come since the last look."""
        return any(arrived.number in STOP_SIGNALS for arrived in read_signalfd(self.descriptor))

    def close(self) -> None:
        """Read no more of them. They stay blocked: a scheduler sends SIGTERM more than once, and the next one must not end this
        process before it has told its report and ended with its verdict."""
        os.close(self.descriptor)
