"""What of the running job is shown to the outside: each agent looks at its workers, the hub writes down what all have seen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from math import inf

from slaunch.agent.board import Board, Heard, write_state, write_whole
from slaunch.agent.messages import Seen, pack
from slaunch.agent.outlook import Scene, measured
from slaunch.agent.sight import Looker
from slaunch.agent.values import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from slaunch.agent.exporter import Exporter


class View:
    """One agent's.

    Args:
        scene: what a look needs.
        left_s: seconds until the job's time runs out; inf = never, or not known.
    """

    def __init__(self, scene: Scene, left_s: Callable[[], float]) -> None:
        self._scene = scene
        self._left_s = left_s
        plan, options = scene.plan, scene.options
        self._board = Board(plan.job, scene.id, scene.hosts, plan.world, scene.interval_s, scene.started_s)
        self._attempt = plan.attempt
        self._looker = Looker(scene.workers, scene.on_devices, count=measured(options) or options.log_max_bytes > 0)
        self._exporter: Exporter | None = None
        self._told: set[str] = set()

    def look(self, now: float) -> None:
        """Look at the workers and tell the hub; the hub writes down what it has heard. `now`: monotonic."""
        sights = self._looker.look(now)
        self._watch_disk()
        star = self._scene.star
        if not star.is_hub:
            star.send(star.hub, pack(Seen(self._attempt, sights)))
            return
        self._board.hear(self._scene.own, Heard(now, self._attempt, sights))
        if self._scene.options.metrics_port and self._exporter is None:
            self._serve()
        self._write(self._state(now))

    def hear(self, node: int, news: Seen, now: float) -> None:
        """What another node's agent has seen."""
        self._board.hear(node, Heard(now, news.attempt, news.sights))

    def renew(self) -> None:
        """Another attempt follows."""
        self._attempt += 1
        self._looker.renew()

    def finish(self, verdict: Verdict, now: float) -> None:
        """The job has ended, and this is the hub."""
        self._board.hear(self._scene.own, Heard(now, self._attempt, self._looker.look(now)))
        self._write(self._state(now, outcome=verdict.outcome, code=verdict.code))

    def close(self) -> None:
        """Let go of files and clients."""
        self._looker.close()
        if self._exporter is not None:
            self._exporter.close()

    def _state(self, now: float, **ended: Any) -> dict[str, Any]:
        left_s = self._left_s()
        return self._board.state(now, self._attempt, round(left_s, 1) if left_s < inf else None, **ended)

    def _write(self, state: Mapping[str, Any]) -> None:
        if self._scene.options.status_interval_s:
            self._complain(write_state(self._scene.plan.log_dir, state))
        if self._scene.options.metrics_file:
            from slaunch.agent.metrics import render

            self._complain(write_whole(self._scene.options.metrics_file, render(state), 0o644))

    def _serve(self) -> None:
        from slaunch.agent.exporter import Exporter
        from slaunch.agent.metrics import render

        port = self._scene.options.metrics_port
        try:
            self._exporter = Exporter(port, lambda: render(self._state(time.monotonic())), self._scene.selector)
        except OSError as error:
            self._complain(f"no figures for Prometheus at port {port}: {error.strerror}")

    def _watch_disk(self) -> None:
        """Workers that write their files themselves hear of a full disk; whoever looks on shall, too."""
        try:
            full = os.statvfs(self._scene.plan.log_dir).f_bavail == 0
        except OSError:
            return
        if full:
            self._complain(f"the disk of the logs is full: {self._scene.plan.log_dir}")

    def _complain(self, text: str) -> None:
        """Tell it, once."""
        if text and text not in self._told:
            self._told.add(text)
            self._scene.tell(text)
