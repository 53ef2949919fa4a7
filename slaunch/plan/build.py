"""From everybody's facts to the plan. Pure: every node computes the same one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from slaunch.allocation.values import Allocation
from slaunch.errors import PlanError
from slaunch.frozen import dataclass, replace
from slaunch.node.values import SPARE_PORTS, Address, NodeFacts
from slaunch.options import Options
from slaunch.plan.binding import Binding
from slaunch.plan.commands import check_commands
from slaunch.plan.devices import Shares, shares_of_node, shares_of_tasks
from slaunch.plan.digest import digest
from slaunch.plan.endpoints import choose
from slaunch.plan.memory import Memory, of_node, of_tasks
from slaunch.plan.modes import Cast, check_layout, contracts_of, find
from slaunch.plan.nics import Cards, cards_of
from slaunch.plan.parts import Owners, devices_wanted, owners, tried, with_ranks
from slaunch.plan.portions import bind_portions
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
    firsts = [machine.tasks[0] for machine in machines]
    addresses = choose(firsts, options.network)
    casts = mode.cast(firsts, options)
    ranks = tuple(machine.ranks for machine in machines) if layout == "task" else _block_wise(firsts)
    owned, commands = _owned(firsts, ranks, casts, options, commands)
    share_out = _as_tasks if layout == "task" else _as_agents
    nodes = _with_parts(tuple(share_out(machines, addresses, options, ranks, owned)), casts)
    world = sum(map(len, ranks))
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


def _block_wise(firsts: Sequence[NodeFacts]) -> tuple[tuple[int, ...], ...]:
    """Ranks of each node in layout "agent": as many workers on a node as its agent wants, node after node."""
    counts = [_workers(facts) for facts in firsts]
    starts = accumulate(counts, initial=0)
    return tuple(tuple(range(start, start + count)) for start, count in zip(starts, counts, strict=False))


def _owned(
    firsts: Sequence[NodeFacts],
    ranks: Sequence[tuple[int, ...]],
    casts: Sequence[Cast],
    options: Options,
    commands: tuple[Command, ...],
) -> tuple[tuple[Owners, ...], tuple[Command, ...]]:
    """The user's role of each worker of each node, and the roles' commands with all their ranks."""
    if not options.parts:
        return ((),) * len(firsts), commands
    known = frozenset(role for cast in casts for role in cast.roles)
    nodes = zip(firsts, ranks, casts, strict=True)
    owned = tuple(owners(options, facts, own, cast.roles, known) for facts, own, cast in nodes)
    whose = {rank: part for own, parts in zip(ranks, owned, strict=True) for rank, part in zip(own, parts, strict=True)}
    return owned, with_ranks(commands, options, whose, known)


def _as_agents(
    machines: Sequence[Machine],
    addresses: Sequence[Address],
    options: Options,
    ranks: Sequence[tuple[int, ...]],
    owned: Sequence[Owners],
) -> Iterator[NodePlan]:
    """Layout "agent": the agent starts the workers and shares out the node's devices and CPUs."""
    for machine, address, own, parts in zip(machines, addresses, ranks, owned, strict=True):
        facts = machine.tasks[0]
        count = len(own)
        dealt = shares_of_node(facts, options, devices_wanted(parts, facts))
        cores = [part.cores if part else 0 for part in parts]
        bound = bind_portions(facts, dealt[0], options.bind, cores, tried(parts, facts))
        memory = of_node(facts, bound.cpus, options.bind_memory)
        cards = cards_of((facts,) * count, dealt[0], bound.cpus, options.nics)
        yield _node(machine, address, own, facts.ports[:count], dealt, bound, memory, cards)


def _as_tasks(
    machines: Sequence[Machine],
    addresses: Sequence[Address],
    options: Options,
    ranks: Sequence[tuple[int, ...]],
    owned: Sequence[Owners],
) -> Iterator[NodePlan]:
    """Layout "task": the tasks are the workers, with the CPUs that the scheduler gave them."""
    for machine, address, own, parts in zip(machines, addresses, ranks, owned, strict=True):
        _check_count(machine, options)
        ports = tuple(_ports(task, 1)[0] for task in machine.tasks)
        dealt = shares_of_tasks(machine.tasks, options, devices_wanted(parts, machine.tasks[0]))
        bound = threads_of_tasks(machine.tasks)
        if any(part is not None and part.cores for part in parts):
            bound = replace(bound, notes=(*bound.notes, "cores of roles are left aside: each task has the CPUs it was given"))
        memory = of_tasks(machine.tasks, options.bind_memory)
        cards = cards_of(machine.tasks, dealt[0], bound.cpus, options.nics)
        yield _node(machine, address, own, ports, dealt, bound, memory, cards)


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
