"""A life: the job, and what happens to it, all drawn from one seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import inf

from slaunch.agent.policy import Policy

LAST_FAULT_S = 60.0
MOST_NODES = 64
MOST_FAULTS = 10

KINDS = {
    "exit": 6,  # a worker ends with a code
    "agent": 3,  # an agent is killed; its machine lives
    "node": 3,  # a machine is dead
    "hub": 2,  # whichever agent is the hub then is killed, or its machine is dead
    "cut": 3,  # some nodes cannot reach the others, for a while or for ever
    "flap": 2,  # one node is cut off again and again for short times
    "frame": 2,  # a frame is lost, doubled or out of order: the receiver notices, and ends the connection
    "slow": 2,  # all messages take long for a while
    "pause": 2,  # an agent stands still for up to 20 s
    "unfit": 2,  # a look at a node's health finds a fault for a while
    "doubt": 1,
    "clock": 1,  # a node's clock jumps
    "join": 3,  # up to three nodes come to the job
    "stop": 0.3,  # an agent gets SIGTERM
    "hurry": 0.3,  # and SIGINT twice
    "odd": 0.5,  # a node makes another plan than the others
    "portless": 0.5,  # a node finds no ports
}


@dataclass(frozen=True)
class Fault:
    """Something that happens. `where`: a node, or one of its workers; `lasts_s`: how long; `amount`: what it is about."""

    kind: str
    time_s: float
    where: int
    lasts_s: float
    amount: float


@dataclass(frozen=True)
class Life:
    """A job and its faults.

    Attributes:
        seed: of all further chance.
        nodes, per_node: how large it is.
        policy: the user's wishes.
        grace_s: of the stop.
        work_s: how long workers run if nothing happens.
        stop_s: how long they take to end when asked; inf = they do not.
        leftovers: whether they leave processes behind.
        delay_s: of a message, at most.
        faults: what happens.
    """

    seed: int
    nodes: int
    per_node: int
    policy: Policy
    grace_s: float
    work_s: float
    stop_s: float
    leftovers: bool
    delay_s: float
    faults: tuple[Fault, ...]


def draw(seed: int) -> Life:
    """The life of a seed. Small jobs are more frequent than large ones: they have the same faults, and are faster to play."""
    chance = random.Random(seed)
    nodes = min(MOST_NODES, int(2 ** chance.uniform(0.0, 6.0) ** 0.9 + chance.random())) or 1
    if chance.random() < 0.02:
        nodes = MOST_NODES
    elastic = chance.random() < 0.8
    policy = Policy(
        chance.choice((0, 2, 5, 9)),
        chance.choice((0.0, 0.0, 1.0)),
        chance.choice((inf, inf, 30.0)),
        chance.choice((frozenset(), frozenset({42}))),
        0,
        chance.randint(1, 1 + nodes // 2) if elastic else 0,
        2.0,
        join=chance.choice(("restart", "restart", "boundary", "next")),
    )
    count = chance.randint(0, MOST_FAULTS)
    return Life(
        seed,
        nodes,
        chance.choice((1, 1, 2)) if nodes < 17 else 1,
        policy,
        chance.choice((0.0, 1.0, 3.0)),
        chance.uniform(15.0, 90.0),
        chance.choice((0.0, 0.01, 0.5, 2.9, inf)),
        chance.random() < 0.3,
        chance.choice((0.001, 0.02, 0.2)),
        tuple(fault(chance, nodes) for _ in range(count)),
    )


def fault(chance: random.Random, nodes: int) -> Fault:
    """One fault. They come in bursts, and often while the job is busy with an earlier one."""
    kind = chance.choices(tuple(KINDS), tuple(KINDS.values()))[0]
    time_s = chance.choice((chance.uniform(0.0, LAST_FAULT_S), chance.gauss(10.0, 0.3), chance.gauss(17.0, 2.0)))
    lasts_s = chance.choice((0.5, 3.0, 5.9, 6.5, 7.5, 20.0, 1e9))
    return Fault(kind, max(0.0, time_s), chance.randrange(nodes), lasts_s, chance.random())
