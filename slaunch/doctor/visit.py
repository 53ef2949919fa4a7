"""Examines the nodes of an allocation: one step over all of them, in which they look, connect to each other, and send."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
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
    absent: tuple[str, ...] = ()
    complaints, mpi = "", ""
    for start in range(STARTS):
        talk = Conversation(calls(order, absent, mpi))
        try:
            here = hello(talk, order, absent, deadline)
            if not talk.over or start == STARTS - 1:
                told = converse(talk, order, here, deadline)
                break
        finally:
            talk.close()
        complaints += talk.complaints
        if not talk.failed_nodes() and not any(word.startswith("--mpi") for word in order.extra):
            mpi = "none"
        absent = (*absent, *(node for node in talk.failed_nodes() if node not in absent))
    return replace(told, complaints=complaints + talk.complaints, plugin=mpi == "none" and bool(told.outcomes))


def calls(order: Order, absent: tuple[str, ...], mpi: str) -> list[StepCall]:
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


def hello(talk: Conversation, order: Order, absent: tuple[str, ...], deadline: float) -> list[str]:
    """The senders of those agents that have started."""
    until = min(deadline, time.monotonic() + START_S)
    return sorted(talk.ask({"do": "time"}, count_of(order) - len(absent), until))


def converse(talk: Conversation, order: Order, here: list[str], deadline: float) -> Visit:
    """Everything that the agents who are here can tell."""
    token = os.urandom(16).hex()

    def ask(asked: dict[str, Any], limit_s: float) -> dict[str, Answer]:
        return talk.ask(asked, len(here), min(deadline, time.monotonic() + limit_s)) if here else {}

    looked = ask({"do": "look", "request": asdict(order.request), "token": token}, LOOK_S)
    readings: dict[str, Reading] = {}
    for _ in range(CLOCKS):
        sent_s = time.time()
        for sender, answer in ask({"do": "time"}, TIME_S).items():
            if "time_s" in answer.value:
                node = node_of(sender)
                read = clocks.reading(sent_s, answer.value["time_s"], answer.heard_s)
                readings[node] = clocks.better(readings.get(node), read)
    seen = {sender: looked[sender].value for sender in placed(looked, order) if "outcomes" in looked[sender].value}
    rows = [[sender, seen[sender]["port"], seen[sender]["addresses"]] for sender in seen]
    reached = ask({"do": "reach", "nodes": rows, "credential": credential()}, REACH_S) if seen else {}
    told = {node_of(sender): answer.value for sender, answer in reached.items() if "failures" in answer.value}
    nodes = everybody(rows)
    nets = shared(nodes)
    good = working(nodes, [row[1] for value in told.values() for row in value["failures"]])
    rates = [] if order.request.quick or len(nodes) < 2 else measured(ask, len(nodes), good)
    return Visit(
        {node_of(sender): {name: outcome_of(each) for name, each in value["outcomes"].items()} for sender, value in seen.items()},
        readings,
        {node: value["failures"] for node, value in told.items()},
        len(nets),
        tuple(rates),
        {node: value["credential"] for node, value in told.items() if value["credential"]},
        missing(order, [node_of(sender) for sender in seen]),
        "",
        groups(order.shell),
    )


def working(nodes: Sequence[Neighbour], unreached: Sequence[str]) -> list[int]:
    """Numbers of the shared networks on which no address is unreached."""
    return [at for at, net in enumerate(shared(nodes)) if not any(each.way[net].ip in unreached for each in nodes)]


def measured(ask: Any, nodes: int, nets: Sequence[int]) -> list[Rate]:
    """Rates of all rounds on the first of these networks."""
    found: list[Rate] = []
    for net in nets[:NETS]:
        for shift in shifts(nodes):
            for sender, answer in ask({"do": "send", "shift": shift, "net": net}, SEND_S).items():
                value = answer.value
                if value.get("rate"):
                    found.append((node_of(sender), value["to"], value["card"], value["rate"]))
    return found


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


def missing(order: Order, here: list[str]) -> tuple[str, ...]:
    """Nodes of the job of which nothing came."""
    return tuple(node for node in order.shell.allocation.nodes if node not in here)
