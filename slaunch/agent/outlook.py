"""Shows the running job to the outside: each agent looks at its workers now and then, the hub writes down what all have seen."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from slaunch.agent.board import Board, Heard, write_state, write_whole
from slaunch.agent.crew import Worker
from slaunch.agent.messages import Seen, pack
from slaunch.agent.sight import Looker
from slaunch.agent.values import Verdict
from slaunch.channel.star import Star
from slaunch.clock import wall_s
from slaunch.jobs import Run, remember
from slaunch.options import Options
from slaunch.plan.values import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from slaunch.agent.exporter import Exporter

FIRST_S = 1.0
"""After the start: then workers run."""
USUAL_S = 5.0
WORKERS_A_SECOND = 200.0
"""In large jobs the state is written less often, so that the hub spends its time on its duty."""


class Outlook:
    """One agent's.

    Args:
        plan: the job.
        own: this node.
        options: whether, and how often.
        card: where the job's run is written down; None = nowhere, e.g. in tests.
        hosts: host names by agent; there may come more.
        tell: takes a line for the user.
        note: takes one for the agent's log.
        star: the agents' channel.
    """

    def __init__(  # noqa: PLR0917 - one of each
        self,
        plan: Plan,
        own: int,
        options: Options,
        card: Run | None,
        hosts: Callable[[], Sequence[str]],
        tell: Callable[[str], None],
        note: Callable[[str], None],
        star: Star,
    ) -> None:
        self.due = inf
        self.end_s: Callable[[], float] = lambda: inf
        self._plan = plan
        self._limit_s = wall_s() + (options.time_limit_s or inf)
        self._own = own
        self._options = options
        self._tell = tell
        self._note = note
        self._star = star
        self._interval_s = interval_of(plan.world, options)
        self._board = Board(plan.job, card.id if card else plan.job, hosts, plan.world, self._interval_s)
        self._attempt = plan.attempt
        self._looker: Looker | None = None
        self._selector: selectors.BaseSelector | None = None
        self._exporter: Exporter | None = None
        self._told: set[str] = set()
        self._card = card
        self._env: Mapping[str, str] = {}
        self._remembered = False

    def attend(
        self,
        workers: Callable[[], Iterable[Worker]],
        on_devices: Callable[[], Mapping[int, int]],
        selector: selectors.BaseSelector,
        env: Mapping[str, str],
        now: float,
    ) -> None:
        """From now on there are workers; `now`, as everywhere here, on the monotonic clock.

        Args:
            env: for where runs are remembered.
        """
        self._env, self.due = env, now
        if not self._interval_s:
            return
        self._looker = Looker(workers, on_devices, count=measured(self._options) or self._options.log_max_bytes > 0)
        self._selector = selector

    def tick(self, now: float) -> None:
        """Look, if it is time. First of all the run is written down, so that it can be found."""
        if now < self.due:
            return
        if not self._remembered:
            self._remember()
            self.due = now + FIRST_S if self._interval_s else inf
            return
        self.due = now + self._interval_s
        self.look(now)

    def look(self, now: float) -> None:
        """Look at the workers and tell the hub; the hub writes down what it has heard."""
        if self._looker is None:
            return
        sights = self._looker.look(now)
        self._watch_disk()
        if not self._star.is_hub:
            self._star.send(self._star.hub, pack(Seen(self._attempt, sights)))
            return
        self._board.hear(self._own, Heard(now, self._attempt, sights))
        if self._options.metrics_port and self._exporter is None:
            self._serve()
        self._write(self._state(now))

    def hear(self, node: int, news: Seen, now: float) -> None:
        """What another node's agent has seen."""
        self._board.hear(node, Heard(now, news.attempt, news.sights))

    def renew(self) -> None:
        """Another attempt follows."""
        self._attempt += 1
        if self._looker is not None:
            self._looker.renew()

    def finish(self, verdict: Verdict, now: float) -> None:
        """The job has ended."""
        if self._star.is_hub and self._looker is not None:
            self._board.hear(self._own, Heard(now, self._attempt, self._looker.look(now)))
            self._write(self._state(now, outcome=verdict.outcome, code=verdict.code))

    def close(self) -> None:
        """Let go of files and clients."""
        self.due = inf
        if self._looker is not None:
            self._looker.close()
        if self._exporter is not None:
            self._exporter.close()

    def _remember(self) -> None:
        self._remembered = True
        if self._card is not None and self._star.is_hub:
            failed = remember(self._card, self._env)
            if failed:
                self._note(f"this run will not be found by its job id from elsewhere: {failed}")

    def _state(self, now: float, **ended: Any) -> dict[str, Any]:
        left_s = min(self.end_s(), self._limit_s) - wall_s()
        return self._board.state(now, self._attempt, round(left_s, 1) if left_s < inf else None, **ended)

    def _write(self, state: Mapping[str, Any]) -> None:
        if self._options.status_interval_s:
            self._complain(write_state(self._plan.log_dir, state))
        if self._options.metrics_file:
            from slaunch.agent.metrics import render

            self._complain(write_whole(self._options.metrics_file, render(state), 0o644))

    def _serve(self) -> None:
        from slaunch.agent.exporter import Exporter
        from slaunch.agent.metrics import render

        port = self._options.metrics_port
        try:
            assert self._selector is not None
            self._exporter = Exporter(port, lambda: render(self._state(time.monotonic())), self._selector)
        except OSError as error:
            self._complain(f"no figures for Prometheus at port {port}: {error.strerror}")

    def _watch_disk(self) -> None:
        """Workers that write their files themselves hear of a full disk; whoever looks on shall, too."""
        try:
            full = os.statvfs(self._plan.log_dir).f_bavail == 0
        except OSError:
            return
        if full:
            self._complain(f"the disk of the logs is full: {self._plan.log_dir}")

    def _complain(self, text: str) -> None:
        """Tell it, once."""
        if text and text not in self._told:
            self._told.add(text)
            self._tell(text)


def measured(options: Options) -> bool:
    """Whether figures for Prometheus are wanted."""
    return bool(options.metrics_file or options.metrics_port)


def interval_of(world: int, options: Options) -> float:
    """Seconds between two looks; 0 = nobody wants any."""
    wanted = options.status_interval_s or (USUAL_S if measured(options) else 0.0)
    return max(wanted, world / WORKERS_A_SECOND) if wanted else 0.0
