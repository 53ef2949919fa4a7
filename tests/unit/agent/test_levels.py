"""Paddle's elastic levels with a range of nodes, and what nodes that come do, played through in virtual time."""

from __future__ import annotations

import pytest

from slaunch.agent.policy import Policy, is_elastic, policy_of
from slaunch.cli.options import read_options

from .world import World, verdict


def options(*words: str):  # type: ignore[no-untyped-def]
    return read_options(["paddle", "--nnodes", "2:4", *words, "train.py"], {})


def test_f120_level_0_goes_on_without_the_node_whose_worker_failed() -> None:
    """Until fewer than MIN are left."""
    world = World(4, 1, policy=Policy(0, least=2, goal=4, most=4, expel=True))
    world.exit(1, 9, 5.0)  # on node 1: ranks are then 0, 1, 2 on nodes 0, 2, 3
    world.exit(2, 8, 15.0)  # on node 3
    world.exit(0, 7, 25.0)
    world.run()
    begun = {attempt: members for _, _, attempt, members in world.begun}
    assert begun == {1: (0, 2, 3), 2: (0, 2)}
    assert (verdict(world).outcome, verdict(world).code) == ("failure", 7)
    assert verdict(world).final == "no restart: without n0 1 nodes are left"


def test_f120_level_1_goes_on_with_all_nodes() -> None:
    world = World(4, 1, policy=Policy(1, least=2, goal=4, most=4))
    world.exit(1, 9, 5.0)
    world.exit(1, 8, 15.0)
    world.run()
    assert {members for *_, members in world.begun} == {(0, 1, 2, 3)}
    assert verdict(world).code == 8


@pytest.mark.parametrize(
    ("level", "elastic", "expel", "restarts"), [("-1", False, False, 0), ("0", True, True, 0), ("1", True, False, 3)]
)
def test_f33_f120_what_the_levels_mean(level: str, elastic: bool, expel: bool, restarts: int) -> None:
    read = options("--elastic_level", level)
    policy = policy_of(read, 4)
    assert (is_elastic(read), policy.expel, policy.max_restarts) == (elastic, expel, restarts)
    assert policy.least == (2 if elastic else 0)


def test_a_range_without_a_level_lets_the_job_go_on() -> None:
    assert is_elastic(options())
