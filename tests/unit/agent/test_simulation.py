"""Lives of whole jobs in virtual time, with the real supervisors: `python -m tests.simulation` plays many more."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from simulation.life import MOST_NODES, draw
from simulation.play import digest, play, play_seed
from simulation.world import BrokenLaw
from support.cluster import CHECKOUT
from support.examples import number

LIVES = 600


def test_w17_w20_p98_no_life_breaks_a_law() -> None:
    """One world for each attempt, attempts rise, ranks are unique, nobody who was given up goes on, all end in bounded time."""
    broken = {seed: why for seed in range(number(LIVES)) if (why := play_seed(seed))}
    assert not broken, f"look at one with: python -m tests.simulation --seed {next(iter(broken))}"


@pytest.mark.parametrize(
    "seed",
    [
        4544,  # a node loses only its connection, the others go on without it, and then their hub dies
        3510,  # a hub dies while nodes hear that their workers shall start
        10770,
        16498,
        519498,  # the others go on without a node and end; it must not begin anew when it sees that
        7016261,  # a cut heals, old words arrive, and the node stands still at that moment
    ],
)
def test_lives_that_once_had_two_worlds(seed: int) -> None:
    assert not play_seed(seed)


def test_lives_are_of_all_kinds() -> None:
    lives = [draw(seed) for seed in range(LIVES)]
    assert max(life.nodes for life in lives) == MOST_NODES
    assert min(life.nodes for life in lives) == 1
    assert {len(life.faults) for life in lives} == set(range(11))


def test_the_network_is_as_bad_and_the_job_as_busy_as_it_should_be() -> None:
    """A simulation in which nothing happens proves nothing."""
    worlds = [play(draw(seed)) for seed in range(150)]
    assert sum(world.begun for world in worlds) > 60, "attempts after the first"
    assert sum(len(world.verdicts) > 1 for world in worlds) > 5, "hubs that were followed by another one, and both decided"
    assert sum(agent.reign > 0 for world in worlds for agent in world.agents) > 100, "agents that lost their hub"


@pytest.mark.parametrize("seed", [7, 57, 140])
def test_a_seed_replays_byte_for_byte(seed: int) -> None:
    code = f"from simulation.play import digest; print(digest({seed}))"
    env = {**os.environ, "PYTHONPATH": f"{CHECKOUT}/tests:{CHECKOUT}", "PYTHONHASHSEED": "12345"}
    again = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert again.stdout.strip() == digest(seed)


def test_an_error_is_noticed() -> None:
    """Without the wait after the loss of a node, workers of two attempts run at the same time."""
    for seed in range(LIVES):
        life = draw(seed)
        try:
            play(replace(life, policy=replace(life.policy, fence_s=0.0)))
        except BrokenLaw as error:
            assert "run while those of" in str(error)
            return
    raise AssertionError("no life breaks a law")
