"""What an agent does beside its duty, and no decision depends on: it looks where its workers run and how much memory they use.

It tells the hub, which tells the user.
"""

from __future__ import annotations

import os
import select
import selectors
from collections.abc import Callable, Mapping, Sequence
from math import inf

from slaunch.agent.crew import Crew, Worker
from slaunch.agent.events import AgentSaid, Event
from slaunch.agent.gauges import Gauges, metered, order_for
from slaunch.agent.journal import Journal
from slaunch.agent.messages import Message, Remark, Used
from slaunch.agent.node_side import HUB
from slaunch.agent.placement import Placement
from slaunch.agent.policy import restarts
from slaunch.agent.values import Peak
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
        send: sends a message to the hub; on the hub itself it is not used.
    """

    def __init__(
        self, plan: Plan, own: int, options: Options, journal: Journal, send: Callable[[Message], None] = lambda message: None
    ) -> None:
        self._plan = plan
        self._own = own
        self._options = options
        self._journal = journal
        self._send = send
        self._placement: Placement | None = None
        self._gauges: Gauges | None = None
        self._heard: list[Peak] = []
        self._said = 0
        self._unsaid = 0

    def attend(self, crew: Crew, selector: selectors.BaseSelector, env: Mapping[str, str], devices: Sequence[Device]) -> None:
        """From now on there are workers: `env` is for the sampler of `devices`, which starts after them."""
        self._placement = Placement(crew.workers.values, self.remark)
        order = order_for(self._plan, self._own, devices) if metered(devices, self._options.device_log) else None
        self._gauges = Gauges(crew.workers.values, selector, order, env, crew.spared)

    @property
    def due(self) -> float:
        """When there is something to do, on the monotonic clock."""
        parts = (self._placement, self._gauges)
        return min((part.due for part in parts if part is not None), default=inf)

    def tick(self, now: float) -> None:
        """Do it, if it is time."""
        for part in (self._placement, self._gauges):
            if part is not None:
                part.tick(now)

    def started(self, worker: Worker) -> None:
        """A worker runs."""
        if self._gauges is not None:
            self._gauges.started(worker)

    def leave(self) -> None:
        """Nothing is left of this node's workers. The sampler goes, too, unless other workers may follow."""
        if self._gauges is not None and not restarts(self._options):
            self._gauges.stop()
        peaks = self._peaks()
        if peaks:
            self._send(Used(peaks))

    def renew(self) -> None:
        """Another attempt follows: the peaks will be its own."""
        self._heard.clear()
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
            case _:
                return False
        return True

    def remark(self, text: str) -> None:
        """Something of this node that the user may want to know."""
        self._journal.note("remark", text=text)
        if self._own == HUB:
            self._say(HUB, text)
        else:
            self._send(Remark(text))

    def peaks(self) -> tuple[Peak, ...]:
        """Memory of all workers that is known here, by rank."""
        return tuple(sorted((*self._peaks(), *self._heard), key=lambda peak: peak.rank))

    def notes(self) -> tuple[str, ...]:
        """What to add to the report."""
        return (f"{self._unsaid} more remarks are in agent.*.jsonl in the directory of the logs",) if self._unsaid else ()

    def close(self) -> None:
        """End what has been started."""
        if self._gauges is not None:
            self._gauges.close()

    def _peaks(self) -> tuple[Peak, ...]:
        return self._gauges.peaks(self._plan.nodes[self._own].host) if self._gauges is not None else ()

    def _say(self, node: int, text: str) -> None:
        """On the console, unless that would have to wait."""
        if self._options.log_level == "warning":
            return
        if self._said == MOST_SAID or not select.select([], [2], [], 0)[1]:
            self._unsaid += 1
            return
        self._said += 1
        os.write(2, f"slaunch: note: {self._plan.nodes[node].host}: {text}\n".encode(errors="replace"))
