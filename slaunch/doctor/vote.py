"""What should be the same on all nodes, and is not: the odd ones are named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from slaunch.allocation.hostlist import compress
from slaunch.doctor.values import Check, Facts, Finding, Trait

SHOWN = 4
"""Values of one trait that are told at most."""


def compare(check: Check, facts: Mapping[str, Facts]) -> list[Finding]:
    """One finding for each trait in which nodes differ.

    Args:
        check: whose traits.
        facts: what it saw, by node.
    """
    by_label: dict[str, dict[str, Trait]] = {}
    for node, seen in facts.items():
        for trait in check.traits(seen):
            by_label.setdefault(trait.label, {})[node] = trait
    return [difference(check, label, traits) for label, traits in by_label.items() if len({t.value for t in traits.values()}) > 1]


def difference(check: Check, label: str, traits: Mapping[str, Trait]) -> Finding:
    """How the nodes differ in one trait."""
    severity = next(iter(traits.values())).severity
    values = {node: trait.value for node, trait in traits.items()}
    usual, odd = majority(values)
    rest = compress(node for node in values if node not in odd)
    groups = [f"{value} on {compress(nodes)}" for value, nodes in grouped({node: values[node] for node in odd}).items()]
    more = [f"and {len(groups) - SHOWN} other values"] if len(groups) > SHOWN else []
    told = ", ".join(groups[:SHOWN] + more)
    seen = f"{label}: {told}" + (f"; {usual} on {rest}" if rest else "; no value is in the majority")
    return Finding(check.name, severity, seen, *check.differs, odd)


def majority(values: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The value that more than half of the nodes have, and the nodes that have another one; all of them if none has it."""
    usual, count = Counter(values.values()).most_common(1)[0]
    if 2 * count <= len(values):
        return None, tuple(values)
    return usual, tuple(node for node, value in values.items() if value != usual)


def grouped(values: Mapping[str, Any]) -> dict[Any, list[str]]:
    """Nodes by value, the commonest first."""
    found: dict[Any, list[str]] = {}
    for node, value in values.items():
        found.setdefault(value, []).append(node)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))
