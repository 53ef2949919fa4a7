"""The effects of another attempt on one agent: put the last one away, hold ports, make the plan, start the workers."""

from __future__ import annotations

import json
import selectors
from collections.abc import Callable, Mapping
from math import inf

from slaunch.agent.aside import Aside
from slaunch.agent.blame import BadNodes
from slaunch.agent.console import Console
from slaunch.agent.crew import Crew
from slaunch.agent.errand import Errand
from slaunch.agent.events import Admit, Enrol, Event, MakePlan, Planned, Prepare, Prepared, Started, StartFailed
from slaunch.agent.journal import Journal
from slaunch.agent.policy import Policy, found_port_in_use
from slaunch.agent.progress import Progress
from slaunch.agent.seats import number_of
from slaunch.agent.silence import Silence
from slaunch.agent.values import Ended, Verdict
from slaunch.clock import wall_s
from slaunch.errors import RendezvousError, SlaunchError
from slaunch.frozen import asdict, dataclass, field, replace
from slaunch.node.health import Health
from slaunch.node.ports import Reserved
from slaunch.node.values import Problem
from slaunch.plan.values import Plan, WorkerSpec
from slaunch.rendezvous.values import Membership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.reception import Doors, Reception
    from slaunch.channel.star import Star
    from slaunch.rendezvous.late import Welcome

HEALTH_S = 12.0
"""How long a look at a node's health may take; the hub waits longer."""


NO_PLACE = -1
UNKNOWN = Problem(
    RendezvousError.exit_code,
    "make the plan of another attempt",
    "a node takes part that had come to an earlier hub, which was lost before it could tell this node of it",
    "start the job again",
)


@dataclass(frozen=True)
class Again:
    """What another attempt is made from.

    Attributes:
        membership: everybody's facts, as they were at the meeting.
        hold: holds this node's ports of an attempt, new ones as far as the user has not fixed them.
        plan: the plan of a membership and an attempt's number.
        specs: the workers of a node of a plan.
        doors: opens the way for nodes that come to the running job; None where there is none.
        starters: agents whose nodes take part in the first attempt; () = as many as that has nodes, from the first on.
        unfit: those whose nodes never do.
        welcome: what this agent was told when it came to the running job; None if it was there from the beginning.
    """

    membership: Membership
    hold: Callable[[], Reserved]
    plan: Callable[[Membership, int], Plan]
    specs: Callable[[Plan, int], tuple[WorkerSpec, ...]]
    health: Callable[[], Health] | None = None
    """Looks at this node's health; may hang. None where the user does not want it."""
    policy: Policy = field(default_factory=Policy)
    """With how many nodes."""
    doors: Doors | None = None
    welcome: Welcome | None = None
    starters: tuple[int, ...] = ()
    unfit: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Desk:
    """What of the agent is made ready for another attempt."""

    crew: Crew
    console: Console
    silence: Silence
    aside: Aside
    journal: Journal
    progress: Progress
    selector: selectors.BaseSelector
    bad: BadNodes
    hosts: list[str]


@dataclass(frozen=True)
class Made:
    """An attempt's plan, this node's place in it (`NO_PLACE` where it takes no part), and its workers there."""

    plan: Plan
    place: int
    specs: tuple[WorkerSpec, ...]


