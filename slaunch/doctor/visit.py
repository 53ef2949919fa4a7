"""Examines the nodes of an allocation: one step over all of them, in which they look, connect to each other, and send."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from slaunch.allocation.values import Shell, StepCall, StepShape
from slaunch.doctor import clocks
from slaunch.doctor.agent import credential
from slaunch.doctor.clocks import Reading
from slaunch.doctor.conversation import Answer, Conversation
from slaunch.doctor.looks import outcome_of
from slaunch.doctor.reach import Neighbour, everybody
from slaunch.doctor.send import NETS, Rate, shared, shifts
from slaunch.doctor.values import Outcome, Request
from slaunch.frozen import asdict, dataclass, replace
from slaunch.selfcall import module_command
from slaunch.slurm.step import step_call

WHOLE_S = 56.0
START_S = 20.0
LOOK_S = 30.0
REACH_S = 8.0
SEND_S = 6.0
TIME_S = 2.0
CLOCKS = 3
"""Readings of each clock, of which the best counts."""
STARTS = 3
"""Tries to start the step: each without the nodes that failed before."""
OVERLAP = (20, 11, 0)
"""The first release with --overlap: older ones always overlap."""


@dataclass(frozen=True)
class Visit:
    """What the nodes told.

    Attributes:
        outcomes: by node and check.
        readings: clocks by node.
        failures: by node, as `reach.failures` gives them.
        shared: number of networks that all nodes are on.
        rates: see `send.Rate`.
        refused: what is wrong with the doctor's credential, by node.
        absent: nodes that did not start, or did not answer.
        complaints: srun's words of each start that failed, else of the last one.
        groups: nodes that should be alike: those of each component of the job.
        plugin: the step did not start with srun's default plug-in.
    """

    outcomes: Mapping[str, Mapping[str, Outcome]]
    readings: Mapping[str, Reading]
    failures: Mapping[str, list[list[str]]]
    shared: int
    rates: tuple[Rate, ...]
    refused: Mapping[str, str]
    absent: tuple[str, ...]
    complaints: str
    groups: tuple[tuple[str, ...], ...]
    plugin: bool = False


@dataclass(frozen=True)
class Order:
    """What is to be examined, where: the shell of the job, its environment, further srun arguments, and Slurm's version."""

    shell: Shell
    env: Mapping[str, str]
    request: Request
    extra: tuple[str, ...]
    version: tuple[int, int, int]


def visit(order: Order) -> Visit:
    """Examine all nodes that can be reached, in less than a minute."""
    deadline = time.monotonic() + WHOLE_S
    absent: list[str] = []
    complaints, mpi, told = "", "", nothing(order)
    for _ in range(STARTS):
        talk = Conversation(calls(order, absent, mpi))
        try:
            here = talk.ask({"do": "time"}, min(deadline, time.monotonic() + START_S), count_of(order) - len(absent))
            if not talk.over:
                told = Examination(talk, order, list(here), deadline).run()
        finally:
            talk.close()
        complaints += talk.complaints
        failed = [node for node in talk.failed_nodes() if node not in absent]
        if told.outcomes or not (failed or may_change_plugin(order, mpi)):
            break
        mpi = mpi if failed else "none"
        absent += failed
    return replace(told, complaints=complaints, plugin=mpi == "none" and bool(told.outcomes))


def may_change_plugin(order: Order, mpi: str) -> bool:
    """Whether the next start can be without srun's default plug-in."""
    return not mpi and not any(word.startswith("--mpi") for word in order.extra)


def nothing(order: Order) -> Visit:
    """A visit that nobody answered."""
    return Visit({}, {}, {}, 0, (), {}, missing(order, ()), "", groups(order.shell))


def calls(order: Order, absent: Sequence[str], mpi: str) -> list[StepCall]:
    """The step's command, without nodes that failed; in a job of several components one for each, and there with all nodes."""
    overlap = ("--overlap",) if order.version >= OVERLAP else ()
    out = (f"--exclude={','.join(absent)}",) if absent and not order.shell.shape.het_groups else ()
    extra = ("--input=all", f"--immediate={START_S:.0f}", *overlap, *out, *order.extra)
    inner = module_command("slaunch.doctor.agent")
    shells = [replace(order.shell, shape=shape) for shape in shapes(order.shell.shape, len(absent))]
    return [step_call(shell, order.env, inner, extra, mpi) for shell in shells]


def shapes(shape: StepShape, fewer: int) -> list[StepShape]:
    """The shapes of the steps."""
    if not shape.het_groups:
        return [replace(shape, nodes=max(1, shape.nodes - fewer))]
    return [
        replace(shape, nodes=part.nodes, het_groups=(group,), parts=(part,))
        for group, part in zip(shape.het_groups, shape.parts, strict=True)
    ]


