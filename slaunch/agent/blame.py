"""Nodes that have shown a fault: said to the user, and kept in the file that the user names for later jobs."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from slaunch.agent.errand import Errand
from slaunch.badnodes import LOCK_S, Fault, add
from slaunch.clock import wall_s
from slaunch.frozen import dataclass

LOST = "lost: "
"""How the reason of a lost node begins; the user is told of it where the attempt's end is."""
WRITE_S = LOCK_S + 10.0
"""How long the file may take: another job may hold it, and its file server may be slow."""


@dataclass(frozen=True)
class Book:
    """Where bad nodes are written down.

    Attributes:
        path: the user's file; "" = nowhere.
        job: the job's name, for the entries.
        nodes: the job's nodes as the scheduler calls them; () = not known.
    """

    path: str
    job: str
    nodes: tuple[str, ...] = ()

    def name_of(self, host: str) -> str:
        """What the scheduler calls a machine, whose own name may be longer (`n1.cluster.org`): other names sbatch refuses."""
        short = host.partition(".")[0]
        return short if host not in self.nodes and short in self.nodes else host


class BadNodes:
    """What the hub's agent does with them.

    Args:
        book: where they are kept.
        hosts: the machines' own names, by node.
        say: tells the user a line.
        selector: the agent's.
        spared: process ids that are no worker's.
    """

    def __init__(
        self,
        book: Book,
        hosts: Sequence[str],
        say: Callable[[str], None],
        selector: selectors.BaseSelector,
        spared: set[int],
    ) -> None:
        self._path, self._book = book.path, book
        self._hosts = hosts
        self._say = say
        self._selector = selector
        self._spared = spared
        self._errands: list[Errand] = []

    @property
    def due(self) -> float:
        """When there is something to do, on the monotonic clock."""
        return min((errand.due for errand in self._errands), default=inf)

    def tick(self, now: float) -> None:
        """Do it, if it is time."""
        for errand in self._errands:
            errand.tick(now)
        self._errands = [errand for errand in self._errands if not errand.over]

    def add(self, nodes: Sequence[tuple[int, str]]) -> None:
        """These nodes have shown these faults."""
        for node, why in nodes:
            if not why.startswith(LOST):
                self._say(f"node {node} ({self._hosts[node]}) is left out: {why}")
        self.keep(nodes)

    def keep(self, nodes: Sequence[tuple[int, str]]) -> None:
        """Write them down, if the user wants that; the user has been told of them."""
        if not (self._path and nodes):
            return
        now = wall_s()
        faults = tuple(Fault(self._book.name_of(self._hosts[node]), now, why, self._book.job) for node, why in nodes)
        work = partial(written, self._path, faults, now)
        self._errands.append(Errand(work, self._done, WRITE_S, self._selector, self._spared))

    def close(self) -> None:
        """Wait until the file is written."""
        for errand in self._errands:
            errand.finish()
        self._errands.clear()

    def _done(self, said: object) -> None:
        if said != "":
            self._say(str(said or f"keep the list of bad nodes in {self._path}: not done within {WRITE_S:g} s"))


def keep(book: Book, nodes: Sequence[tuple[str, str]], say: Callable[[str], None]) -> None:
    """Write down nodes, by their host names, and the reasons, where no agent runs; wait until that is done, or given up."""
    with selectors.DefaultSelector() as selector:
        bad = BadNodes(book, [host for host, _ in nodes], say, selector, set())
        bad.keep([(index, why) for index, (_, why) in enumerate(nodes)])
        bad.close()


def written(path: str, faults: Sequence[Fault], now_s: float) -> str:
    """Write them; why that was not possible, "" if it was."""
    from slaunch.errors import OutputError

    try:
        add(path, faults, now_s)
    except OutputError as error:
        return f"cannot {error.wanted}: {error.seen}"
    return ""