class Attempts:
    """One agent's attempts.

    Args:
        first: the first one, which runs already.
        own: this node.
        again: what others are made from; None where there are none.
        desk: what is made ready for them.
        env: what workers inherit.

    Attributes:
        earlier: those that are over.
        members: nodes of the current one, by their numbers in the first one.
    """

    def __init__(self, first: Made, own: int, again: Again | None, desk: Desk, env: Mapping[str, str]) -> None:
        self.earlier: tuple[Ended, ...] = ()
        self.members = tuple(node.index for node in first.plan.nodes)
        self._current = self._coming = first
        self._number = first.plan.attempt
        self._started_s = wall_s()
        self._held = Reserved((), ())
        self._own = own
        self._again = again
        self._desk = desk
        self._env = env
        self._look: Errand | None = None
        self._ready: Prepared | None = None
        self._clear = False
        self._facts = again.membership.facts if again else ()
        self._reception = reception(again, desk)
        if again and again.welcome:
            self.members = again.welcome.members
        elif again and again.starters:
            self.members = again.starters

    @property
    def due(self) -> float:
        """When there is something to do, on the monotonic clock."""
        here = self._reception.due if self._reception else inf
        return min(self._look.due if self._look else inf, self._desk.bad.due, here)

    def tick(self, now: float) -> None:
        """Do it, if it is time."""
        if self._look:
            self._look.tick(now)
        self._desk.bad.tick(now)
        if self._reception:
            self._desk.crew.events += self._reception.tick(now)
        if self._ready and not self._waits():
            self._desk.crew.events.append(self._ready)
            self._ready = None

    def _waits(self) -> bool:
        return self._reception is not None and self._reception.waits

    def lead(self, reign: int) -> None:
        """This agent is the hub; `reign`: how many there have been before."""
        if self._reception:
            self._reception.open(reign, self._desk.selector, self._desk.crew.spared)

    def enrol(self, action: Enrol, star: Star) -> None:
        """A node has come to the running job."""
        from slaunch.channel.succession import Dynasty
        from slaunch.rendezvous.codec import decode_facts
        from slaunch.rendezvous.late import targets_of

        assert isinstance(star, Dynasty)
        facts = decode_facts(json.loads(action.card))
        self._facts = (*self._facts, facts)
        self._desk.hosts.append(action.host)
        star.grow(action.index, targets_of(facts))
        if star.is_hub:
            self._desk.aside.announce(f"node {action.index} ({action.host}) has come to the job")

    def admit(self, action: Admit, star: Star) -> None:
        """Let a node in that everybody has been told of."""
        from slaunch.channel.succession import Dynasty
        from slaunch.rendezvous.late import Welcome

        assert isinstance(star, Dynasty)
        assert self._reception is not None
        follows, line, record = action.follows, star.line, action.follows.record
        welcome = Welcome(
            action.index,
            star.index,
            star.reign,
            line.identity,
            line.called,
            action.peers,
            follows.attempt,
            follows.agents,
            follows.members,
            (record.restarts, record.progress, record.idle),
            self._current.plan.job,
            self._facts,
        )
        self._reception.admit(action.token, star, welcome)

    @property
    def plan(self) -> Plan:
        """The current one's."""
        return self._current.plan

    def prepare(self, action: Prepare) -> None:
        """Put the last attempt away, look at this node's health and hold ports; the answer comes as an event."""
        self._desk.journal.note("ended", attempt=action.attempt - 1, outcome=action.verdict.outcome)
        self.earlier = (*self.earlier, self._ended(action.attempt - 1, action.verdict))
        if action.leads:
            assert self._again is not None
            nodes = number_of(len(action.members), self._again.policy)
            self._desk.aside.announce(f"{what_ended(action.verdict)}; {what_follows(action, nodes)}")
        self._number, self.members = action.attempt, action.members
        self._desk.crew.renew(action.attempt)
        self._desk.console.seal()
        self._desk.silence.renew()
        self._desk.aside.renew()
        self._desk.progress.clear()
        self._examine()

    def _examine(self) -> None:
        """The look is over before ports are held: a child that hangs must not hold them, too."""
        assert self._again is not None
        if self._look:
            self._look.close()
        self._look, self._ready, health = None, None, self._again.health
        if health is None:
            self._answer(self._hold(Health()))
            return
        work = lambda: asdict(health())  # noqa: E731
        self._look = Errand(work, self._examined, HEALTH_S, self._desk.selector, self._desk.crew.spared)

    def _examined(self, said: Mapping[str, list[str]] | None) -> None:
        never = f"the look at its health did not end within {HEALTH_S:g} s: a driver or a file system hangs"
        found = Health((never,)) if said is None else Health(tuple(said["faults"]), tuple(said["doubts"]))
        self._desk.journal.note("health", faults=found.faults, doubts=found.doubts)
        self._answer(self._hold(found))

    def _answer(self, event: Prepared | StartFailed) -> None:
        """This node is ready, or not. The hub's is once no other job of this name can begin, and so all nodes wait for that."""
        if isinstance(event, Prepared) and self._waits():
            self._ready = event
        else:
            self._desk.crew.events.append(event)

    def _ended(self, attempt: int, verdict: Verdict) -> Ended:
        now = wall_s()
        began = self._started_s if self.plan.attempt == attempt else now  # else it was stopped before it began
        return Ended(attempt, verdict, self.plan.world, len(self.plan.nodes), began, now)

    def _hold(self, found: Health) -> Prepared | StartFailed:
        assert self._again is not None
        self._held.release()
        try:
            self._held = self._again.hold()
        except (SlaunchError, OSError) as error:
            return StartFailed(problem_of(error))
        return Prepared(self._held.ports, found.faults, found.doubts)

    def make_plan(self, action: MakePlan) -> Event:
        """Make the plan and this node's workers."""
        assert self._again is not None
        self.members, ports = action.members, action.ports
        known, takes_part = replace(self._again.membership, facts=self._facts), self._own in self.members
        if max(self.members) >= len(self._facts):
            return StartFailed(UNKNOWN)
        place = self.members.index(self._own) if takes_part else NO_PLACE
        facts = tuple(replace(known.facts[node], ports=own) for node, own in zip(self.members, ports, strict=True))
        try:
            plan = self._again.plan(replace(known, facts=facts, rank=max(place, 0), epoch=self._number), self._number)
            specs = self._again.specs(plan, place) if takes_part else ()
        except SlaunchError as error:
            return StartFailed(problem_of(error))
        self._coming = Made(plan, place, tuple(with_previous(spec, self._current) for spec in specs))
        if not takes_part:  # the report is about it all the same
            self._current, self._started_s = self._coming, wall_s()
        return Planned(plan.digest)

    def start(self) -> None:
        """Start this node's workers. The event that tells so comes before those that tell what came of it."""
        self._current, self._started_s = self._coming, wall_s()
        self._desk.journal.note("begin", attempt=self._number, digest=self.plan.digest)
        self._held.release()
        events = self._desk.crew.events
        at = len(events)
        self._desk.crew.start(self._coming.specs, self._env)
        services = frozenset(spec.rank for spec in self._coming.specs if spec.service)
        events.insert(at, Started(self._desk.crew.ranks, services))

    def blame(self, faults: tuple[tuple[int, str], ...]) -> None:
        """Nodes have shown faults: tell, and remember."""
        self._desk.bad.add(faults)

    def ended(self, verdict: Verdict) -> None:
        """The job has ended."""
        self._clear = not (verdict.lost or verdict.stuck)

    def close(self) -> None:
        """Let go of what is held."""
        if self._look:
            self._look.close()
        self._held.release()
        self._desk.bad.close()
        if self._reception:
            self._reception.close(self._clear)


