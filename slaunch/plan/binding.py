"""Which CPUs each worker of a node runs on. Pure: the same on every node.

The rules of `auto`: physical cores with all their hardware threads; near the worker's device; cut at the borders of NUMA nodes
where there are enough workers to fill them, even when the shares then differ; never two workers on one core unless there are
fewer cores than workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from slaunch.errors import PlanError, SlaunchError, UsageError
from slaunch.frozen import dataclass, replace
from slaunch.node.cpulist import parse, render
from slaunch.node.values import Device, NodeFacts
from slaunch.plan.cores import ANYWHERE, Chunk, Columns, Lists, cores_of, cpus_of, split

MORE = {
    "srun": "ask for more with srun --cpus-per-task",
    "mpirun": "start it with mpirun --bind-to none",
    "mpiexec": "start it with mpiexec --cpu-bind none (PALS) or -bind-to none (Hydra)",
    "flux run": "ask for more with flux run --cores-per-task, or -o cpu-affinity=off",
}
"""What to do for more CPUs, by launcher."""


@dataclass(frozen=True)
class Limits:
    """What a task may use.

    Attributes:
        own: columns of its cores.
        reach: columns of all cores that the kernel grants, if these are more.
        online: number of CPUs of the machine.
        binder: the launcher that may have bound the task; "" if none.
    """

    own: Columns
    reach: Columns
    online: int
    binder: str


@dataclass(frozen=True)
class Binding:
    """CPUs of a node's workers, by local rank.

    Attributes:
        cpus: CPUs to bind to, ascending; () = leave as is.
        threads: physical cores that the worker has, at least 1: the number of threads its libraries should start.
        notes: what the user may want to know, one line each.
    """

    cpus: tuple[tuple[int, ...], ...]
    threads: tuple[int, ...]
    notes: tuple[str, ...] = ()


def bind(facts: NodeFacts, devices: Sequence[Sequence[Device]], policy: str = "auto") -> Binding:
    """CPUs of each worker of a node whose agent starts them.

    Args:
        facts: the node's facts.
        devices: devices of each worker, by local rank; their number is the number of workers.
        policy: "auto", "numa" (as auto, but no worker reaches beyond one NUMA node), "core" (one core each, near its device),
            "none", "map:0-7,8-15" or "mask:0xff,0xff00" (one item for each worker).

    Raises:
        PlanError: there are fewer CPUs than workers.
        UsageError: the policy is not understood, or names CPUs that this task may not use.
    """
    near = tuple(tuple(sorted({device.numa for device in own})) for own in devices)
    own, reach = (facts.cores, facts.numa, facts.caches), (facts.reach, facts.reach_numa, facts.reach_caches)
    try:
        return bind_alike(Limits(own, reach, facts.online, facts.binder), near, policy)
    except SlaunchError as error:
        raise type(error)(f"{error.wanted} on node {facts.host}", error.seen, error.todo) from None


@lru_cache(maxsize=64)
def bind_alike(limits: Limits, near: Lists, policy: str) -> Binding:
    """`bind` for all nodes that look alike: a plan of 16,000 nodes has few kinds of them.

    Args:
        limits: what the task may use.
        near: NUMA nodes of each worker's devices.
        policy: as for `bind`.
    """
    workers = len(near)
    kind, _, items = policy.partition(":")
    if kind not in POLICIES:
        raise UsageError("bind workers to CPUs", f"--bind={policy}", "use auto, numa, core, none, map:… or mask:…")
    own = cores_of(limits.own)
    if kind == "none":
        return unbound(own, workers)
    if kind in EXPLICIT:
        granted = cores_of(limits.reach) or own
        return bound(granted, explicit(granted, policy, EXPLICIT[kind](items, policy)[:workers], workers), ())
    cores, notes = offered(limits, own, workers)
    if sum(len(core.cpus) for core in cores) < workers:
        return shared(limits, cores, own, workers, notes)
    shares = split(kind, cores, tuple(wish(nodes, cores) for nodes in near), near)
    return bound(cores, shares, (*notes, *(idle(cores, shares) if kind == "auto" else ())))


def offered(limits: Limits, own: Chunk, workers: int) -> tuple[Chunk, tuple[str, ...]]:
    """The cores to share out: the task's own, or, where a launcher bound it to fewer than workers, all that it may (P39).

    A mask that no launcher made is the user's own wish, or his container's.
    """
    wide = cores_of(limits.reach)
    if len(own) > workers or len(wide) <= len(own) or not limits.binder:
        return own, ()
    note = f"{limits.binder}'s mask {render(cpus_of(own))} has {count(len(own), 'core')} for {count(workers, 'worker')}"
    todo = MORE.get(limits.binder, "ask your launcher for more")
    if len(own) == workers:
        return own, (f"{note}; {todo}",)
    return wide, (f"{note}: they use {render(cpus_of(wide))} instead; {todo} to be sure that no other job has these",)


def unbound(own: Chunk, workers: int) -> Binding:
    """No binding; each worker's fair share of the cores is its number of threads."""
    return Binding(((),) * workers, (max(1, len(own) // max(1, workers)),) * workers)


def bound(cores: Chunk, shares: Sequence[Chunk], notes: tuple[str, ...]) -> Binding:
    """The binding that gives each worker its share."""
    core_of = {cpu: index for index, core in enumerate(cores) for cpu in core.cpus}
    return Binding(
        tuple(cpus_of(share) for share in shares),
        tuple(len({core_of[core.cpus[0]] for core in share}) for share in shares),
        notes,
    )


def idle(cores: Chunk, shares: Sequence[Chunk]) -> tuple[str, ...]:
    """A word on cores that are left to nobody, since no worker's device is near them."""
    unused = set(cpus_of(cores)).difference(*map(cpus_of, shares))
    return (f"CPUs {render(unused)} are near no worker's device and stay idle; --bind none uses all",) if unused else ()


def shared(limits: Limits, cores: Chunk, own: Chunk, workers: int, notes: tuple[str, ...]) -> Binding:
    """Fewer CPUs than workers: all share them, except that a launcher can be asked for more."""
    mine = cpus_of(cores)
    if len(mine) < limits.online and limits.binder:
        raise PlanError(
            f"bind {workers} workers",
            f"this task may use the CPUs {render(mine)} only, of {limits.online} on the machine",
            f"{MORE.get(limits.binder, 'ask your launcher for more')}, start fewer workers, or let them share: --bind none",
        )
    everyone = replace(unbound(cores, workers), cpus=(() if cores == own else mine,) * workers)
    return replace(everyone, notes=(*notes, f"{workers} workers share {len(mine)} CPUs"))


def wish(nodes: Sequence[int], cores: Chunk) -> int:
    """The NUMA node of a worker's devices, if they have one and the same and it has cores for us; else `ANYWHERE`."""
    known = [node for node in nodes if node >= 0]
    node = known[0] if len(known) == 1 else ANYWHERE
    return node if any(core.numa == node for core in cores) else ANYWHERE


def explicit(cores: Chunk, policy: str, items: Sequence[frozenset[int]], workers: int) -> tuple[Chunk, ...]:
    """The user's own CPUs for each worker."""
    if len(items) < workers:
        seen = f"--bind={policy} has {len(items)} items for {workers} workers"
        raise UsageError("bind workers to CPUs", seen, "give one item for each worker")
    missing = frozenset().union(*items) - frozenset(cpus_of(cores))
    if not all(items):
        raise UsageError("bind workers to CPUs", f"--bind={policy} leaves a worker without a CPU", "give each worker one or more")
    if missing:
        raise UsageError(
            f"bind workers to CPUs as --bind={policy} says",
            f"{render(missing)} are not among the CPUs of this task, {render(cpus_of(cores))}",
            "name CPUs of that list, or use --bind auto",
        )
    return tuple(part(cores, item) for item in items)


def part(cores: Chunk, cpus: frozenset[int]) -> Chunk:
    """Those parts of the cores that lie in a set of CPUs."""
    hit = (core for core in cores if cpus.intersection(core.cpus))
    return tuple(replace(core, cpus=tuple(cpu for cpu in core.cpus if cpu in cpus)) for core in hit)


def filled(items: str) -> list[str]:
    """Items between commas, none of them empty."""
    found = items.split(",")
    if not all(found):
        raise ValueError("an item is empty")
    return found


def read_map(items: str, policy: str) -> tuple[frozenset[int], ...]:
    """CPUs or ranges, one for each worker: "0,8,16-23"."""
    try:
        return tuple(frozenset(parse(item)) for item in filled(items))
    except ValueError:
        raise UsageError("read the binding", f"--bind={policy}", "write CPUs or ranges, e.g. map:0-7,8-15") from None


def read_mask(items: str, policy: str) -> tuple[frozenset[int], ...]:
    """Hexadecimal masks, one for each worker: "0xff,0xff00"."""
    try:
        masks = [int(item, 16) for item in filled(items)]
    except ValueError:
        raise UsageError("read the binding", f"--bind={policy}", "write hexadecimal masks, e.g. mask:0xff,0xff00") from None
    return tuple(frozenset(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1) for mask in masks)


def count(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


EXPLICIT: Mapping[str, Callable[[str, str], tuple[frozenset[int], ...]]] = {"map": read_map, "mask": read_mask}
POLICIES = ("auto", "numa", "core", "none", *EXPLICIT)
