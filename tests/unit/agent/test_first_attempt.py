"""Which nodes begin, and what is said of those that wait."""

from __future__ import annotations

from support.plans import facts, options

from slaunch.frozen import replace
from slaunch.launch import first_of, starters, waiting
from slaunch.node.values import Problem
from slaunch.rendezvous.values import Membership


def met(machines: list[int], rank: int = 0) -> Membership:
    everyone = tuple(facts(machine) for machine in machines)
    return Membership(everyone, rank, 0, "slurm", "", b"")


def test_the_last_nodes_wait_and_are_named() -> None:
    membership = met([0, 1, 2, 3], rank=3)
    first = starters(membership.facts, options(spares=2))
    assert first_of(membership, first).facts == membership.facts[:2]
    hosts = [each.host for each in membership.facts]
    assert waiting(first, membership, "agent") == (f"2 nodes wait to take the place of a lost one: {hosts[2]}, {hosts[3]}",)
    assert waiting(range(4), membership, "agent") == ()


def test_where_tasks_are_workers_nobody_waits() -> None:
    membership = met([0, 0, 1, 1])
    assert first_of(membership, starters(membership.facts, options(spares=1))) == membership


def test_nodes_that_are_not_fit_take_no_part_and_do_not_wait() -> None:
    """They are here only where the others are enough."""
    membership = met([0, 1, 2, 3], rank=1)
    broken = replace(membership.facts[0], problems=(Problem(66, "use GPUs", "GPU 0 is lost", "tell"),))
    membership = replace(membership, facts=(broken, *membership.facts[1:]))
    first = starters(membership.facts, options(nnodes=(2, 4)))
    assert first == (1, 2, 3)
    assert first_of(membership, first).rank == 0
    assert waiting(first, membership, "agent") == ()
