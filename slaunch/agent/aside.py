"""What an agent does beside its duty, and no decision depends on: it looks where its workers run and how much memory they use.

It tells the hub, which tells the user.
"""

from __future__ import annotations

import os
import select
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf

from slaunch.agent.console import Console
from slaunch.agent.crew import Crew, Worker
from slaunch.agent.events import AgentSaid, Event
from slaunch.agent.gauges import Gauges, metered, order_for
from slaunch.agent.journal import Journal
from slaunch.agent.messages import Message, Remark, Seen, Shown, Used, pack
from slaunch.agent.outlook import Outlook, Scene, interval_of
from slaunch.agent.phases import FirstOutput
from slaunch.agent.placement import Placement
from slaunch.agent.policy import restarts
from slaunch.agent.values import Peak, Verdict
from slaunch.channel.star import Star
from slaunch.clock import wall_s
from slaunch.jobs import Run
from slaunch.node.values import Device
from slaunch.options import Options
from slaunch.plan.values import Plan

MOST_SAID = 8
"""Of many nodes' remarks, these are said; all are in their nodes' journals."""


class Aside:
    """One agent's.

    Args:
        plan: the job.
        own: this node.
        options: which of it is wanted.
        journal: this agent's.
        star: the agents' channel.
        card: where the job's run is written down; None = nowhere.
        hosts: host names of all agents' nodes, those that wait included; () = those of the plan.
    """

    def __init__(  # noqa: PLR0917 - one of each
        self,
        plan: Plan,
        own: int,
        options: Options,
        journal: Journal,
        star: Star,
        card: Run | None = None,
        hosts: Sequence[str] = (),
    ) -> None:
        self._plan = plan
        self._hosts = hosts or tuple(node.host for node in plan.nodes)
        self._own = own
        self._options = options
        self._journal = journal
        self._star = star
        self._placement: Placement | None = None
        self._gauges: Gauges | None = None
        self.end_s: Callable[[], float] = lambda: inf
        self._outlook: Outlook | None = None
        self._card = card
        self._crew: Crew | None = None
        self._first: FirstOutput | None = None
        self._console: Console | None = None
        self._heard: list[Peak] = []
        self._said = 0
        self._unsaid = 0
        self._texts: set[str] = set()

    def attend(
        self,
        crew: Crew,
        selector: selectors.BaseSelector,
        env: Mapping[str, str],
        devices: Sequence[Device],
        console: Console | None = None,
    ) -> None:
        """From now on there are workers: `env` is for the sampler of `devices`, which starts after them."""
        self._crew, self._console = crew, console
        self._placement = Placement(crew.workers.values, self.remark)
        order = order_for(self._plan, self._own, devices) if metered(devices, self._options.device_log) else None
        self._gauges = Gauges(crew.workers.values, selector, order, env, crew.spared, self._no_samples)
        if order is None:
            self._no_samples()
        self._outlook = Outlook(self._scene(crew, self._gauges, selector), self._card, self._log, env, time.monotonic())
        self._outlook.end_s = self.end_s
        self._first = FirstOutput(crew.workers.values, self._journal, time.monotonic())

    @property
    def due(self) -> float:
        """When there is something to do, on the monotonic clock."""
        parts = (self._placement, self._gauges, self._first, self._outlook)
        return min((part.due for part in parts if part is not None), default=inf)

    def tick(self, now: float) -> None:
        """Do it, if it is time."""
        for part in (self._placement, self._gauges, self._first, self._outlook):
            if part is not None:
                part.tick(now)

    def started(self, worker: Worker) -> None:
        """A worker runs."""
        if self._gauges is not None:
            self._gauges.started(worker)

    def leave(self) -> None:
        """Nothing is left of this node's workers. The sampler goes, too, unless other workers may follow."""
        if self._crew is not None:
            self._crew.finish_logs()
        if self._console is not None:
            self._console.last_words()
        if self._outlook is not None:
            self._outlook.look(time.monotonic())
        if self._gauges is not None and not restarts(self._options):
            self._gauges.stop()
        peaks = self._peaks()
        if peaks:
            self._send(Used(peaks))

    def finish(self, verdict: Verdict) -> None:
        """The job has ended."""
        if self._crew is not None:
            self._crew.finish_logs()
        if self._outlook is not None:
            self._outlook.finish(verdict, time.monotonic())

    def renew(self) -> None:
        """Another attempt follows: the peaks will be its own."""
        self._heard.clear()
        if self._outlook is not None:
            self._outlook.renew()
        if self._first is not None:
            self._first.start(time.monotonic())
        if self._placement is not None:
            self._placement.start()

    def announce(self, text: str) -> None:
        """Something that the user is always told, unless the console would have to wait."""
        self._journal.note("announced", text=text)
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"slaunch: {text}\n".encode(errors="replace"))

    def take(self, event: Event) -> bool:
        """Whether an event is news from another node, and taken."""
        match event:
            case AgentSaid(sender, Remark(text)):
                self._say(sender, text)
            case AgentSaid(_, Used(peaks)):
                self._heard += peaks
            case AgentSaid(sender, Seen() as news):
                if self._outlook is not None:
                    self._outlook.hear(sender, news, time.monotonic())
            case AgentSaid(_, Shown(text)):
                if self._console is not None:
                    self._console.hear(text.encode())
            case _:
                return False
        return True

    def remark(self, text: str) -> None:
        """Something of this node that the user may want to know."""
        self._journal.note("remark", text=text)
        if self._star.is_hub:
            self._say(self._own, text)
        else:
            self._send(Remark(text))

    def _scene(self, crew: Crew, gauges: Gauges, selector: selectors.BaseSelector) -> Scene:
        """What a look at the workers needs."""
        plan, options = self._plan, self._options
        id = self._card.id if self._card else plan.job
        job = (plan, self._own, options, self._star, id, wall_s(), interval_of(plan.world, options))
        return Scene(*job, lambda: self._hosts, self.remark, crew.workers.values, gauges.on_devices, selector)

    def _no_samples(self) -> None:
        """There are no devices to sample, or no driver answers: who has asked for samples is told."""
        if self._options.device_log == "yes":
            self.remark("--device-log yes: no driver of devices answers here, so nothing is sampled")

    def _log(self, text: str) -> None:
        self._journal.note("remark", text=text)

    def peaks(self) -> tuple[Peak, ...]:
        """Memory of all workers that is known here, by rank."""
        return tuple(sorted((*self._peaks(), *self._heard), key=lambda peak: peak.rank))

    def notes(self) -> tuple[str, ...]:
        """What to add to the report."""
        return (f"{self._unsaid} more remarks are in agent.*.jsonl in the directory of the logs",) if self._unsaid else ()

    def close(self) -> None:
        """End what has been started."""
        if self._outlook is not None:
            self._outlook.close()
        if self._gauges is not None:
            self._gauges.close()

    def _send(self, message: Message) -> None:
        self._star.send(self._star.hub, pack(message))

    def _peaks(self) -> tuple[Peak, ...]:
        return self._gauges.peaks(self._hosts[self._own]) if self._gauges is not None else ()

    def _say(self, node: int, text: str) -> None:
        """On the console, unless that would have to wait; the same from several nodes once, it is in their own logs."""
        if self._options.log_level == "warning" or text in self._texts:
            return
        self._texts.add(text)
        if self._said == MOST_SAID or not select.select([], [2], [], 0)[1]:
            self._unsaid += 1
            return
        self._said += 1
        os.write(2, f"slaunch: note: {self._hosts[node]}: {text}\n".encode(errors="replace"))
