"""Which CPUs each worker of a node runs on. Pure: the same on every node.

The rules of `auto`: physical cores with all their hardware threads; near the worker's device; cut at the borders of NUMA nodes
where there are enough workers to fill them, even when the shares then differ; never two workers on one core unless there are
fewer cores than workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from slaunch.errors import PlanError, UsageError
from slaunch.node.cpulist import parse, render
from slaunch.node.values import Device, NodeFacts

T = TypeVar("T")


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
        memory: NUMA nodes of these CPUs, ascending; () where unknown or not bound.
        notes: what the user may want to know, one line each.
    """

    cpus: tuple[tuple[int, ...], ...]
    threads: tuple[int, ...]
    memory: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...] = ()


def bind(facts: NodeFacts, devices: Sequence[Sequence[Device]], policy: str = "auto") -> Binding:
    """CPUs of each worker of a node whose agent starts them.

    Args:
        facts: the node's facts.
        devices: devices of each worker, by local rank; their number is the number of workers.
        policy: "auto", "numa" (as auto, but no worker reaches beyond one NUMA node), "core" (one core each, near its device),
            "none", "map:0-7,8-15" or "mask:0xff,0xff00" (one item for each worker).

    Raises:
        PlanError: there are fewer CPUs than workers, or a policy cannot be met on this node.
        UsageError: the policy is not understood, or names CPUs that this task may not use.
    """
    workers = len(devices)
    own = cores_of(facts.cores, facts.numa, facts.caches)
    if policy == "none":
        return unbound(own, workers)
    cores = own
    notes: tuple[str, ...] = ()
    if len(own) < workers and len(facts.reach) > len(own):
        cores = cores_of(facts.reach, facts.reach_numa, facts.reach_caches)
        notes = (
            f"{facts.host}: the launcher's mask {render(facts.cpus)} has fewer cores than the {workers} workers: "
            f"they use {render(cpus_of(cores))}",
        )
    kind, _, items = policy.partition(":")
    if kind in EXPLICIT:
        return bound(explicit(facts.host, cores, policy, EXPLICIT[kind](items, policy)[:workers], workers), notes)
    if kind not in SPLITS:
        raise UsageError("bind workers to CPUs", f"--bind={policy}", "use auto, numa, core, none, map:… or mask:…")
    if len(cpus_of(cores)) < workers:
        return too_few(facts, cores, workers, notes)
    shares = SPLITS[kind](cores, tuple(near(each, cores) for each in devices))
    return bound(shares, notes)


def keep(facts: NodeFacts) -> Binding:
    """The binding of a task that is its own worker: the scheduler's mask stays."""
    return unbound(cores_of(facts.cores, facts.numa, facts.caches), 1)


def cores_of(cpus: Sequence[tuple[int, ...]], numa: Sequence[int], caches: Sequence[int]) -> Chunk:
    """Cores from their columns; missing columns mean "unknown". Ordered by NUMA node, then CPU."""
    unknown = (-1,) * len(cpus)
    cores = (Core(*row) for row in zip(cpus, numa or unknown, caches or unknown, strict=True))
    return tuple(sorted(cores, key=lambda core: (core.numa, core.cpus)))


def cpus_of(cores: Sequence[Core]) -> tuple[int, ...]:
    """All CPUs of these cores, ascending."""
    return tuple(sorted(cpu for core in cores for cpu in core.cpus))


