"""The agent's event loop: one thread, one selector. It hands events to the supervisor and carries out what that answers."""

from __future__ import annotations

import selectors
import signal
import time
from collections import deque
from collections.abc import Callable

from slaunch._failpoint import failpoint
from slaunch.agent import supervisor
from slaunch.agent.aside import Aside
from slaunch.agent.attempts import Attempts
from slaunch.agent.console import Console
from slaunch.agent.crew import Crew
from slaunch.agent.events import (
    Action,
    Admit,
    AgentGone,
    AgentSaid,
    Ask,
    Blame,
    Enrol,
    Event,
    Finish,
    Kill,
    MakePlan,
    Prepare,
    Resume,
    ShowEnd,
    SignalArrived,
    SignalWorkers,
    Started,
    StartWorkers,
    Suspend,
    Sweep,
    Tell,
    TellAll,
    Tick,
    TreeSeen,
    WorkersHeard,
    WorkersSilent,
)
from slaunch.agent.journal import Journal
from slaunch.agent.linux import read_signalfd
from slaunch.agent.messages import Decided, NodeEnded, pack, unpack
from slaunch.agent.silence import Silence
from slaunch.agent.telling import Telling
from slaunch.agent.tree import describe
from slaunch.agent.values import Verdict
from slaunch.channel.star import Headless, Item, Lost, Message, Pulse, Star, Succeeded
from slaunch.clock import wall_s

IDLE_S = 0.5
"""The loop looks at the channel's heartbeats this often when nothing happens."""
ENDED = "; its workers were ended, as the others may go on without this node"


