"""What the user may want to know about a plan, in a few lines however many nodes it has."""

from __future__ import annotations

from slaunch.plan.values import Plan


def notes_of(plan: Plan) -> tuple[str, ...]:
    """Every different note of the nodes once, with the first of its nodes and the number of the others."""
    hosts: dict[str, list[str]] = {}
    for node in plan.nodes:
        for note in node.notes:
            hosts.setdefault(note, []).append(node.host)
    return tuple(f"{where(found)}: {note}" for note, found in hosts.items())


def where(hosts: list[str]) -> str:
    """The first of some hosts, and how many more there are."""
    more = len(hosts) - 1
    return hosts[0] + (f" and {more} other node{'s' if more > 1 else ''}" if more else "")
