"""A job in virtual time: real supervisors, a network with delays, workers that are told what to do. Nothing real runs."""

from __future__ import annotations

import heapq
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from slaunch.agent import supervisor
from slaunch.agent.events import (
    AgentGone,
    AgentSaid,
    Ask,
    Blame,
    Event,
    Finish,
    Kill,
    MakePlan,
    Planned,
    Prepare,
    Prepared,
    ShowEnd,
    SignalArrived,
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
from slaunch.agent.policy import Policy
from slaunch.agent.values import Failure, Look, Stuck, Verdict
from slaunch.node.values import Problem

WALL = 1_000_000.0  # wall clock of the hub at virtual time 0
PATIENCE_S = 6.0  # silence after which the channel gives a peer up
SWEEP_S = 0.02
HANG_S = 9.0
NOTICE_S = 0.005  # a busy agent learns of an exit that much later


@dataclass
class Worker:
    """A worker's character.

    stop_s: how long it takes to end after a stop signal; None = it ignores them. leftovers: processes it leaves behind, and
    whether those heed SIGTERM. unkillable: it stays in state D.
    """

    rank: int
    node: int
    stop_s: float | None = 0.01
    leftovers: int = 0
    stubborn: bool = False
    unkillable: bool = False
    alive: bool = True
    told: bool = False
    signals: list[int] = field(default_factory=list)


@dataclass
class Agent:
    index: int
    state: supervisor.State
    workers: dict[int, Worker]
    offset_s: float = 0.0  # its clock, ahead of the hub's
    dead: bool = False
    verdict: Verdict | None = None
    finished_at: float = -1.0
    sweeping: bool = False
    killing: bool = False
    members: tuple[int, ...] = ()
    attempt: int = 0
    ports: tuple[tuple[int, ...], ...] = ()
    asked: list[str] = field(default_factory=list)  # what its workers can read, and
    left_s: float = -1.0


class World:
    """Runs a job until nothing happens any more."""

    def __init__(
        self,
        nodes: int,
        per_node: int,
        grace_s: float = 3.0,
        seed: int = 0,
        limit_at: float = inf,
        policy: Policy | None = None,
        life_s: float = inf,
    ) -> None:
        """`life_s`: workers of further attempts end well after so long."""
        self.now = 0.0
        self.random = random.Random(seed)
        self.grace_s, self.limit_at = grace_s, limit_at
        self.hosts = tuple(f"n{i}" for i in range(nodes))
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.links: dict[tuple[int, int], float] = {}  # time of the last delivery: a connection keeps the order
        self.verdicts_told = 0
        self.policy, self.per_node, self.life_s = policy, per_node, life_s
        self.begun: list[tuple[float, int, int, tuple[int, ...]]] = []  # time, agent, attempt, members
        self.ended: list[Verdict] = []  # of attempts after which there was another one
        self.shared: dict[int, tuple[tuple[int, ...], ...]] = {}  # ports by attempt, as the first node to start has them
        self.odd_plans: set[int] = set()  # nodes that make another plan than the others
        self.portless: set[int] = set()  # nodes that find no new ports
        self.mute: set[int] = set()  # nodes that never get ready
        self.faults: dict[int, tuple[str, ...]] = {}  # what a look at the health of nodes finds
        self.doubts: dict[int, tuple[str, ...]] = {}
        self.blamed: list[tuple[float, int, str]] = []
        self.agents = [self._agent(i, per_node) for i in range(nodes)]

    def _agent(self, index: int, per_node: int) -> Agent:
        ranks = range(index * per_node, (index + 1) * per_node)
        given = {"limit_at": self.limit_at, "hang_timeout_s": HANG_S, "policy": self.policy}
        state = supervisor.start(index, self.hosts, frozenset(ranks), self.grace_s, **given)  # type: ignore[arg-type]
        if self.limit_at < inf:
            self.at(self.limit_at, lambda: self.feed(self.agents[index], Tick()))
        return Agent(index, state, {rank: Worker(rank, index) for rank in ranks})

    def worker(self, rank: int) -> Worker:
        having = [agent for agent in self.agents if rank in agent.workers]
        return min(having, key=lambda agent: agent.dead).workers[rank]

    def wall(self, agent: Agent) -> float:
        return WALL + self.now + agent.offset_s

    # -- what happens

    def at(self, time_s: float, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.queue, (max(time_s, self.now), self.count, what))

    def run(self, until_s: float = 600.0) -> None:
        while self.queue and self.queue[0][0] <= until_s:
            self.now, _, what = heapq.heappop(self.queue)
            what()

    def exit(self, rank: int, code: int, time_s: float, cause: str = "error") -> None:
        """Worker `rank` ends by itself, if there is one then."""
        there = lambda: any(rank in agent.workers for agent in self.agents)  # noqa: E731
        self.at(time_s, lambda: self._exit(self.worker(rank), code, cause) if there() else None)

    def _exit(self, worker: Worker, code: int, cause: str = "error") -> None:
        agent = self.agents[worker.node]
        if not worker.alive or agent.dead:
            return
        worker.alive = False
        failure = self._failure(agent, worker, code, cause) if code else None
        self.at(self.now + self.random.uniform(0, NOTICE_S), lambda: self.feed(agent, WorkerExited(worker.rank, failure)))

    def _failure(self, agent: Agent, worker: Worker, code: int, cause: str) -> Failure:
        number = code - 128 if code > 128 else 0
        rank, node = worker.rank, agent.index
        return Failure(rank, 0, node, self.hosts[node], 100 + rank, code, number, self.wall(agent), cause, told=worker.told)

    def signal(self, index: int, number: int, time_s: float) -> None:
        """Agent `index` gets a signal."""
        agent = self.agents[index]
        self.at(time_s, lambda: self.feed(agent, SignalArrived(number, "pid 1 (init)", self.wall(agent))))

    def cannot_start(self, index: int, time_s: float) -> None:
        self.at(time_s, lambda: self.feed(self.agents[index], StartFailed(Problem(73, "write", "no space", "make some"))))

    def kill_agent(self, index: int, time_s: float, silent: bool = False) -> None:
        """An agent and its workers are gone; `silent`: the whole node, so that the others notice by the heartbeat only."""
        self.at(time_s, lambda: self._kill_agent(self.agents[index], silent))

    def _kill_agent(self, agent: Agent, silent: bool) -> None:
        if agent.dead or agent.verdict is not None:
            return
        agent.dead = True
        for worker in agent.workers.values():
            worker.alive = False
        why = f"silent for {PATIENCE_S} s" if silent else "connection reset by peer"
        self._tell_gone(agent, why, PATIENCE_S if silent else 0.0)

    def _tell_gone(self, agent: Agent, why: str, after_s: float) -> None:
        others = self.agents[1:] if agent.index == 0 else self.agents[:1]
        for other in others:
            self._deliver(agent, other, lambda other=other: AgentGone(agent.index, why, self.wall(other)), after_s)

    # -- the supervisor and its actions

    def feed(self, agent: Agent, event: Event) -> None:
        if agent.dead or agent.verdict is not None:
            return
        agent.state, actions = supervisor.step(agent.state, event, self.now)
        for action in actions:
            self._do(agent, action)
        due = supervisor.wake_at(agent.state)
        if due != float("inf"):
            self.at(due, lambda: self.feed(agent, Tick()))

    def _do(self, agent: Agent, action: object) -> None:
        match action:
            case SignalWorkers(number):
                for worker in agent.workers.values():
                    self._signal_worker(worker, number)
            case Ask() | ShowEnd():
                self._ask(agent, action)
            case Sweep() | Kill():
                agent.killing |= isinstance(action, Kill)
                self._look(agent)
            case Tell(to, message):
                self._say(agent, self.agents[to], message)
            case TellAll(message):
                self._say_all(agent, message)
            case Prepare() | MakePlan() | StartWorkers():
                self._renew(agent, action)
            case Blame(faults):
                self.blamed += [(self.now, node, why) for node, why in faults]
            case Finish(verdict):
                agent.verdict = verdict
                agent.finished_at = self.now
                self._tell_gone(agent, "closed the connection", 0.0)

    def _renew(self, agent: Agent, action: Prepare | MakePlan | StartWorkers) -> None:
        match action:
            case Prepare():
                self._prepare(agent, action)
            case MakePlan(ports, members):
                agent.ports, agent.members = ports, members
                odd = agent.index if agent.index in self.odd_plans else ""
                self.at(self.now + 0.001, lambda: self.feed(agent, Planned(f"{agent.attempt} {ports} {odd}")))
            case StartWorkers():
                self._start(agent)

    def _prepare(self, agent: Agent, action: Prepare) -> None:
        left = [w for w in agent.workers.values() if w.alive or w.leftovers]
        assert not left, "the last attempt is not over"
        if agent.index == 0:
            self.ended.append(action.verdict)
        agent.members, agent.attempt = action.members, action.attempt
        agent.sweeping = agent.killing = False
        failed = StartFailed(Problem(73, "hold", "no port", "free some"))
        faults, doubts = self.faults.get(agent.index, ()), self.doubts.get(agent.index, ())
        made = Prepared((1000 * agent.attempt + agent.index,), faults, doubts)
        answer = failed if agent.index in self.portless else made
        if agent.index not in self.mute:
            self.at(self.now + 0.001, lambda: self.feed(agent, answer))

    def _start(self, agent: Agent) -> None:
        assert len(agent.ports) == len(agent.members)
        assert self.shared.setdefault(agent.attempt, agent.ports) == agent.ports, "two worlds in one attempt"
        others = [w for other in self.agents if other.attempt != agent.attempt for w in other.workers.values() if w.alive]
        assert not others, "workers of two attempts run at the same time"
        first = agent.members.index(agent.index) * self.per_node
        old = [agent.workers[rank] for rank in sorted(agent.workers)]
        agent.workers = {
            first + at: Worker(first + at, agent.index, was.stop_s, was.leftovers, was.stubborn) for at, was in enumerate(old)
        }
        self.begun.append((self.now, agent.index, agent.attempt, agent.members))
        if self.life_s < inf:
            for worker in agent.workers.values():
                self.at(self.now + self.life_s, lambda worker=worker: self._exit(worker, 0))
        self.at(self.now, lambda: self.feed(agent, Started(frozenset(agent.workers), frozenset())))

    def _say_all(self, agent: Agent, message: Message) -> None:
        self.verdicts_told += isinstance(message, Decided)
        for other in self.agents:
            if other is not agent:
                self._say(agent, other, message)

    def _ask(self, agent: Agent, action: Ask | ShowEnd) -> None:
        if isinstance(action, ShowEnd):
            agent.left_s = action.left_s
        else:
            agent.asked.append(action.reason)
            self._forward(agent, action.number)

    def _forward(self, agent: Agent, number: int) -> None:
        for worker in agent.workers.values():
            if worker.alive:
                worker.signals.append(number)

    def _signal_worker(self, worker: Worker, number: int) -> None:
        if worker.alive:
            worker.told = True
            worker.signals.append(number)
            if worker.stop_s is not None:
                self.at(self.now + worker.stop_s, lambda: self._exit(worker, 128 + number, "signal"))

    def _look(self, agent: Agent) -> None:
        """What the crew does at a sweep."""
        if agent.dead or agent.verdict is not None:
            return
        for worker in agent.workers.values():
            if agent.killing and worker.alive and not worker.unkillable:
                worker.told = True
                self.at(self.now + 0.005, lambda worker=worker: self._exit(worker, 128 + signal.SIGKILL, "signal"))
            if agent.killing or not worker.stubborn:
                worker.leftovers = 0
        known = agent.state.node.alive
        left = [Stuck(agent.index, "h", w.rank, "w", "D") for w in agent.workers.values() if w.rank in known or w.leftovers]
        self.at(self.now, lambda: self.feed(agent, TreeSeen(tuple(left))))
        if left:
            self.at(self.now + SWEEP_S, lambda: self._look(agent))

    def _say(self, sender: Agent, to: Agent, message: Message) -> None:
        body = pack(message)
        self._deliver(sender, to, lambda: AgentSaid(sender.index, unpack(body), sender.offset_s - to.offset_s))

    def _deliver(self, sender: Agent, to: Agent, event: Callable[[], Event], after_s: float = 0.0) -> None:
        link = sender.index, to.index
        arrival = max(self.links.get(link, 0.0), self.now + after_s + self.random.uniform(0.0002, 0.02))
        self.links[link] = arrival
        self.at(arrival, lambda: self.feed(to, event()))


def verdict(world: World) -> Verdict:
    """The one verdict that all surviving agents end with."""
    given = {agent.verdict for agent in world.agents if not agent.dead}
    assert None not in given, "an agent did not end"
    assert len(given) == 1
    return given.pop()  # type: ignore[return-value]


def look(rank: int, cpu: float = 0.0, wchan: str = "futex_wait", state: str = "S") -> Look:
    """What a look at a silent worker shows."""
    return Look(rank, rank // 2, f"n{rank // 2}", 100 + rank, 60.0, cpu, state, wchan)