def unbound(own: Chunk, workers: int) -> Binding:
    """No binding; each worker's fair share of the cores is its number of threads."""
    return Binding(((),) * workers, (max(1, len(own) // max(1, workers)),) * workers, ((),) * workers)


def bound(shares: Sequence[Chunk], notes: tuple[str, ...]) -> Binding:
    """The binding that gives each worker its share."""
    return Binding(
        tuple(cpus_of(share) for share in shares),
        tuple(len(share) for share in shares),
        tuple(tuple(sorted({core.numa for core in share} - {-1})) for share in shares),
        notes,
    )


def too_few(facts: NodeFacts, cores: Chunk, workers: int, notes: tuple[str, ...]) -> Binding:
    """Fewer CPUs than workers: shared on a machine that has no more, an error where somebody keeps the rest from us."""
    mine = cpus_of(cores)
    if len(mine) >= facts.online:
        shared = f"{facts.host}: {workers} workers share {len(mine)} CPUs, not bound"
        return replace(unbound(cores, workers), notes=(*notes, shared))
    raise PlanError(
        f"bind {workers} workers on {facts.host}",
        f"this task may use the CPUs {render(mine)} only, of {facts.online} on the machine",
        "ask for more (srun --cpus-per-task=…, --cpu-bind=none, --exclusive), start fewer workers, or share them: --bind none",
    )


def near(devices: Sequence[Device], cores: Chunk) -> int:
    """The NUMA node of a worker's devices, if it is one and has cores for us; else -1: anywhere."""
    nodes = {device.numa for device in devices}
    node = nodes.pop() if len(nodes) == 1 else -1
    return node if any(core.numa == node for core in cores) else -1


def split_auto(cores: Chunk, wishes: Sequence[int]) -> tuple[Chunk, ...]:
    """Share out cores by NUMA node: `wishes` has each worker's node, or -1."""
    if len(wishes) == 1:
        return (cores,)
    domains = by_key(cores, lambda core: core.numa)
    if len(wishes) < len(domains) and all(wish < 0 for wish in wishes):
        return tuple(tuple(core for domain in group for core in domain) for group in deal(tuple(domains.values()), len(wishes)))
    homes = settle(domains, wishes)
    shares: dict[int, Chunk] = {}
    for node, domain in domains.items():
        tenants = [worker for worker, home in enumerate(homes) if home == node]
        shares.update(zip(tenants, cut(domain, len(tenants)), strict=True))
    return tuple(shares[worker] for worker in range(len(wishes)))


def split_numa(cores: Chunk, wishes: Sequence[int]) -> tuple[Chunk, ...]:
    """As `split_auto`, but each share is cut down to the NUMA node where most of it lies."""
    return tuple(one_node(share, wish) for share, wish in zip(split_auto(cores, wishes), wishes, strict=True))


def one_node(share: Chunk, wish: int) -> Chunk:
    """The part of a share that lies on the wished node, or else on the node where most of it lies."""
    parts = by_key(share, lambda core: core.numa)
    return parts[wish] if wish in parts else max(parts.values(), key=len)


def split_core(cores: Chunk, wishes: Sequence[int]) -> tuple[Chunk, ...]:
    """The first core of each share."""
    return tuple(share[:1] for share in split_numa(cores, wishes))


SPLITS: Mapping[str, Callable[[Chunk, Sequence[int]], tuple[Chunk, ...]]] = {
    "auto": split_auto,
    "numa": split_numa,
    "core": split_core,
}


def settle(domains: Mapping[int, Chunk], wishes: Sequence[int]) -> tuple[int, ...]:
    """A NUMA node for each worker: the wished one while it has a CPU left for him, else where a worker gets most cores."""
    tenants = dict.fromkeys(domains, 0)
    homes = []
    for wish in wishes:
        full = wish < 0 or tenants[wish] >= len(cpus_of(domains[wish]))
        homes.append(-1 if full else wish)
        if not full:
            tenants[wish] += 1
    for _ in range(homes.count(-1)):
        open_nodes = [node for node in domains if tenants[node] < len(cpus_of(domains[node]))]
        best = max(open_nodes, key=lambda node: (len(domains[node]) / (tenants[node] + 1), -node))
        tenants[best] += 1
    return fill(homes, tenants)


def fill(homes: Sequence[int], tenants: Mapping[int, int]) -> tuple[int, ...]:
    """Put the workers without a home, in order, on the nodes with room, in order."""
    room = (node for node, count in tenants.items() for _ in range(count - homes.count(node)))
    return tuple(next(room) if home < 0 else home for home in homes)


def cut(cores: Chunk, parts: int) -> tuple[Chunk, ...]:
    """Contiguous even parts of a NUMA node's cores: whole caches if they divide, else cores, else single hardware threads."""
    if parts == 0:
        return ()
    caches = tuple(by_key(cores, lambda core: core.cache).values())
    if len(caches) % parts == 0:
        return tuple(tuple(core for cache in group for core in cache) for group in deal(caches, parts))
    if len(cores) >= parts:
        return deal(cores, parts)
    threads = tuple(Core((cpu,), core.numa, core.cache) for core in cores for cpu in core.cpus)
    return deal(threads, parts)


def deal(items: Sequence[T], parts: int) -> tuple[tuple[T, ...], ...]:
    """Contiguous runs of `items`; the first ones are longer by one where the numbers do not divide."""
    size, longer = divmod(len(items), parts)
    cuts = [index * size + min(index, longer) for index in range(parts + 1)]
    return tuple(tuple(items[low:high]) for low, high in pairwise(cuts))


def by_key(cores: Chunk, key: Callable[[Core], int]) -> dict[int, Chunk]:
    """Cores grouped by a key, in the order of their first appearance."""
    groups: dict[int, Chunk] = {}
    for core in cores:
        groups[key(core)] = (*groups.get(key(core), ()), core)
    return groups


def explicit(host: str, cores: Chunk, policy: str, items: Sequence[frozenset[int]], workers: int) -> tuple[Chunk, ...]:
    """The user's own CPUs for each worker."""
    if len(items) < workers:
        seen = f"--bind={policy} has {len(items)} items for {workers} workers"
        raise UsageError("bind workers to CPUs", seen, "give one item for each worker")
    missing = frozenset().union(*items) - frozenset(cpus_of(cores))
    if missing:
        raise UsageError(
            f"bind workers to CPUs as --bind={policy} says",
            f"{host}: {render(missing)} are not among the CPUs of this task, {render(cpus_of(cores))}",
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
