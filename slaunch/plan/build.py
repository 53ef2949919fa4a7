"""From everybody's facts to the plan. Pure: every node computes the same one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slaunch.allocation.values import Allocation
from slaunch.errors import PlanError
from slaunch.frozen import dataclass, replace
from slaunch.node.values import SPARE_PORTS, Address, NodeFacts
from slaunch.options import Options
from slaunch.plan.binding import Binding, bind
from slaunch.plan.commands import check_commands
from slaunch.plan.devices import Shares, shares_of_node, shares_of_tasks
from slaunch.plan.digest import digest
from slaunch.plan.endpoints import choose
from slaunch.plan.memory import Memory, of_node, of_tasks
from slaunch.plan.modes import Cast, check_layout, contracts_of, find
from slaunch.plan.nics import Cards, cards_of
from slaunch.plan.threads import threads_of_tasks
from slaunch.plan.values import Command, NodePlan, Plan
from slaunch.rendezvous.values import Membership


@dataclass(frozen=True)
class Machine:
    """The tasks that run on one machine, by task rank ascending: their position here is the local rank in layout "task"."""

    index: int
    ranks: tuple[int, ...]
    tasks: tuple[NodeFacts, ...]


def build(  # noqa: PLR0917 - every stage's result, in the order of the stages
    membership: Membership,
    options: Options,
    allocation: Allocation,
    argv: tuple[str, ...],
    job: str = "",
    log_dir: str = "",
    attempt: int = 0,
    commands: tuple[Command, ...] = (),
) -> Plan:
    """Decide who runs what, where.

    Where any machine has more than one task, each task becomes its worker (layout "task"): its global rank is its task rank,
    however the scheduler spread them. Else each task is its node's agent (layout "agent") and starts the workers of that node;
    ranks are consecutive per node, in node order. Nodes are in order of the lowest task rank on them. Their counts may differ;
    they form one world (P48: which never comes from visible devices).

    Args:
        membership: everybody's facts.
        options: what the user asked for.
        allocation: what the scheduler gave.
        argv: command of each worker.
        job: the job's name; "" = the user's, else the scheduler's.
        log_dir: absolute directory of the logs; not used in layout "task".
        attempt: 0 at first, one more at each restart.
        commands: commands by rank where not all workers run `argv`.

    Raises:
        PlanError: if the facts do not allow a valid plan.
        DeviceError: if a node has fewer devices than workers.
    """
    machines = group(membership.facts)
    layout = "task" if any(len(machine.tasks) > 1 for machine in machines) else "agent"
    mode = find(options.mode)
    check_layout(mode, layout)
    addresses = choose([machine.tasks[0] for machine in machines], options.network)
    nodes = tuple(_as_tasks(machines, addresses, options) if layout == "task" else _as_agents(machines, addresses, options))
    nodes = _with_parts(nodes, mode.cast([machine.tasks[0] for machine in machines], options))
    world = sum(len(node.ranks) for node in nodes)
    check_commands(commands, world)
    plan = Plan(
        job=job or options.job_id or allocation.job or "slaunch",
        attempt=attempt,
        mode=options.mode,
        layout=layout,
        world=world,
        nodes=nodes,
        argv=argv,
        contracts=contracts_of(mode, options),
        log_dir=log_dir if layout == "agent" else "",
        digest="",
        commands=commands,
    )
    return replace(plan, digest=digest(plan))


def _with_parts(nodes: tuple[NodePlan, ...], casts: Sequence[Cast]) -> tuple[NodePlan, ...]:
    """The nodes with their workers' roles."""
    return tuple(
        replace(node, roles=cast.roles, numbers=cast.numbers, endpoints=cast.endpoints) if cast.roles else node
        for node, cast in zip(nodes, casts, strict=True)
    )


