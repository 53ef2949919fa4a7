"""Which CPUs each worker of a node runs on. Pure: the same on every node.

The rules of `auto`: physical cores with all their hardware threads; near the worker's device; cut at the borders of NUMA nodes
where there are enough workers to fill them, even when the shares then differ; never two workers on one core unless there are
fewer cores than workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from slaunch.errors import PlanError, SlaunchError, UsageError
from slaunch.frozen import dataclass, replace
from slaunch.node.cpulist import parse, render
from slaunch.node.values import Device, NodeFacts

T = TypeVar("T")
Lists = tuple[tuple[int, ...], ...]
Columns = tuple[Lists, tuple[int, ...], tuple[int, ...]]
"""CPUs, NUMA node and cache of each core."""

ANYWHERE = -2
"""A worker's wish for a NUMA node where it has none; -1 is the node of cores whose node is unknown."""


@dataclass(frozen=True)
class Core:
    """A physical core: its usable CPUs, its NUMA node and its last-level cache (-1 if unknown)."""

    cpus: tuple[int, ...]
    numa: int = -1
    cache: int = -1


Chunk = tuple[Core, ...]


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
        made = bind_alike(own, reach, facts.online, near, policy)
    except SlaunchError as error:
        raise type(error)(f"{error.wanted} on node {facts.host}", error.seen, error.todo) from None
    return replace(made, notes=tuple(f"{facts.host}: {note}" for note in made.notes)) if made.notes else made


@lru_cache(maxsize=64)
def bind_alike(own: Columns, reach: Columns, online: int, near: Lists, policy: str) -> Binding:
    """`bind` for all nodes that look alike: a plan of 16,000 nodes has few kinds of them.

    Args:
        own, reach: columns of the task's cores, and of those that the kernel grants beyond them.
        online: number of CPUs of the machine.
        near: NUMA nodes of each worker's devices.
        policy: as for `bind`.
    """
    workers = len(near)
    kind, _, items = policy.partition(":")
    if kind not in POLICIES:
        raise UsageError("bind workers to CPUs", f"--bind={policy}", "use auto, numa, core, none, map:… or mask:…")
    if kind == "none":
        return unbound(cores_of(own), workers)
    cores, notes = offered(cores_of(own), cores_of(reach), workers)
    if kind in EXPLICIT:
        return bound(cores, explicit(cores, policy, EXPLICIT[kind](items, policy)[:workers], workers), notes)
    if sum(len(core.cpus) for core in cores) < workers:
        return too_few(cores, cores == cores_of(own), online, workers, notes)
    shares = split(kind, cores, tuple(wish(nodes, cores) for nodes in near))
    return bound(cores, shares, (*notes, *(idle(cores, shares) if kind == "auto" else ())))


def offered(own: Chunk, wide: Chunk, workers: int) -> tuple[Chunk, tuple[str, ...]]:
    """The cores to share out: the task's own, or all that the kernel grants where these are fewer than workers (P39)."""
    if len(own) > workers or len(wide) <= len(own):
        return own, ()
    note = f"srun's mask {render(cpus_of(own))} leaves {len(own)} cores to {workers} workers"
    todo = "ask for more with srun --cpus-per-task"
    if len(own) == workers:
        return own, (f"{note}; {todo}",)
    return wide, (f"{note}: they use {render(cpus_of(wide))} instead; {todo} to be sure that no other job has these",)


def cores_of(columns: Columns) -> Chunk:
    """Cores from their columns; missing columns mean "unknown". Ordered by NUMA node, then CPU."""
    cpus, numa, caches = columns
    unknown = (-1,) * len(cpus)
    cores = (Core(*row) for row in zip(cpus, numa or unknown, caches or unknown, strict=True))
    return tuple(sorted(cores, key=lambda core: (core.numa, core.cpus)))


def cpus_of(cores: Sequence[Core]) -> tuple[int, ...]:
    """All CPUs of these cores, ascending."""
    return tuple(sorted(cpu for core in cores for cpu in core.cpus))


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


def too_few(cores: Chunk, own: bool, online: int, workers: int, notes: tuple[str, ...]) -> Binding:
    """Fewer CPUs than workers: shared on a machine that has no more, an error where somebody keeps the rest from us."""
    mine = cpus_of(cores)
    if len(mine) >= online:
        everyone = replace(unbound(cores, workers), cpus=(() if own else mine,) * workers)
        return replace(everyone, notes=(*notes, f"{workers} workers share {len(mine)} CPUs"))
    raise PlanError(
        f"bind {workers} workers",
        f"this task may use the CPUs {render(mine)} only, of {online} on the machine",
        "ask for more (srun --cpus-per-task=…, --cpu-bind=none, --exclusive), start fewer workers, or share them: --bind none",
    )


