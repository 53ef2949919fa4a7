"""Physical cores, and how they are shared out among workers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from slaunch.frozen import dataclass
from slaunch.node.values import NodeFacts

TYPE_CHECKING = False  # importing typing would cost 4 ms at each start

if TYPE_CHECKING:
    from typing import TypeVar

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


def cores_of(columns: Columns) -> Chunk:
    """Cores from their columns; missing columns mean "unknown". Ordered by NUMA node, then CPU."""
    cpus, numa, caches = columns
    unknown = (-1,) * len(cpus)
    cores = (Core(*row) for row in zip(cpus, numa or unknown, caches or unknown, strict=True))
    return tuple(sorted(cores, key=lambda core: (core.numa, core.cpus)))


def cpus_of(cores: Sequence[Core]) -> tuple[int, ...]:
    """All CPUs of these cores, ascending."""
    return tuple(sorted(cpu for core in cores for cpu in core.cpus))


def nodes_of(facts: NodeFacts, cpus: tuple[int, ...]) -> tuple[int, ...]:
    """NUMA nodes of these CPUs, ascending; those unknown to the system are left out."""
    node_of = nodes_by_cpu(facts.cores, facts.numa, facts.reach, facts.reach_numa)
    return tuple(sorted({node_of.get(cpu, -1) for cpu in cpus} - {-1}))


@lru_cache(maxsize=64)
def nodes_by_cpu(cores: Lists, numa: tuple[int, ...], reach: Lists, reach_numa: tuple[int, ...]) -> dict[int, int]:
    """NUMA node of each CPU; the same for all nodes that look alike."""
    columns = (*zip(reach, reach_numa, strict=False), *zip(cores, numa, strict=False))
    return {cpu: node for core, node in columns for cpu in core}


def split(kind: str, cores: Chunk, wishes: tuple[int, ...], near: Lists = ()) -> tuple[Chunk, ...]:
    """Share out cores: `wishes` has each worker's NUMA node, or `ANYWHERE`; `near` all NUMA nodes of its devices."""
    shares = apart(cores, near) or split_auto(cores, wishes)
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


def apart(cores: Chunk, near: Lists) -> tuple[Chunk, ...]:
    """Whole NUMA nodes for workers whose devices are on several, where no two workers' devices share a node; else ()."""
    domains = by_key(cores, lambda core: core.numa)
    nodes = [node for own in near for node in own]
    if len(near) < 2 or max(map(len, near)) < 2 or len(set(nodes)) < len(nodes) or not domains.keys() >= set(nodes):
        return ()
    return tuple(joined([domains[node] for node in own]) for own in near) if all(near) else ()


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
