"""How much memory workers use: of their devices, as the sampler of devices tells, and of the machine, as the kernel counts.

The sampler is a process of its own, which the agent starts once its workers run, and which ends with it.
"""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from slaunch.agent.crew import Worker
from slaunch.agent.values import Peak
from slaunch.node.values import Device
from slaunch.plan.values import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.node.devices.sampler import Order
    from slaunch.node.devices.sampling import Sampling

METERED = ("gpu", "rocm", "npu", "xpu")
"""Kinds of devices that can be sampled."""


def metered(devices: Sequence[Device], wish: str) -> bool:
    """Whether to sample: where the user says so, or, by "auto", where there are devices that something is known of."""
    known = any(device.uuid or device.pci or device.kind in ("npu", "xpu") for device in devices)
    return bool(devices) and devices[0].kind in METERED and (wish == "yes" or (wish == "auto" and known))


def order_for(plan: Plan, node: int, devices: Sequence[Device]) -> Order:
    """What to sample, into two files beside the logs: one named as Paddle's, and a table; with the node's number if there are
    several. A restarted job goes on with them.
    """
    from slaunch.node.devices.sampler import Order  # with its modules: only where there are devices

    mark = f".{node}" if len(plan.nodes) > 1 else ""
    log = os.path.join(plan.log_dir, f"{plan.job.replace('/', '_')}{mark}.gpu.log")
    return Order(tuple(devices), log, os.path.join(plan.log_dir, f"devices{mark}.csv"), append=plan.attempt > 0)


class Gauges:
    """Memory of one agent's workers.

    Args:
        workers: the node's workers.
        selector: tells when the sampler has told something.
        order: what to sample; None = nothing.
        env: the sampler's environment.
        spared: has the sampler's process id while it runs: it is no worker's.
        refused: called once if no driver answers.
    """

    def __init__(  # noqa: PLR0917 - one of each
        self,
        workers: Callable[[], Iterable[Worker]],
        selector: selectors.BaseSelector,
        order: Order | None,
        env: Mapping[str, str],
        spared: set[int],
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        self.due = inf if order is None else 0.0
        self._workers = workers
        self._selector = selector
        self._order = order
        self._env = env
        self._spared = spared
        self._refused = refused
        self._sampling: Sampling | None = None
        self._listening = False

    def tick(self, now: float) -> None:
        """Start the sampler, once."""
        if now < self.due or self._order is None:
            return
        from slaunch.node.devices.sampling import Sampling

        self.due = inf
        try:
            self._sampling = Sampling(self._order, self._env)
        except OSError:  # no process, no descriptor: the job goes on without samples
            return
        self._spared.add(self._sampling.pid)
        for worker in self._workers():
            self.started(worker)
        self._selector.register(self._sampling.descriptor, selectors.EVENT_READ, self._read)
        self._listening = True

    def started(self, worker: Worker) -> None:
        """A worker runs."""
        if self._sampling is not None:
            self._sampling.started(worker.pid, worker.spec.rank)

    def on_devices(self, rank: int) -> tuple[int, int, int]:
        """Of a worker's devices: bytes of memory that it holds, the most that it has held, percent of use; -1 = not known."""
        if self._sampling is None:
            return -1, 0, -1
        held, percent = self._sampling.now.get(rank, (-1, -1))
        return held, self._sampling.peaks.get(rank, 0), percent

    def peaks(self, host: str) -> tuple[Peak, ...]:
        """The most memory that each worker has held; of those that have ended."""
        on_devices: Mapping[int, int] = self._sampling.peaks if self._sampling is not None else {}
        ended = (worker for worker in self._workers() if worker.ended)
        return tuple(Peak(each.spec.rank, host, each.peak_bytes, on_devices.get(each.spec.rank, 0)) for each in ended)

    def stop(self) -> None:
        """The workers have ended: so shall the sampler, at its leisure."""
        self.due = inf
        if self._sampling is not None:
            self._sampling.stop()

    def close(self) -> None:
        """The sampler has ended, or is killed."""
        self.due = inf
        if self._sampling is not None:
            self._sampling.close()

    def _read(self) -> None:
        if self._sampling is None:
            return
        answered, lives = self._sampling.answered, self._sampling.read()
        if answered and not self._sampling.answered:
            self._refused()
        if not lives and self._listening:
            self._selector.unregister(self._sampling.descriptor)
            self._spared.discard(self._sampling.pid)
            self._listening = False