def wish(nodes: Sequence[int], cores: Chunk) -> int:
    """The NUMA node of a worker's devices, if they have one and the same and it has cores for us; else `ANYWHERE`."""
    known = [node for node in nodes if node >= 0]
    node = known[0] if len(known) == 1 else ANYWHERE
    return node if any(core.numa == node for core in cores) else ANYWHERE


def split(kind: str, cores: Chunk, wishes: tuple[int, ...]) -> tuple[Chunk, ...]:
    """Share out cores: `wishes` has each worker's NUMA node, or `ANYWHERE`."""
    shares = split_auto(cores, wishes)
    if kind != "auto":
        shares = tuple(one_node(share, node) for share, node in zip(shares, wishes, strict=True))
    return tuple(share[:1] for share in shares) if kind == "core" else shares


def split_auto(cores: Chunk, wishes: Sequence[int]) -> tuple[Chunk, ...]:
    """Whole NUMA nodes for few workers that may be anywhere; else every worker on one node, which its tenants share evenly."""
    domains = by_key(cores, lambda core: core.numa)
    anywhere = all(wish == ANYWHERE for wish in wishes)
    if len(wishes) == 1 or (anywhere and len(wishes) < len(domains)):
        return tuple(joined(group) for group in deal(tuple(domains.values()), len(wishes)))
    homes = settle(domains, wishes)
    shares: dict[int, Chunk] = {}
    for node, domain in domains.items():
        tenants = [worker for worker, home in enumerate(homes) if home == node]
        shares.update(zip(tenants, cut(domain, len(tenants)), strict=True))
    return tuple(shares[worker] for worker in range(len(wishes)))


def one_node(share: Chunk, wish: int) -> Chunk:
    """The part of a share that lies on the wished node, or else on the node where most of it lies."""
    parts = by_key(share, lambda core: core.numa)
    return parts[wish] if wish in parts else max(parts.values(), key=len)


def settle(domains: Mapping[int, Chunk], wishes: Sequence[int]) -> tuple[int, ...]:
    """A NUMA node for each worker: the wished one while it has a CPU left for him, else where a worker gets most cores."""
    room = {node: sum(len(core.cpus) for core in domain) for node, domain in domains.items()}
    tenants = dict.fromkeys(domains, 0)
    homes = []
    for wish in wishes:
        fits = wish != ANYWHERE and tenants[wish] < room[wish]
        homes.append(wish if fits else ANYWHERE)
        tenants[homes[-1]] = tenants.get(homes[-1], 0) + 1
    homeless = tenants.pop(ANYWHERE, 0)
    guests = dict.fromkeys(domains, 0)
    for _ in range(homeless):
        vacant = [node for node in domains if tenants[node] + guests[node] < room[node]]
        best = max(vacant, key=lambda node: (len(domains[node]) / (tenants[node] + guests[node] + 1), -node))
        guests[best] += 1
    places = (node for node, count in guests.items() for _ in range(count))
    return tuple(next(places) if home == ANYWHERE else home for home in homes)


def cut(cores: Chunk, parts: int) -> tuple[Chunk, ...]:
    """Contiguous even parts of a NUMA node's cores: whole caches if they divide, else cores, else single hardware threads."""
    if parts == 0:
        return ()
    caches = tuple(by_key(cores, lambda core: core.cache).values())
    if len(caches) % parts == 0:
        return tuple(joined(group) for group in deal(caches, parts))
    if len(cores) >= parts:
        return deal(cores, parts)
    return deal(tuple(Core((cpu,), core.numa, core.cache) for core in cores for cpu in core.cpus), parts)


def deal(items: Sequence[T], parts: int) -> tuple[tuple[T, ...], ...]:
    """Contiguous runs of `items`; the first ones are longer by one where the numbers do not divide."""
    size, longer = divmod(len(items), parts)
    cuts = [index * size + min(index, longer) for index in range(parts + 1)]
    return tuple(tuple(items[low:high]) for low, high in pairwise(cuts))


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk of several."""
    return tuple(core for chunk in chunks for core in chunk)


def by_key(cores: Chunk, key: Callable[[Core], int]) -> dict[int, Chunk]:
    """Cores grouped by a key, in the order of their first appearance."""
    groups: dict[int, list[Core]] = {}
    for core in cores:
        groups.setdefault(key(core), []).append(core)
    return {name: tuple(group) for name, group in groups.items()}


def explicit(cores: Chunk, policy: str, items: Sequence[frozenset[int]], workers: int) -> tuple[Chunk, ...]:
    """The user's own CPUs for each worker."""
    if len(items) < workers:
        seen = f"--bind={policy} has {len(items)} items for {workers} workers"
        raise UsageError("bind workers to CPUs", seen, "give one item for each worker")
    missing = frozenset().union(*items) - frozenset(cpus_of(cores))
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


EXPLICIT: Mapping[str, Callable[[str, str], tuple[frozenset[int], ...]]] = {"map": read_map, "mask": read_mask}
POLICIES = ("auto", "numa", "core", "none", *EXPLICIT)
