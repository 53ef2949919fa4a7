"""Bringing a star together: the hub waits for all, the spokes look for the hub; both say what they wait for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from slaunch.channel.dial import REFUSED, Dialer, Target
from slaunch.channel.hub import Hub
from slaunch.channel.link import brackets
from slaunch.channel.spoke import Spoke
from slaunch.channel.star import Lost, Message
from slaunch.errors import RendezvousError
from slaunch.rendezvous.gather import HUB_LEAD_S, TELL_S, announce, left_alone, listen_to
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.names import missing_text, some


def wait_for_all(hub: Hub, ground: Ground, deadline: float) -> None:
    """Wait until every task has joined, naming every few seconds those who have not; then close the door.

    Raises:
        RendezvousError: they have not all come in time, or one has left again. All who are here are told.
    """
    due = time.monotonic() + TELL_S

    def waiting() -> bool:
        nonlocal due
        if time.monotonic() > due and not hub.complete():
            due += TELL_S
            ground.say(f"waiting for {whom(hub, ground)}{strangers(hub)}")
        return not hub.complete()

    early: list[Message | Lost] = []
    for item in listen_to(hub, waiting, deadline):
        if isinstance(item, Lost):
            raise fail(hub, f"task {item.index} came and left again: {item.why}", "look for that task's own message")
        early.append(item)
    if not hub.complete():
        here = hub.size - len(hub.missing())
        seen = f"{here} of {hub.size} tasks are here, but not {whom(hub, ground)}{strangers(hub)}"
        raise fail(hub, seen, "look whether those nodes are up and can reach this one; --rendezvous-timeout waits longer")
    hub.close_door()
    hub.put_back(early)


def fail(hub: Hub, seen: str, todo: str) -> RendezvousError:
    """The hub's verdict, told to all who are here."""
    error = RendezvousError("meet the other tasks", seen, todo)
    announce(hub, error)
    hub.close()
    return error


def whom(hub: Hub, ground: Ground) -> str:
    """Who is missing."""
    here = {rank: peer.hello.host for rank, peer in hub.peers.items()}
    allocation = ground.task.allocation
    here[hub.index] = allocation.nodes[ground.task.slot.node] if allocation.nodes else ground.facts.host
    return missing_text(hub.missing(), here, allocation)


def strangers(hub: Hub) -> str:
    """Who was turned away meanwhile: it may be the one that is missing."""
    return f"; {some(list(hub.notices)[-3:], 3)}" if hub.notices else ""


def find_hub(dialer: Dialer, where: str, ground: Ground, deadline: float) -> tuple[Spoke, bytes]:
    """Look for the hub until a little after the deadline.

    Args:
        dialer: the search.
        where: what is looked for, for messages, e.g. "task 0 on n1".
        ground: to say what is seen meanwhile.
        deadline: the meeting's (monotonic).

    Returns:
        The spoke, and the secret by which the hub proved itself.

    Raises:
        RendezvousError: it was not found.
    """
    link = dialer.dial(deadline + HUB_LEAD_S)
    if link is None:
        raise left_alone(f"no {where}: {sightings(dialer.seen)}")
    return Spoke(link, dialer.caller.rank, dialer.caller.size), dialer.secret


def sightings(seen: Mapping[Target, str]) -> str:
    """What was seen at which targets, alike ones together."""
    by_reason: dict[str, list[str]] = {}
    for target, why in sorted(seen.items(), key=lambda item: item[1] == REFUSED):
        by_reason.setdefault(why, []).append(brackets(*target))
    return "; ".join(f"{some(targets, 3)}: {why}" for why, targets in by_reason.items()) or "no address to try"


def tell_seldom(ground: Ground, where: str) -> Callable[[Mapping[Target, str]], None]:
    """For a dialer's `late`: say every few seconds that the hub is not found; task 1 says it, as task 0 may be the one."""
    due = time.monotonic() + TELL_S

    def late(seen: Mapping[Target, str]) -> None:
        nonlocal due
        if time.monotonic() > due and ground.task.slot.rank == 1:
            due = time.monotonic() + TELL_S
            os.write(2, f"slaunch: looking for {where}: {sightings(seen)}\n".encode())

    return late
