"""CPUs of workers whose roles ask for a number of cores; the others share what is left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from slaunch.errors import PlanError
from slaunch.frozen import replace
from slaunch.node.values import Device, NodeFacts
from slaunch.plan.binding import EXPLICIT, MORE, Binding, bind, wish
from slaunch.plan.cores import Chunk, Core, cores_of, cpus_of


def bind_portions(
    facts: NodeFacts, devices: Sequence[Sequence[Device]], policy: str, cores: Sequence[int], tried: bool = False
) -> Binding:
    """CPUs of each worker of a node whose agent starts them.

    Args:
        facts: the node's facts.
        devices: devices of each worker, by local rank.
        policy: as for `bind`; one that names CPUs wins over the roles.
        cores: physical cores that each worker is to have; 0 = an even share of the rest.
        tried: the node stands for all components of a job that is only tried out: with too few cores, all share them evenly.

    Raises:
        PlanError: there are fewer cores than that takes.
        UsageError: the policy is not understood, or names CPUs that this task may not use.
    """
    if not any(cores) or policy.partition(":")[0] in EXPLICIT:
        return bind(facts, devices, policy)
    left = list(cores_of((facts.cores, facts.numa, facts.caches)))
    open_ended = sum(not number for number in cores)
    if sum(cores) + open_ended > len(left):
        if not tried:
            raise too_few(facts, cores, len(left))
        even = bind(facts, devices, policy)
        note = f"the roles ask for {sum(cores)} cores and more, and there are {len(left)}: all share them evenly"
        return replace(even, notes=(*even.notes, note))
    taken = {local: take(left, number, devices[local]) for local, number in enumerate(cores) if number}
    others = [local for local, number in enumerate(cores) if not number]
    rest = bind(narrowed(facts, left), [devices[local] for local in others], policy) if others else Binding((), ())
    cpus, threads = dict(zip(others, rest.cpus, strict=True)), dict(zip(others, rest.threads, strict=True))
    for local, share in taken.items():
        cpus[local], threads[local] = () if policy == "none" else cpus_of(share), len(share)
    order = range(len(cores))
    return Binding(tuple(cpus[local] for local in order), tuple(threads[local] for local in order), rest.notes)


def take(left: list[Core], number: int, devices: Sequence[Device]) -> Chunk:
    """Take so many cores out of those that are left, near the devices first."""
    near = wish(tuple({device.numa for device in devices}), tuple(left))
    chosen = sorted(left, key=lambda core: core.numa != near)[:number]
    for core in chosen:
        left.remove(core)
    return tuple(chosen)


def narrowed(facts: NodeFacts, left: Sequence[Core]) -> NodeFacts:
    """The facts of a node that has these cores only."""
    return replace(
        facts,
        cpus=cpus_of(left),
        cores=tuple(core.cpus for core in left),
        numa=tuple(core.numa for core in left),
        caches=tuple(core.cache for core in left),
        reach=(),
        reach_numa=(),
        reach_caches=(),
    )


def too_few(facts: NodeFacts, cores: Sequence[int], there: int) -> PlanError:
    """The error of roles that want more cores than there are."""
    more = sum(not number for number in cores)
    seen = f"the roles ask for {sum(cores)} cores, {more} more workers for one each at least, and it has {there}"
    todo = f"give the roles fewer cores, or {MORE.get(facts.binder, 'ask your launcher for more')}"
    return PlanError(f"share out the cores of node {facts.host}", seen, todo)