def count_of(order: Order) -> int:
    """Number of nodes of the job."""
    parts = order.shell.shape.parts or (order.shell.shape,)
    return sum(part.nodes for part in parts)


class Examination:
    """What is asked of the agents of a step, one thing after the other. Who does not answer in time is not waited for again."""

    def __init__(self, talk: Conversation, order: Order, here: list[str], deadline: float) -> None:
        self._talk = talk
        self._order = order
        self._here = here
        self._deadline = deadline

    def run(self) -> Visit:
        """Everything that the agents who are here can tell."""
        looked = self._look()
        readings = self._read_clocks()
        rows = [[sender, told["port"], told["addresses"]] for sender, told in looked.items()]
        reached = self._ask({"do": "reach", "nodes": rows, "credential": credential()}, REACH_S)
        failures = {node_of(sender): answer.value["failures"] for sender, answer in reached.items()}
        refused = {node_of(sender): answer.value["credential"] for sender, answer in reached.items()}
        nodes = everybody(rows)
        return Visit(
            {node_of(sender): outcomes_of(told["outcomes"]) for sender, told in looked.items()},
            readings,
            failures,
            len(shared(nodes)),
            tuple(self._measure(nodes, [row[1] for rows in failures.values() for row in rows])),
            {node: error for node, error in refused.items() if error},
            missing(self._order, [node_of(sender) for sender in looked]),
            "",
            groups(self._order.shell),
        )

    def _ask(self, asked: dict[str, Any], limit_s: float) -> dict[str, Answer]:
        """The answers of those who are still here."""
        if not self._here:
            return {}
        until = min(self._deadline, time.monotonic() + limit_s)
        answers = self._talk.ask(asked, until, senders=self._here)
        self._here = list(answers)
        return answers

    def _look(self) -> dict[str, dict[str, Any]]:
        """What the checks saw, in the order of the job's nodes."""
        token = os.urandom(16).hex()
        looked = self._ask({"do": "look", "request": asdict(self._order.request), "token": token}, LOOK_S)
        return {sender: looked[sender].value for sender in placed(looked, self._order)}

    def _read_clocks(self) -> dict[str, Reading]:
        """The best of several readings of each clock."""
        readings: dict[str, Reading] = {}
        for _ in range(CLOCKS):
            sent_s = time.time()
            for sender, answer in self._ask({"do": "time"}, TIME_S).items():
                node, read = node_of(sender), clocks.reading(sent_s, answer.value["time_s"], answer.heard_s)
                readings[node] = clocks.better(readings.get(node), read)
        return readings

    def _measure(self, nodes: Sequence[Neighbour], unreached: Sequence[str]) -> Iterator[Rate]:
        """Rates of all rounds on the first networks that work."""
        nets = [] if self._order.request.quick or len(nodes) < 2 else working(nodes, unreached)[:NETS]
        for net, shift in ((net, shift) for net in nets for shift in shifts(len(nodes))):
            for sender, answer in self._ask({"do": "send", "shift": shift, "net": net}, SEND_S).items():
                if answer.value["rate"]:
                    yield node_of(sender), answer.value["to"], answer.value["card"], answer.value["rate"]


def outcomes_of(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
    """Outcomes by check."""
    return {name: outcome_of(each) for name, each in told.items()}


def working(nodes: Sequence[Neighbour], unreached: Sequence[str]) -> list[int]:
    """Numbers of the shared networks on which no address is unreached."""
    return [at for at, net in enumerate(shared(nodes)) if not any(each.way[net].ip in unreached for each in nodes)]


def placed(senders: Iterable[str], order: Order) -> list[str]:
    """Senders in the order of the job's nodes."""
    places = {node: at for at, node in enumerate(order.shell.allocation.nodes)}
    return sorted(senders, key=lambda sender: (places.get(node_of(sender), len(places)), sender))


def node_of(sender: str) -> str:
    """The node of an agent."""
    return sender.rpartition(":")[0]


def groups(shell: Shell) -> tuple[tuple[str, ...], ...]:
    """Nodes by component, which are numbered one component after the other."""
    found, start = [], 0
    for part in shell.shape.parts or (shell.shape,):
        found.append(shell.allocation.nodes[start : start + part.nodes])
        start += part.nodes
    return tuple(found)


def missing(order: Order, here: Sequence[str]) -> tuple[str, ...]:
    """Nodes of the job of which nothing came."""
    return tuple(node for node in order.shell.allocation.nodes if node not in here)
