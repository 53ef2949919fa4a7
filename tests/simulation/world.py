"""A job's world: agents with the real supervisor, their workers, and the laws that must hold at every moment."""

from __future__ import annotations

import heapq
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from slaunch.agent import supervisor
from slaunch.agent.events import (
    Admit,
    Arrived,
    Blame,
    Enrol,
    Event,
    Finish,
    Kill,
    MakePlan,
    Planned,
    Prepare,
    Prepared,
    SignalWorkers,
    Started,
    StartFailed,
    StartWorkers,
    Sweep,
    Tell,
    TellAll,
    Tick,
    TreeSeen,
    WorkerExited,
)
from slaunch.agent.messages import Decided, Message, pack, unpack
from slaunch.agent.values import Failure, Stuck, Verdict
from slaunch.node.values import Problem

from .life import Life
from .network import PATIENCE_S, Network, Search

WALL = 1_000_000.0
FULL_WIRE = 20  # in every so many-th life all messages are packed and unpacked, as on the real wire


class BrokenLaw(AssertionError):
    """What must never happen."""


@dataclass
class Worker:
    rank: int
    alive: bool = True
    told: bool = False


@dataclass(eq=False)
class Agent:
    """An agent, its machine, and what the channel knows there."""

    index: int
    state: supervisor.State
    workers: list[Worker]
    peers: tuple[int, ...]
    offset_s: float = 0.0
    dead: bool = False  # killed, or with its machine
    machine_dead: bool = False
    paused_since: float = 0.0
    paused_until: float = 0.0
    woke_at: float = -inf  # it stood still until then for so long that it may learn late of what happened
    verdict: Verdict | None = None
    finished_at: float = inf
    attempt: int = 0
    known: int = 0  # so many nodes' facts
    plan: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] = ((), ())
    left: bool = False  # processes that the workers left behind
    killing: bool = False
    wake: float = inf
    hub: int = 0
    reign: int = 0
    door: int = -1
    search: Search | None = None

    @property
    def over(self) -> bool:
        """It does nothing any more."""
        return self.dead or self.verdict is not None

    def stands_still(self, now: float) -> bool:
        """Stopped by a signal, or by a file server."""
        return now < self.paused_until and not self.over

    @property
    def late_until(self) -> float:
        return self.woke_at + PATIENCE_S

    @property
    def ended(self) -> bool:
        """Its process is gone."""
        return self.over


