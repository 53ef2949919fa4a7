"""Tasks that meet for real, each in a thread of its own, as if each were a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slaunch.allocation.values import Allocation, Slot, Task
from slaunch.channel.secret import VARIABLE, fresh_text
from slaunch.errors import SlaunchError
from slaunch.frozen import replace
from slaunch.node.values import Address, NodeFacts
from slaunch.options import Options, Program
from slaunch.rendezvous.meet import Meeting, meet
from support.facts import facts

LOOPBACK = (Address("127.0.0.1", "lo", 8),)


@dataclass
class Job:
    """A job whose tasks are all on this machine.

    Attributes:
        size: number of tasks that it should have.
        env: their environment: a secret of its own, so that no MUNGE is needed.
        options: the user's.
        change: changes of a task's facts, by rank.
    """

    size: int = 2
    job: str = field(default_factory=lambda: f"test-{os.urandom(4).hex()}")
    env: dict[str, str] = field(default_factory=lambda: {VARIABLE: fresh_text()})
    options: Options = field(
        default_factory=lambda: Options(Program("train.py"), rendezvous="slurm", rendezvous_timeout_s=30.0)
    )
    change: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ("localhost",)

    def task(self, rank: int) -> Task:
        allocation = Allocation("slurm", self.job, "0", self.nodes, (self.size,), root=self.nodes[0])
        return Task(allocation, Slot(rank, self.size, rank, 0))

    def facts(self, rank: int) -> NodeFacts:
        return replace(facts(rank, addresses=LOOPBACK, gpus=0), **self.change.get(rank, {}))

    def start(self, rank: int, use: Callable[[Meeting], object] = lambda meeting: None) -> Tasklet:
        return Tasklet(self, rank, use)

    def run(self, use: Callable[[Meeting], object] = lambda meeting: None, ranks: tuple[int, ...] = ()) -> list[Tasklet]:
        """All tasks (or only some) meet, use the meeting and end."""
        tasks = [self.start(rank, use) for rank in ranks or range(self.size)]
        for task in tasks:
            task.join()
        return tasks


@dataclass
class ByHand(Job):
    """Nodes that are started one by one: each is alone as far as its launcher knows.

    Attributes:
        master: where they meet.
        ranks: numbers that nodes ask for, by the order of their start.
    """

    master: str = ""
    nnodes: tuple[int, int] = (0, 0)
    ranks: Mapping[int, int] = field(default_factory=dict)

    def task(self, rank: int) -> Task:
        return Task(Allocation("plain", nodes=("here",), tasks_per_node=(1,), root="here"), Slot(0, 1, 0))

    def start(self, rank: int, use: Callable[[Meeting], object] = lambda meeting: None) -> Tasklet:
        wanted = self.nnodes if self.nnodes != (0, 0) else (self.size, self.size)
        options = replace(
            self.options,
            rendezvous="auto",
            master=self.master,
            nnodes=wanted,
            node_rank=self.ranks.get(rank, -1),
            job_id=self.job,
            origins={"rendezvous_timeout_s": "command line"},
        )
        return Tasklet(self, rank, use, options)


class Tasklet(threading.Thread):
    """One task.

    Attributes:
        result: what `use` gave.
        error: the error it ended with.
        said: what it said.
    """

    def __init__(
        self, job: Job, rank: int, use: Callable[[Meeting], object] = lambda meeting: None, options: Options | None = None
    ) -> None:
        super().__init__()
        self.options = options or job.options
        self.job, self.rank, self.use = job, rank, use
        self.result: object = None
        self.error: SlaunchError | None = None
        self.said: list[str] = []
        self.start()

    def run(self) -> None:
        job, rank = self.job, self.rank
        alone = job.task(rank).slot.size == 1
        say = self.said.append if rank == 0 or alone else lambda line: None
        try:
            with meet(job.task(rank), job.facts(rank), self.options, job.env, say) as meeting:
                self.result = self.use(meeting)
        except SlaunchError as error:
            self.error = error