def reception(again: Again | None, desk: Desk) -> Reception | None:
    """Where nodes come to the running job; None where none can."""
    if again is None or again.doors is None:
        return None
    from slaunch.agent.reception import Reception

    return Reception(again.doors, again.membership.facts[0], desk.aside.announce, takes=again.policy.least > 0)


def with_previous(spec: WorkerSpec, before: Made) -> WorkerSpec:
    """The worker, told of its place in the attempt before, if its node had one, and of that attempt's size."""
    if spec.first:
        return spec
    ranks = before.plan.nodes[before.place].ranks if before.place != NO_PLACE else ()
    own = {"SLAUNCH_PREVIOUS_WORLD_SIZE": str(before.plan.world)}
    if spec.local_rank < len(ranks):
        own["SLAUNCH_PREVIOUS_RANK"] = str(ranks[spec.local_rank])
    return replace(spec, set_env={**spec.set_env, **own}, origins={**spec.origins, **dict.fromkeys(own, "slaunch")})


def problem_of(error: SlaunchError | OSError) -> Problem:
    """The error as a value."""
    if isinstance(error, SlaunchError):
        return Problem(error.exit_code, error.wanted, error.seen, error.todo)
    return Problem(1, "hold ports for another attempt", str(error.strerror), "raise the limit that was hit (ulimit -a)")


def what_ended(verdict: Verdict) -> str:
    """How an attempt ended, in a few words."""
    first = verdict.first
    if found_port_in_use(verdict) and first is not None:
        return f"rank {first.rank} on {first.host} found its port in use"
    if verdict.outcome == "failure" and first is not None:
        how = f"killed by signal {first.signal}" if first.signal else f"failed with exit code {first.code}"
        return f"rank {first.rank} on {first.host} {'was ' if first.signal else ''}{how}"
    if verdict.outcome == "grown":
        return f"workers were stopped for {', '.join(verdict.joined[:5])}"
    if verdict.outcome == "hang":
        return "no worker has printed anything for too long"
    named = ", ".join(f"node {lost.node} ({lost.host})" for lost in verdict.lost[:5])
    return f"lost {named}"


def what_follows(action: Prepare, nodes: int) -> str:
    """What happens next, on how many nodes if all are fit."""
    wait = f" in {action.delay_s:g} s" if action.delay_s else ""
    return f"attempt {action.attempt} starts{wait} on {nodes} node{'s' if nodes > 1 else ''}"