@dataclass
class World:
    """A life as it is played."""

    life: Life
    trace: Callable[[float, int, object], None] | None = None
    now: float = 0.0
    events: int = 0
    queue: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = field(default_factory=list)
    worlds: dict[int, object] = field(default_factory=dict)  # by attempt, what its first node to start has agreed on
    done: set[int] = field(default_factory=set)  # workers of the last attempt that ended well
    running: dict[int, int] = field(default_factory=dict)  # living workers by attempt
    begun: int = 0
    verdicts: dict[tuple[int, int], set[Verdict]] = field(default_factory=dict)  # by hub and reign

    def __post_init__(self) -> None:
        life = self.life
        self.random = random.Random(life.seed ^ 0x5EED)
        self.hosts = tuple(f"n{index}" for index in range(life.nodes))
        self.agents = [self._agent(index) for index in range(life.nodes)]
        self.running[0] = life.nodes * life.per_node
        self.unfit: dict[int, str] = {}
        self.odd: set[int] = set()
        self.portless: set[int] = set()
        self.network = Network(self)
        for agent in self.agents:
            self._let_work(agent)
            self._schedule_wake(agent)

    def _agent(self, index: int) -> Agent:
        life = self.life
        ranks = range(index * life.per_node, (index + 1) * life.per_node)
        state = supervisor.start(index, self.hosts, frozenset(ranks), life.grace_s, policy=life.policy)
        return Agent(index, state, [Worker(rank) for rank in ranks], tuple(range(life.nodes)), known=life.nodes)

    # -- time

    def at(self, time_s: float, what: Callable[..., None], *args: object) -> None:
        self.events += 1
        heapq.heappush(self.queue, (max(time_s, self.now), self.events, what, args))

    def run(self, until_s: float) -> None:
        queue = self.queue
        while queue and queue[0][0] <= until_s:
            self.now, _, what, args = heapq.heappop(queue)
            what(*args)

    def wall(self, agent: Agent) -> float:
        return WALL + self.now + agent.offset_s

    # -- the supervisor

    def feed(self, agent: Agent, event: Event) -> None:
        if agent.over:
            return
        if self.now < agent.paused_until:
            self.at(agent.paused_until, self.feed, agent, event)
            return
        if self.trace:
            self.trace(self.now, agent.index, event)
        agent.state, actions = supervisor.step(agent.state, event, self.now)
        for action in actions:
            self._do(agent, action)
        self._schedule_wake(agent)

    def _schedule_wake(self, agent: Agent) -> None:
        due = supervisor.wake_at(agent.state)
        if due < agent.wake and not agent.over:
            agent.wake = due
            self.at(due, self._wake, agent)

    def _wake(self, agent: Agent) -> None:
        agent.wake = inf
        if not agent.over:
            if self.now >= supervisor.wake_at(agent.state):
                self.feed(agent, Tick())
            else:
                self._schedule_wake(agent)

    def over_the_wire(self, message: object) -> Message:
        if self.life.seed % FULL_WIRE == 0:
            return unpack(pack(message))  # type: ignore[arg-type]
        return message  # type: ignore[return-value]

    def _do(self, agent: Agent, action: object) -> None:  # noqa: C901 - one case for each action
        if self.trace:
            self.trace(self.now, agent.index, action)
        match action:
            case Tell(to, message):
                self.network.send(agent, to, message)
            case TellAll(message):
                if isinstance(message, Decided):
                    self.verdicts.setdefault((agent.index, agent.reign), set()).add(message.verdict)
                self.network.send_all(agent, message)
            case SignalWorkers():
                for worker in agent.workers:
                    if worker.alive and not worker.told:
                        worker.told = True
                        if self.life.stop_s < inf:
                            self.at(self.now + self.life.stop_s, self._exit, agent, worker, 143)
            case Sweep() | Kill():
                self._clear(agent, isinstance(action, Kill))
            case Prepare():
                self._prepare(agent, action)
            case Enrol(index):
                self._law(index == agent.known, f"node {index} after {agent.known} others")
                agent.known += 1
            case MakePlan(ports, members):
                self._law(max(members) < agent.known, "a node takes part of which another one does not know")
                agent.plan = (members, ports)
                odd = agent.index if agent.index in self.odd else ""
                made = Planned(f"{agent.attempt} {ports} {members} {odd}")
                self.at(self.now + 0.001, self._answer, agent, agent.attempt, made)
            case StartWorkers():
                self._start_when_fresh(agent)
            case Finish(verdict):
                self._finish(agent, verdict)
            case Admit():
                self._admit(agent, action)
            case Blame(faults):
                self._law(all(0 <= node < len(self.agents) for node, _ in faults), "a node that is none is blamed")

    # -- workers

    def _let_work(self, agent: Agent) -> None:
        for worker in agent.workers:
            self.at(self.now + self.life.work_s + self.random.random(), self._exit, agent, worker, 0)

    def exit(self, agent: Agent, code: int) -> None:
        """One of an agent's workers ends by itself."""
        living = [worker for worker in agent.workers if worker.alive]
        if living:
            self._exit(agent, living[0], code)

    def _exit(self, agent: Agent, worker: Worker, code: int, cause: str = "error") -> None:
        if not worker.alive or agent.over:
            return
        worker.alive = False
        self.running[agent.attempt] -= 1
        agent.left = agent.left or self.life.leftovers
        if code == 0:
            self.done.add(worker.rank)
        number = code - 128 if code > 128 else 0
        failure = None
        if code:
            who = (worker.rank, 0, agent.index, self.hosts[agent.index], 100)
            failure = Failure(*who, code, number, self.wall(agent), cause, told=worker.told)
        self.at(self.now + 0.005 * self.random.random(), self.feed, agent, WorkerExited(worker.rank, failure))

    def _clear(self, agent: Agent, killing: bool) -> None:
        """What the crew does: tell what is left, and tell again once nothing is."""
        agent.killing = agent.killing or killing
        living = [worker for worker in agent.workers if worker.alive]
        if living or agent.left:
            self.at(self.now, self.feed, agent, TreeSeen((Stuck(agent.index, "h", 1, "w", "S"),)))
        if agent.killing:
            for worker in living:
                worker.told = True
                self.at(self.now + 0.005, self._exit, agent, worker, 137)
        self.at(self.now + 0.02, self._look_again, agent)

    def _look_again(self, agent: Agent) -> None:
        if agent.over:
            return
        agent.left = False
        if not any(worker.alive for worker in agent.workers) and not agent.state.node.alive:
            self.feed(agent, TreeSeen(()))
        elif agent.killing:
            self.at(self.now + 0.02, self._look_again, agent)

    # -- attempts

    def _prepare(self, agent: Agent, action: Prepare) -> None:
        self._law(not any(worker.alive for worker in agent.workers), "a node prepares an attempt while workers of its last run")
        self._law(action.attempt > agent.attempt, f"attempt {action.attempt} after {agent.attempt} on one node")
        self._law(agent.index in action.members, "a node prepares an attempt of which it is no part")
        agent.attempt, agent.peers, agent.killing = action.attempt, action.members, False
        if agent.index in self.portless:
            self.at(self.now + 0.001, self.feed, agent, StartFailed(Problem(73, "hold", "no port", "free some")))
            return
        why = self.unfit.get(agent.index, "")
        faults = (why,) if why.startswith("fault") else ()
        doubts = (why,) if why.startswith("doubt") else ()
        made = Prepared((1000 * action.attempt + agent.index,), faults, doubts)
        self.at(self.now + 0.005, self._answer, agent, action.attempt, made)

    def _answer(self, agent: Agent, attempt: int, made: Event) -> None:
        """What has been prepared, unless another attempt was begun meanwhile."""
        if agent.attempt == attempt:
            self.feed(agent, made)

    def _start_when_fresh(self, agent: Agent) -> None:
        """Once there is word of the others; see `agent.loop`."""
        if agent.over:
            return
        if agent.stands_still(self.now):
            self.at(agent.paused_until, self._start_when_fresh, agent)
        elif agent.state.node.stopped:
            self.at(self.now, self.feed, agent, Started(frozenset(), frozenset()))
        elif self.now - self.network.heard_at(agent) <= PATIENCE_S / 2:
            self._start(agent)
        else:
            self.at(self.now + 0.25, self._start_when_fresh, agent)

    def _start(self, agent: Agent) -> None:
        members, ports = agent.plan
        attempt = agent.attempt
        self._law(self.worlds.setdefault(attempt, agent.plan) == agent.plan, f"two worlds in attempt {attempt}")
        self._law(len(set(members)) == len(members) == len(ports), "ranks are not unique")
        self._law(agent.index in members, "a node that is no member starts workers")
        others = [number for number, count in self.running.items() if count and number != attempt]
        self._law(not others, f"workers of attempts {others} run while those of {attempt} start")
        if attempt > self.begun:
            self._law(attempt > self.begun, "epochs do not rise")
            self.begun = attempt
            self.done.clear()
        self._law(attempt == self.begun, f"attempt {attempt} begins after {self.begun}")
        first = members.index(agent.index) * self.life.per_node
        agent.workers = [Worker(first + local) for local in range(self.life.per_node)]
        self.running[attempt] = self.running.get(attempt, 0) + self.life.per_node
        self._let_work(agent)
        self.at(self.now, self.feed, agent, Started(frozenset(worker.rank for worker in agent.workers), frozenset()))

    def _finish(self, agent: Agent, verdict: Verdict) -> None:
        agent.verdict, agent.finished_at = verdict, self.now
        left = sum(worker.alive for worker in agent.workers)
        self._law(not left or verdict.outcome == "lost" or bool(verdict.stuck), "an agent ends before its workers")
        self._forget(agent)
        self.network.leave(agent, silent=False)

    # -- nodes that come to the job

    def arrive(self) -> None:
        """A new node finds the hub, if there is one that it can reach."""
        hubs = [each for each in self.agents if each.hub == each.index and not each.over and each.search is None]
        if hubs and self.life.policy.least:
            self.feed(hubs[-1], Arrived(len(self.agents), f"n{len(self.agents)}", ""))

    def _admit(self, hub: Agent, action: Admit) -> None:
        index = action.index
        hosts = hub.state.node.hosts
        hosts = (*hosts, f"n{index}")[: index + 1]
        state = supervisor.start(index, hosts, frozenset(), self.life.grace_s, policy=self.life.policy)
        state = supervisor.joined(state, hub.index, action.follows, self.now)
        if index < len(self.agents):  # came to an earlier hub, and only that one knew of it
            self.kill(self.agents[index], machine=True)
        agent = Agent(index, state, [], action.peers, hub=hub.index, reign=hub.reign, attempt=action.follows.attempt)
        agent.known = index + 1
        self.agents[index : index + 1] = [agent]
        self.hosts = tuple(f"n{number}" for number in range(len(self.agents)))
        self.network.join(hub, agent)

    # -- faults of agents and machines

    def kill(self, agent: Agent, machine: bool) -> None:
        """The agent's process is killed, and its workers with it; or the whole machine is dead."""
        if agent.machine_dead or (agent.over and not machine):
            return
        was_over = agent.over
        agent.dead, agent.machine_dead = True, machine
        self._forget(agent)
        if not was_over:
            self.network.leave(agent, silent=machine)

    def _forget(self, agent: Agent) -> None:
        for worker in agent.workers:
            if worker.alive:
                worker.alive = False
                self.running[agent.attempt] -= 1

    def pause(self, agent: Agent, seconds: float) -> None:
        """It does nothing for a while, but its guardian does."""
        if agent.stands_still(self.now) or agent.over:
            return
        agent.paused_since, agent.paused_until = self.now, self.now + seconds
        if seconds > PATIENCE_S / 2:
            agent.woke_at = agent.paused_until
        self.network.stand_still(agent)

    def guard(self, agent: Agent, heard_at: float, since: float = -1.0) -> None:
        """The guardian ends the workers, if the agent has heard nothing since, or has stood still since then."""
        if agent.over:
            return
        still = agent.stands_still(self.now) and agent.paused_since == since
        if still or self.network.heard_at(agent) <= heard_at:
            for worker in agent.workers:
                self._exit(agent, worker, 137, "fence")

    def _law(self, holds: bool, text: str) -> None:
        if not holds:
            raise BrokenLaw(f"at {self.now:.4f} s: {text}")


SIGTERM, SIGINT = signal.SIGTERM, signal.SIGINT
