"""Services (parameter servers) end when all their clients have ended, played through in virtual time."""

from __future__ import annotations

import pytest

from slaunch.agent import supervisor
from slaunch.agent.messages import ClientsDone, pack, unpack

from .world import Agent, Worker, World


class Serving(World):
    """The last worker of each node is a service; on nodes of `only`, all are."""

    def __init__(self, nodes: int, per_node: int, only: frozenset[int] = frozenset()) -> None:
        self.only = only
        self.nodes = nodes
        super().__init__(nodes, per_node)

    def _agent(self, index: int, per_node: int) -> Agent:
        ranks = range(index * per_node, (index + 1) * per_node)
        services = frozenset(ranks if index in self.only else ranks[-1:])
        clients = frozenset(range(self.nodes)) - self.only
        state = supervisor.start(index, self.hosts, frozenset(ranks), self.grace_s, services, clients)
        return Agent(index, state, {rank: Worker(rank, index) for rank in ranks})


def outcome(world: World) -> tuple[str, int]:
    """The one verdict that all agents end with, in short."""
    (verdict,) = {agent.verdict for agent in world.agents}
    assert verdict is not None
    return verdict.outcome, verdict.code


def test_the_message_survives_the_wire() -> None:
    assert unpack(pack(ClientsDone())) == ClientsDone()


def ended(world: World) -> float:
    """When the last agent ended, in virtual seconds."""
    return max(agent.finished_at for agent in world.agents)


@pytest.mark.parametrize("nodes", [1, 3])
def test_w41_f300_services_end_soon_after_the_last_client(nodes: int) -> None:
    world = Serving(nodes, 3)
    for rank in range(3 * nodes):
        if rank % 3 != 2:
            world.exit(rank, 0, 1.0 + rank)
    world.run()
    last = 1.0 + 3 * (nodes - 1) + 1
    assert outcome(world) == ("success", 0)
    assert last < ended(world) < last + 1
    assert all(world.worker(3 * node + 2).told for node in range(nodes))


def test_w41_services_stay_while_a_client_on_another_node_runs() -> None:
    world = Serving(2, 2)
    world.exit(0, 0, 1.0)
    world.run(100.0)
    assert all(world.worker(rank).alive for rank in (1, 2, 3))
    world.exit(2, 0, 200.0)
    world.run()
    assert outcome(world) == ("success", 0)


def test_nodes_with_services_only() -> None:
    world = Serving(3, 2, only=frozenset({0, 2}))
    world.exit(2, 0, 5.0)
    world.run()
    assert outcome(world) == ("success", 0)
    assert ended(world) < 6


def test_services_that_end_by_themselves() -> None:
    world = Serving(2, 2)
    for rank in range(4):
        world.exit(rank, 0, 1.0 + rank)
    world.run()
    assert outcome(world) == ("success", 0)


def test_w5_a_client_that_fails_fails_the_job() -> None:
    world = Serving(2, 2)
    world.exit(0, 0, 1.0)
    world.exit(2, 3, 2.0)
    world.run()
    assert outcome(world) == ("failure", 3)


def test_a_service_that_fails_fails_the_job() -> None:
    world = Serving(2, 2)
    world.exit(3, 4, 1.0)
    world.run()
    assert outcome(world) == ("failure", 4)


def test_a_service_that_ignores_the_request_is_killed_and_harms_nobody() -> None:
    world = Serving(1, 2)
    world.worker(1).stop_s = None
    world.exit(0, 0, 1.0)
    world.run()
    assert outcome(world) == ("success", 0)
    assert ended(world) < 1 + world.grace_s + 2
