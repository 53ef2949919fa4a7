"""Which nodes begin, and what is said of those that wait."""

from __future__ import annotations

from support.plans import facts, options, plan

from slaunch.launch import first_of, waiting
from slaunch.rendezvous.values import Membership


def met(machines: list[int], rank: int = 0) -> Membership:
    everyone = tuple(facts(machine) for machine in machines)
    return Membership(everyone, rank, 0, "slurm", "", b"")


def test_the_last_nodes_wait_and_are_named() -> None:
    membership = met([0, 1, 2, 3], rank=3)
    first = first_of(membership, options(spares=2))
    assert first.facts == membership.facts[:2]
    made = plan(first.facts)
    hosts = [each.host for each in membership.facts]
    assert waiting(made, membership) == (f"2 nodes wait to take the place of a lost one: {hosts[2]}, {hosts[3]}",)
    assert waiting(plan(membership.facts), membership) == ()


def test_where_tasks_are_workers_nobody_waits() -> None:
    membership = met([0, 0, 1, 1])
    assert first_of(membership, options(spares=1)) == membership