def group(facts: Sequence[NodeFacts]) -> tuple[Machine, ...]:
    """The tasks by machine, in order of the lowest task rank on it."""
    members: dict[str, list[int]] = {}
    for rank, fact in enumerate(facts):
        members.setdefault(fact.machine, []).append(rank)
    return tuple(
        Machine(index, tuple(ranks), tuple(facts[rank] for rank in ranks)) for index, ranks in enumerate(members.values())
    )


def _as_agents(machines: Sequence[Machine], addresses: Sequence[Address], options: Options) -> Iterator[NodePlan]:
    """Layout "agent": block-wise ranks, as many workers on a node as its agent wants."""
    first = 0
    for machine, address in zip(machines, addresses, strict=True):
        facts = machine.tasks[0]
        count = _workers(facts)
        ranks = tuple(range(first, first + count))
        dealt = shares_of_node(facts, options)
        bound = bind(facts, dealt[0], options.bind)
        memory = of_node(facts, bound.cpus, options.bind_memory)
        cards = cards_of((facts,) * count, dealt[0], bound.cpus, options.nics)
        yield _node(machine, address, ranks, facts.ports[:count], dealt, bound, memory, cards)
        first += count


def _as_tasks(machines: Sequence[Machine], addresses: Sequence[Address], options: Options) -> Iterator[NodePlan]:
    """Layout "task": the tasks are the workers."""
    for machine, address in zip(machines, addresses, strict=True):
        _check_count(machine, options)
        ports = tuple(_ports(task, 1)[0] for task in machine.tasks)
        dealt = shares_of_tasks(machine.tasks, options)
        bound = threads_of_tasks(machine.tasks)
        memory = of_tasks(machine.tasks, options.bind_memory)
        cards = cards_of(machine.tasks, dealt[0], bound.cpus, options.nics)
        yield _node(machine, address, machine.ranks, ports, dealt, bound, memory, cards)


def _node(  # noqa: PLR0917 - one value each from address choice, ranks, ports, devices, CPUs, memory and cards
    machine: Machine,
    address: Address,
    ranks: tuple[int, ...],
    ports: tuple[int, ...],
    dealt: Shares,
    bound: Binding,
    memory: Memory,
    cards: Cards,
) -> NodePlan:
    facts = machine.tasks[0]
    return NodePlan(
        index=machine.index,
        host=facts.host,
        address=address,
        first_rank=ranks[0],
        ranks=ranks,
        ports=ports,
        spare_ports=facts.ports[-SPARE_PORTS:],
        devices=dealt[0],
        cpus=bound.cpus,
        threads=bound.threads,
        visible=facts.visible,
        views=dealt[1],
        notes=facts.notes + bound.notes + memory.notes,
        memory=memory.nodes,
        memory_policy=memory.policy,
        nics=cards.near,
        nic_env=cards.env,
    )


def _workers(facts: NodeFacts) -> int:
    """How many workers an agent starts."""
    if facts.workers < 1:
        raise PlanError(
            f"start workers on node {facts.host}", f"{facts.workers} workers wanted there", "give --nproc_per_node 1 or more"
        )
    _ports(facts, facts.workers)
    return facts.workers


def _ports(facts: NodeFacts, workers: int) -> tuple[int, ...]:
    if len(facts.ports) < workers + SPARE_PORTS:
        raise PlanError(
            f"give {workers} workers on node {facts.host} a port each, and {SPARE_PORTS} more to the job's masters",
            f"{len(facts.ports)} ports reserved there",
            "run the same slaunch version on all nodes",
        )
    return facts.ports


def _check_count(machine: Machine, options: Options) -> None:
    """`--nproc_per_node` must say what the scheduler did (P15)."""
    tasks = len(machine.tasks)
    if options.nproc_per_node not in (0, tasks):
        raise PlanError(
            f"run {options.nproc_per_node} workers per node",
            f"--nproc_per_node {options.nproc_per_node}, but the scheduler started {tasks} tasks on node "
            f"{machine.tasks[0].host}, and where a node has several tasks each one is a worker",
            "leave --nproc_per_node out, or start one task per node",
        )
