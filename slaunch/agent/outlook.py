"""Shows the running job to the outside: when to look at the workers, and the note by which the run is found."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from slaunch.agent.crew import Worker
from slaunch.agent.messages import Seen
from slaunch.agent.values import Verdict
from slaunch.channel.star import Star
from slaunch.clock import wall_s
from slaunch.frozen import dataclass
from slaunch.jobs import Run
from slaunch.options import Options
from slaunch.plan.values import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.view import View

FIRST_S = 1.0
"""After the start: then workers run."""
USUAL_S = 5.0
WORKERS_A_SECOND = 200.0
"""In large jobs the state is written less often, so that the hub spends its time on its duty."""


@dataclass(frozen=True)
class Scene:
    """What a look needs.

    Attributes:
        plan, own, options, star: the agent's.
        id: the job's.
        started_s: when the run began, seconds since the epoch.
        interval_s: seconds between two looks.
        hosts: host names by agent; there may come more.
        tell: takes a line for the user.
        workers: the node's.
        on_devices: tells of a rank's devices, as `Gauges.on_devices`.
        selector: of the agent's loop.
    """

    plan: Plan
    own: int
    options: Options
    star: Star
    id: str
    started_s: float
    interval_s: float
    hosts: Callable[[], Sequence[str]]
    tell: Callable[[str], None]
    workers: Callable[[], Iterable[Worker]]
    on_devices: Callable[[int], tuple[int, int, int]]
    selector: selectors.BaseSelector


class Outlook:
    """One agent's.

    Args:
        scene: what a look needs.
        card: where the job's run is written down; None = nowhere, e.g. in tests.
        note: takes a line for the agent's log.
        env: for where runs are remembered.
        now: here as everywhere on the monotonic clock.

    Attributes:
        due: when there is something to do.
        end_s: when the job's time runs out, seconds since the epoch.
    """

    def __init__(self, scene: Scene, card: Run | None, note: Callable[[str], None], env: Mapping[str, str], now: float) -> None:
        self.due = now
        self.end_s: Callable[[], float] = lambda: inf
        self._scene = scene
        self._limit_s = scene.started_s + (scene.options.time_limit_s or inf)
        self._card = card
        self._note = note
        self._env = env
        self._remembered = False
        self._made: View | None = None

    def tick(self, now: float) -> None:
        """Look, if it is time. First of all the run is written down, so that it can be found."""
        if now < self.due:
            return
        if not self._remembered:
            self._remember()
            self.due = now + FIRST_S if self._scene.interval_s else inf
            return
        self.due = now + self._scene.interval_s
        self.look(now)

    def look(self, now: float) -> None:
        """Look at the workers and tell the hub; the hub writes down what it has heard."""
        if self._scene.interval_s:
            self._view().look(now)

    def hear(self, node: int, news: Seen, now: float) -> None:
        """What another node's agent has seen."""
        if self._scene.interval_s:
            self._view().hear(node, news, now)

    def renew(self) -> None:
        """Another attempt follows."""
        if self._scene.interval_s:
            self._view().renew()

    def finish(self, verdict: Verdict, now: float) -> None:
        """The job has ended."""
        if self._scene.interval_s and self._scene.star.is_hub:
            self._view().finish(verdict, now)

    def close(self) -> None:
        """Let go of files and clients."""
        self.due = inf
        if self._made is not None:
            self._made.close()

    def _view(self) -> View:
        """Made when it is needed: workers do not wait for its modules."""
        if self._made is None:
            from slaunch.agent.view import View

            self._made = View(self._scene, lambda: min(self.end_s(), self._limit_s) - wall_s())
        return self._made

    def _remember(self) -> None:
        self._remembered = True
        if self._card is not None and self._scene.star.is_hub:
            from slaunch.jobs import remember

            failed = remember(self._card, self._env)
            if failed:
                self._note(f"this run will not be found by its job id from elsewhere: {failed}")


def measured(options: Options) -> bool:
    """Whether figures for Prometheus are wanted."""
    return bool(options.metrics_file or options.metrics_port)


def interval_of(world: int, options: Options) -> float:
    """Seconds between two looks; 0 = nobody wants any."""
    wanted = options.status_interval_s or (USUAL_S if measured(options) else 0.0)
    return max(wanted, world / WORKERS_A_SECOND) if wanted else 0.0