class Loop:
    """Everything that the loop serves."""

    def __init__(  # noqa: PLR0917 - one of each
        self,
        state: supervisor.State,
        crew: Crew,
        star: Star,
        console: Console,
        journal: Journal,
        silence: Silence,
        aside: Aside,
        attempts: Attempts,
        signals: int,
        telling: Telling,
        lead: Callable[[], None],
    ) -> None:
        """`lead`: called if this agent becomes the hub."""
        self.state = state
        self.verdict: Verdict | None = None
        self._crew = crew
        self._star = star
        self._console = console
        self._journal = journal
        self._silence = silence
        self._aside = aside
        self._attempts = attempts
        self._telling = telling
        self._lead = lead
        self._admitted: deque[Admit] = deque()
        self._silent = False
        self._signals = signals
        self._arrived: deque[Event] = deque()
        self._orphans = False
        self._starting = False
        self._fresh_s = Pulse.for_size(star.size).patience_s / 2

    def run(self, selector: selectors.BaseSelector) -> Verdict:
        """Turn until the verdict is there."""
        selector.register(self._signals, selectors.EVENT_READ, self._read_signals)
        self._star.register(selector)
        if self._star.is_hub:
            self._attempts.lead(getattr(self._star, "reign", 0))
        self._crew.guardian.well(time.monotonic(), time.monotonic())
        while self.verdict is None:
            for key, _ in selector.select(self._timeout_s()):
                key.data()
            self.turn(time.monotonic())
        return self.verdict

    def turn(self, now: float) -> None:
        """After the descriptors have been served: what the workers did comes first, then signals, then what peers say."""
        if self._orphans:
            self._orphans = not self._crew.reap()
        if now >= self._crew.sweep_due:
            self._crew.look()
        self._serve_crew()
        while self._arrived:
            self.feed(self._arrived.popleft())
        self._star.tick(now)
        if now >= self._crew.guardian.due:
            self._say_well(now)
        self._start_workers(now)
        for item in self._star.take():
            self._serve_crew()
            event = self._heard(item)
            if not self._aside.take(event):
                self.feed(event)
        if now >= self._silence.due:
            self._listen(now)
        if now >= supervisor.wake_at(self.state):
            self.feed(Tick())
        self._serve_crew()
        self._console.tick(now)
        self._aside.tick(now)
        self._attempts.tick(now)
        self._telling.tick(now)
        while self._star.notices:
            self._journal.note("channel", text=self._star.notices.popleft())
        self._journal.flush()

    def _start_workers(self, now: float) -> None:
        """Start them, if it is time, and if there is word of the others: what one hears that has stood still may have been said
        long ago, and meanwhile they may have gone on without it."""
        if not self._starting:
            return
        if self.state.node.stopped:
            self._starting = False
            self._crew.events.append(Started(frozenset(), frozenset()))
        elif now - self._star.heard_at(now) <= self._fresh_s:
            self._starting = False
            failpoint("agent.starting_anew")
            self._attempts.start()

    def _say_well(self, now: float) -> None:
        still_s = self._crew.guardian.well(now, self._star.heard_at(now))
        if still_s:
            what = f"the agent on {self.state.node.host} stood still for {still_s:.1f} s (stopped, or waiting for a file server?)"
            self._aside.announce(what + ("" if any(not worker.ended for worker in self._crew.workers.values()) else ENDED))

    def feed(self, event: Event) -> None:
        """One event through the supervisor, and its actions into the world."""
        self.state, actions = supervisor.step(self.state, event, time.monotonic())
        if actions or not isinstance(event, Tick | TreeSeen):
            self._journal.value("event", event)
        for action in actions:
            self._journal.value("action", action)
            self._do(action)
        while self._admitted:  # after all have been told of it, this agent included
            self._attempts.admit(self._admitted.popleft(), self._star)

    def _timeout_s(self) -> float:
        if self._crew.events:
            return 0.0
        beside = min(self._console.due, self._silence.due, self._aside.due, self._attempts.due, self._telling.due)
        due = min(supervisor.wake_at(self.state), self._crew.sweep_due, beside)
        return min(IDLE_S, max(0.0, due - time.monotonic()))

    def _serve_crew(self) -> None:
        while self._crew.events:
            self.feed(self._crew.events.pop(0))

    def _listen(self, now: float) -> None:
        """Tell when the workers fall silent, and when they speak again."""
        looks = self._silence.look(self._crew.watched(), now)
        if (looks is not None) != self._silent:
            self._silent = looks is not None
            self.feed(WorkersHeard() if looks is None else WorkersSilent(looks))

    def _read_signals(self) -> None:
        for arrived in read_signalfd(self._signals):
            if arrived.number == signal.SIGCHLD:
                self._orphans = True
            else:
                sender = f"{describe(arrived.pid)} of user {arrived.uid}" if arrived.pid else ""
                self._arrived.append(SignalArrived(arrived.number, sender, wall_s()))

    def _heard(self, item: Item) -> Event:
        match item:
            case Message(sender, body):
                return AgentSaid(sender, unpack(body), self._star.clock_offset_s(sender))
            case Lost(index, why):
                return AgentGone(index, why, wall_s(), item.heir, item.silent)
            case Succeeded():
                failpoint("agent.succeeding")
                if self._star.is_hub:
                    self._lead()
                    self._attempts.lead(getattr(self._star, "reign", 0))
                return item
            case Headless():
                return item

    def _do(self, action: Action) -> None:
        match action:
            case SignalWorkers(number):
                failpoint("agent.stopping")
                self._telling.stopping()
                self._crew.signal(number)
            case Ask() | ShowEnd() | Suspend() | Resume():
                self._telling.do(action)
            case Sweep():
                self._crew.sweep()
            case Kill():
                failpoint("agent.killing")
                self._crew.kill()
            case Tell(to, message):
                if isinstance(message, NodeEnded):
                    self._aside.leave()
                self._star.send(to, pack(message))
            case TellAll(message):
                failpoint("agent.hub_decides" if isinstance(message, Decided) else "agent.hub_orders")
                self._star.broadcast(pack(message))
            case Prepare() | MakePlan() | StartWorkers() | Blame() | Enrol() | Admit():
                self._renew(action)
            case Finish(verdict):
                failpoint("agent.before_finish")
                self.verdict = verdict
                self._attempts.ended(verdict)

    def _renew(self, action: Prepare | MakePlan | StartWorkers | Blame | Enrol | Admit) -> None:
        """What another attempt needs; the answers are taken like what the crew tells."""
        match action:
            case Prepare():
                failpoint("agent.preparing")
                self._telling.renew()
                self._silent = False
                self._star.keep(action.members)
                self._attempts.prepare(action)
            case MakePlan():
                failpoint("agent.planning")
                self._crew.events.append(self._attempts.make_plan(action))
            case StartWorkers():
                self._starting = True
                self._start_workers(time.monotonic())
            case Blame(faults):
                self._attempts.blame(faults)
            case Enrol():
                self._attempts.enrol(action, self._star)
            case Admit():
                self._admitted.append(action)
