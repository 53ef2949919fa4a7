"""What the modes with parameter servers have in common: roles, their numbers, their endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from slaunch.errors import PlanError, UsageError
from slaunch.node.values import NodeFacts, Wish
from slaunch.options import Options
from slaunch.plan.endpoints import join
from slaunch.plan.modes import Cast
from slaunch.plan.parts import here, idle
from slaunch.plan.values import NodePlan, Plan

TRAINER, SERVER, COORDINATOR, HETER = "trainer", "server", "coordinator", "heter"

Wanted = Sequence[tuple[str, int]]
"""Roles in the order of their local ranks, and how many of each a node has. A stage of mode ps_heter is the role "heter2" …"""

Lists = Sequence[tuple[str, Sequence[str]]]
"""Roles, and the endpoints of all their members, where the user fixes them."""


def wish_of(wanted: Wanted, lists: Lists, own: str, devices: bool) -> Wish:
    """What a node is asked for: the number of its workers, and their ports where endpoints are fixed."""
    if not lists:
        return Wish(workers=sum(count for _, count in wanted), devices=devices)
    ports = tuple(port_of(entry) for role, entries in lists for entry in entries if host_of(entry) in names_of(own))
    return Wish(workers=len(ports), ports=ports, devices=devices)


def names_of(own: str) -> tuple[str, ...]:
    """What this node may be called in lists."""
    return (own, "127.0.0.1", "localhost") if own.startswith("127.") or not own else (own,)


def host_of(endpoint: str) -> str:
    """The host of an endpoint, without brackets."""
    return endpoint.rpartition(":")[0].strip("[]")


def port_of(endpoint: str) -> int:
    """The port of an endpoint.

    Raises:
        UsageError: it has none.
    """
    text = endpoint.rpartition(":")[2]
    if text.isdecimal() and 0 < int(text) < 65536 and host_of(endpoint):
        return int(text)
    raise UsageError("read the endpoints of servers and trainers", f"{endpoint!r}", "write each as ip:port")


def cast_by_counts(facts: Sequence[NodeFacts], options: Options, wanted: Callable[[Options], Wanted]) -> tuple[Cast, ...]:
    """Every node has so many of each role as are `wanted` there; numbers count on from node to node.

    Raises:
        PlanError: a node has no worker at all, or the job no server, or no trainer.
    """
    casts = []
    before: dict[str, int] = {}
    for fact in facts:
        node = wanted(here(options, fact.component))
        if not any(count for _, count in node):
            raise idle(options, fact)
        pairs = [(role, before.get(role, 0) + index) for role, count in node for index in range(count)]
        casts.append(Cast(tuple(role for role, _ in pairs), tuple(number for _, number in pairs)))
        before.update({role: before.get(role, 0) + count for role, count in node})
    missing = [role for role in (SERVER, TRAINER) if not before.get(role)]
    if missing:
        todo = "give them workers in the file of --roles, on a component that takes part"
        raise PlanError("train with parameter servers", f"the job has no {' and no '.join(missing)}", todo)
    return tuple(casts)


def cast_by_lists(facts: Sequence[NodeFacts], lists: Lists) -> tuple[Cast, ...]:
    """Every node has the entries with its address; numbers are positions in the lists.

    Raises:
        PlanError: an entry belongs to no node, or a node has none.
    """
    places = [
        [(role, number, entry) for role, entries in lists for number, entry in enumerate(entries) if belongs(entry, fact)]
        for fact in facts
    ]
    homeless = {entry for _, entries in lists for entry in entries} - {entry for place in places for _, _, entry in place}
    idle = [fact.host for fact, place in zip(facts, places, strict=True) if not place]
    if homeless or idle:
        seen = f"no node has {', '.join(sorted(homeless))}" if homeless else f"no entry belongs to {', '.join(idle)}"
        raise PlanError("give every endpoint its node", seen, "list exactly the addresses of the job's nodes")
    return tuple(Cast(*map(tuple, zip(*place, strict=True))) for place in places)


def belongs(endpoint: str, fact: NodeFacts) -> bool:
    """Whether an endpoint is on this node."""
    ips = {address.ip for address in fact.addresses}
    return host_of(endpoint) in {fact.host, *(name for ip in ips for name in names_of(ip))}


@lru_cache(maxsize=16)
def members(plan: Plan, role: str) -> tuple[tuple[NodePlan, int], ...]:
    """(node, local rank) of every worker of a role, by its number."""
    found = [
        (node.numbers[local], index, local)
        for index, node in enumerate(plan.nodes)
        for local, played in enumerate(node.roles)
        if played == role
    ]
    return tuple((plan.nodes[index], local) for _, index, local in sorted(found))


@lru_cache(maxsize=16)
def endpoints_of(plan: Plan, role: str) -> str:
    """Endpoints of all workers of a role, comma-joined, by their number."""
    return ",".join(endpoint(node, local) for node, local in members(plan, role))


def endpoint(node: NodePlan, local: int) -> str:
    """Where a worker serves: as the user fixed it, else its node's address and its port."""
    return node.endpoints[local] if node.endpoints else join(node.address.ip, node.ports[local])


def counted(kind: str, listed: Iterable[str], number: int) -> None:
    """A list and a number of the same thing must agree.

    Raises:
        UsageError: they do not.
    """
    entries = tuple(listed)
    if entries and number and len(entries) != number:
        seen = f"{len(entries)} endpoints are listed, and the number is {number}"
        raise UsageError(f"know how many {kind} there are", seen, "leave one of them out")


def check_numbers(options: Options) -> None:
    """Lists and numbers of servers and trainers agree, and both lists are there or none."""
    counted("servers", options.servers, options.server_num)
    counted("trainers", options.trainers, options.trainer_num)
    if bool(options.servers) != bool(options.trainers):
        given, missing = ("--servers", "--trainers") if options.servers else ("--trainers", "--servers")
        raise UsageError(
            "place servers and trainers", f"{given} without {missing}", "give both lists, or --server_num and --trainer_num"
        )
