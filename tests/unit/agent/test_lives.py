"""Many lives of many jobs: whatever happens in whatever order, every job ends in time, with one verdict and a real cause."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from slaunch.agent.node_state import ANSWER_S, KILL_S, LEFTOVER_S
from slaunch.agent.values import Verdict

from .world import PATIENCE_S, WALL, World

LAST_FAULT_S = 20.0
EXIT_CODES = st.sampled_from([1, 3, 42, 126, 127, 134, 137, 139, 143])
TIMES = st.floats(0.0, LAST_FAULT_S)


@dataclass(frozen=True)
class Fault:
    kind: str
    where: int
    time_s: float
    code: int = 1
    silent: bool = False


@dataclass(frozen=True)
class Life:
    nodes: int
    per_node: int
    grace_s: float
    seed: int
    faults: tuple[Fault, ...]
    characters: tuple[tuple[float | None, int, bool, bool], ...]
    offsets: tuple[float, ...]


FAULTS = st.builds(
    Fault,
    st.sampled_from(["exit", "exit", "exit", "signal", "hurry", "agent", "start"]),
    st.integers(0, 1000),
    TIMES,
    EXIT_CODES,
    st.booleans(),
)
CHARACTERS = st.tuples(
    st.sampled_from([0.0, 0.01, 0.5, 2.9, None]), st.integers(0, 2), st.booleans(), st.sampled_from([False] * 9 + [True])
)
LIVES = st.builds(
    Life,
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([0.0, 1.0, 3.0]),
    st.integers(0, 1 << 32),
    st.lists(FAULTS, max_size=5).map(tuple),
    st.lists(CHARACTERS, min_size=1, max_size=6).map(tuple),
    st.lists(st.floats(-3600, 3600), min_size=6, max_size=6).map(tuple),
)


def play(life: Life) -> World:
    world = World(life.nodes, life.per_node, life.grace_s, life.seed)
    for agent in world.agents[1:]:
        agent.offset_s = life.offsets[agent.index]
    for rank in range(life.nodes * life.per_node):
        worker = world.worker(rank)
        worker.stop_s, worker.leftovers, worker.stubborn, worker.unkillable = life.characters[rank % len(life.characters)]
        world.exit(rank, 0, LAST_FAULT_S + 10.0)
    for fault in life.faults:
        inflict(world, life, fault)
    world.run(10_000.0)
    return world


def inflict(world: World, life: Life, fault: Fault) -> None:
    node = fault.where % life.nodes
    if fault.kind == "exit":
        world.exit(fault.where % (life.nodes * life.per_node), fault.code, fault.time_s)
    elif fault.kind == "signal":
        world.signal(node, signal.SIGTERM, fault.time_s)
    elif fault.kind == "hurry":
        world.signal(node, signal.SIGINT, fault.time_s)
        world.signal(node, signal.SIGINT, fault.time_s + 1.0)
    elif fault.kind == "agent":
        world.kill_agent(node, fault.time_s, fault.silent)
    else:
        world.cannot_start(node, 0.0)


def survivors(world: World) -> list[Verdict]:
    assert all(agent.verdict is not None for agent in world.agents if not agent.dead), "an agent did not end"
    return [agent.verdict for agent in world.agents if agent.verdict is not None]


@examples(400)
@given(LIVES)
def test_every_agent_ends_in_time(life: Life) -> None:
    world = play(life)
    survivors(world)
    last_s = LAST_FAULT_S + 10.0 + PATIENCE_S
    bound = last_s + 2 * (life.grace_s + LEFTOVER_S + KILL_S + ANSWER_S)
    assert all(agent.finished_at <= bound for agent in world.agents if not agent.dead)


@examples(400)
@given(LIVES)
def test_w27_no_agent_ends_before_its_workers(life: Life) -> None:
    world = play(life)
    for agent in world.agents:
        if agent.verdict is not None:
            left = [w for w in agent.workers.values() if (w.alive or w.leftovers) and not w.unkillable]
            assert not left


@examples(400)
@given(LIVES)
def test_there_is_one_verdict(life: Life) -> None:
    world = play(life)
    assert world.verdicts_told <= 1
    verdicts = survivors(world)
    if not world.agents[0].dead:
        assert len(set(verdicts)) == 1
    else:  # the hub may have been lost before or after it told its verdict to some
        own = {replace(v, first=None, others=(), ended=0, lost=()) for v in verdicts if v.outcome == "lost"}
        assert own <= {Verdict("lost", 75)}


@examples(400)
@given(LIVES)
def test_p94_the_first_cause_is_one_of_the_faults(life: Life) -> None:
    world = play(life)
    exits = {(f.where % (life.nodes * life.per_node), f.code) for f in life.faults if f.kind == "exit"}
    for verdict in survivors(world):
        named = [failure for failure in (verdict.first, *verdict.others) if failure is not None]
        assert all((failure.rank, failure.code) in exits and not failure.told for failure in named)
        if not life.faults:
            assert verdict.outcome == "success"


def fault_node(life: Life, fault: Fault) -> int:
    return fault.where % (life.nodes * life.per_node) // life.per_node if fault.kind == "exit" else fault.where % life.nodes


def noticed_s(fault: Fault) -> float:
    """When somebody else can know of it at the latest."""
    if fault.kind == "start":
        return 0.0
    return fault.time_s + (PATIENCE_S if fault.kind == "agent" and fault.silent else 0.0)


@examples(400)
@given(LIVES.filter(lambda life: len(life.faults) > 0), st.floats(0.0, 0.5))
def test_w28_a_job_of_well_behaved_workers_ends_right_after_the_first_fault(life: Life, stop_s: float) -> None:
    """Deaths that only a heartbeat shows are left out; so is what an agent does not live long enough to tell."""
    faults = tuple(replace(fault, silent=False) for fault in life.faults)
    life = replace(life, characters=((stop_s, 1, False, False),), grace_s=3.0, faults=faults)
    world = play(life)
    dies = {(fault_node(life, f), f.time_s) for f in faults if f.kind == "agent"}
    seen = [f for f in faults if f.kind == "agent" or not any(n == fault_node(life, f) and at < f.time_s + 0.1 for n, at in dies)]
    bound = min(map(noticed_s, seen)) + stop_s + 1.0
    assert all(agent.finished_at <= bound for agent in world.agents if not agent.dead)


@examples(300)
@given(LIVES.filter(lambda life: len(life.faults) > 0))
def test_a_single_fault_gets_the_right_verdict(life: Life) -> None:
    fault = life.faults[0]
    world = play(replace(life, faults=(fault,)))
    expected = {
        "exit": ("failure", fault.code),
        "signal": ("signal", 143),
        "hurry": ("signal", 130),
        "agent": ("lost", 75),
        "start": ("start", 73),
    }[fault.kind]
    for verdict in survivors(world):
        assert (verdict.outcome, verdict.code) == expected
        if fault.kind == "exit":
            assert verdict.first is not None
            assert verdict.first.rank == fault.where % (life.nodes * life.per_node)
            assert abs(verdict.first.time_s - WALL - fault.time_s) < 1e-3
        if fault.kind == "agent":
            assert [gone.node for gone in verdict.lost] == [fault.where % life.nodes]
    slow_s = KILL_S if any(unkillable for *_, unkillable in life.characters) else 0.0
    bound = noticed_s(fault) + life.grace_s + LEFTOVER_S + slow_s + 1.0
    assert all(agent.finished_at <= bound for agent in world.agents if not agent.dead)
