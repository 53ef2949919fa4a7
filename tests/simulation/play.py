"""Plays a life to its end, and judges it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from hashlib import sha256

from slaunch.agent.events import SignalArrived, StartFailed
from slaunch.node.values import Problem

from .life import LAST_FAULT_S, Fault, Life, draw
from .world import Agent, BrokenLaw, World

STEP_S = 200.0
"""No attempt takes longer, all its ends and waits included."""


def play(life: Life, trace: Callable[[float, int, object], None] | None = None) -> World:
    """The world at the end of a life.

    Raises:
        BrokenLaw: something happened that must not.
    """
    world = World(life, trace)
    for fault in life.faults:
        world.at(fault.time_s, inflict, world, fault)
    world.run(bound_s(life))
    judge(world)
    return world


def bound_s(life: Life) -> float:
    """When every agent must have ended: after the last fault each further attempt has its time, and there are only so many."""
    attempts = 2 + life.policy.max_restarts + 2 * len(life.faults)
    windowed = 10 if life.policy.window_s < 1e9 else 0
    return LAST_FAULT_S + (attempts + windowed) * STEP_S


def inflict(world: World, fault: Fault) -> None:  # noqa: C901 - one line for each kind
    """Let a fault happen."""
    agent, life, network = world.agents[fault.where], world.life, world.network
    match fault.kind:
        case "exit":
            world.exit(agent, (1, 3, 42, 137, 139, 143)[int(6 * fault.amount)])
        case "agent" | "node":
            world.kill(agent, fault.kind == "node")
        case "hub":
            hubs = [each for each in world.agents if each.hub == each.index and not each.over and each.search is None]
            if hubs:
                world.kill(hubs[-1], fault.amount < 0.5)
        case "cut":
            some = [node for node in range(life.nodes) if world.random.random() < fault.amount**2] or [fault.where]
            network.cut(some, fault.lasts_s)
        case "flap":
            for turn in range(4):
                world.at(world.now + 3.0 * turn, network.cut, [fault.where], 0.2 + 2.5 * fault.amount)
        case "frame":
            network.spoil(fault.where)
        case "slow":
            network.slow_until = world.now + min(fault.lasts_s, 20.0)
        case "pause":
            world.pause(agent, min(fault.lasts_s, 20.0))
        case "unfit" | "doubt":
            world.unfit[fault.where] = "fault" if fault.kind == "unfit" else "doubt"
            world.at(world.now + fault.lasts_s, world.unfit.pop, fault.where, None)
        case "clock":
            agent.offset_s += 7200.0 * (fault.amount - 0.5)
        case "join":
            for _ in range(1 + int(3 * fault.amount)):
                world.at(world.now + fault.amount, world.arrive)
        case "stop":
            world.feed(agent, SignalArrived(signal.SIGTERM, "pid 1", world.wall(agent)))
        case "hurry":
            for after_s in (0.0, 1.0):
                world.at(world.now + after_s, interrupt, world, agent)
        case "odd":
            world.odd.add(fault.where)
        case "portless":
            world.portless.add(fault.where)
        case "start":
            world.feed(agent, StartFailed(Problem(73, "write", "no space", "make some")))


def interrupt(world: World, agent: Agent) -> None:
    world.feed(agent, SignalArrived(signal.SIGINT, "pid 1", world.wall(agent)))


def judge(world: World) -> None:
    """What must be true at the end."""
    life = world.life
    open_ = [agent.index for agent in world.agents if not agent.over]
    law(not open_, f"agents {open_[:5]} have not ended within {bound_s(life):.0f} s of virtual time")
    law(not any(world.running.values()), "workers are left")
    verdicts = {agent.verdict for agent in world.agents if agent.verdict is not None and agent.verdict.outcome != "lost"}
    given = [verdict for of_one in world.verdicts.values() for verdict in of_one]
    law(all(len(of_one) == 1 for of_one in world.verdicts.values()), f"a hub with two verdicts: {world.verdicts}")
    law(verdicts <= set(given), "a verdict that no hub has given")
    law(len(verdicts) <= 1 or bool(life.faults), f"{len(verdicts)} verdicts without a fault")
    restarts = life.policy.max_restarts if life.policy.window_s > 1e9 else 10**6
    law(world.begun <= restarts + losses(life), f"{world.begun} attempts after the first")
    for verdict in verdicts:
        if verdict.outcome == "success":
            members = len(world.worlds[world.begun][0]) if world.begun else life.nodes  # type: ignore[index]
            law(world.done == set(range(members * life.per_node)), "success, and not all workers have ended well")
    if not life.faults:
        law({agent.verdict.outcome for agent in world.agents if agent.verdict} == {"success"}, "no fault, and no success")


def losses(life: Life) -> int:
    """How often nodes may be lost at most, each time with another attempt."""
    return sum({"cut": 3, "flap": 8, "slow": 4}.get(fault.kind, 2) for fault in life.faults) * life.nodes


def law(holds: bool, text: str) -> None:
    if not holds:
        raise BrokenLaw(text)


def play_seed(seed: int) -> str:
    """Play a seed's life; "" or the law that it broke."""
    try:
        play(draw(seed))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def digest(seed: int) -> str:
    """A digest of all that happens in a life: events and actions with their times."""
    hashed = sha256()
    play(draw(seed), lambda now, agent, what: hashed.update(f"{now!r} {agent} {what!r}\n".encode()))
    return hashed.hexdigest()
