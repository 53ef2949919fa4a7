"""Facts of nodes that were not asked, for `slaunch explain`."""

from __future__ import annotations

from slaunch.allocation.values import Shell, Task
from slaunch.frozen import replace
from slaunch.node.values import SPARE_PORTS, Address, NodeFacts
from slaunch.options import Options
from slaunch.plan.modes import find
from slaunch.plan.parts import here


def assume(standing: Task | Shell, facts: NodeFacts) -> tuple[NodeFacts, ...]:
    """One entry per task: every node is taken to be like this one, under its own host name, with ports 0 ("chosen at the start").

    Args:
        standing: where this process stands; its allocation tells the hosts, where the launcher does.
        facts: of this machine.
    """
    hosts, counts = places(standing)
    single = len(hosts) == 1
    return tuple(
        replace(
            facts,
            host=host or facts.host,
            machine=host or facts.machine,
            addresses=facts.addresses if single else (Address(host, "", 0),),
            ports=(0,) * (facts.workers + SPARE_PORTS),
            control_port=0,
            pid=0,
        )
        for host, count in zip(hosts, counts, strict=True)
        for _ in range(count)
    )


def as_components(standing: Task | Shell, options: Options, everyone: tuple[NodeFacts, ...]) -> tuple[NodeFacts, ...]:
    """The same, with the components that the nodes of a heterogeneous job's shell belong to, and the roles' workers there."""
    if isinstance(standing, Task) or not standing.shape.parts:
        return everyone
    indices = [index for index, part in enumerate(standing.shape.parts) for _ in range(part.nodes)]
    return tuple(placed(facts, index, options) for facts, index in zip(everyone, indices, strict=True))


def placed(facts: NodeFacts, component: int, options: Options) -> NodeFacts:
    """A node as one of that component."""
    workers = find(options.mode).wish(here(options, component), "").workers or facts.workers
    return replace(facts, component=component, workers=workers, ports=(0,) * (workers + SPARE_PORTS))


def places(standing: Task | Shell) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Hosts, and how many tasks each gets."""
    nodes = standing.allocation.nodes
    if isinstance(standing, Shell):
        hosts = nodes or tuple(f"node{index}" for index in range(standing.shape.nodes))
        hosts = hosts[: standing.shape.nodes]
        return hosts, (standing.shape.tasks_per_node,) * len(hosts)
    if nodes and len(standing.allocation.tasks_per_node) == len(nodes):
        return nodes, standing.allocation.tasks_per_node
    return ("",), (standing.slot.size,)
