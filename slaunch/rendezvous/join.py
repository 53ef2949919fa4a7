"""A node that comes to the one that serves: it takes the number that it is given."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

from slaunch.channel import secret
from slaunch.channel.dial import Caller, Dialer, Target
from slaunch.channel.link import brackets
from slaunch.channel.spoke import Spoke
from slaunch.channel.star import HUB, Message
from slaunch.rendezvous.assemble import find_hub
from slaunch.rendezvous.by_hand import BY_HAND_S, SLOWEST_TELL_S, bounds, by_hand_deadline, identity, new_token, own_wish
from slaunch.rendezvous.gather import HUB_LEAD_S, TELL_S, StarGatherer, check_error, left_alone, listen_to
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.lateness import LateError
from slaunch.rendezvous.seats import Wish

REFUSED_S = 10.0
"""Who is refused for so long gives up: an earlier job's server would be gone by now."""


def join(
    targets: Sequence[Target],
    ground: Ground,
    deadline: float,
    watch: Callable[[Mapping[Target, str]], None] = lambda seen: None,
) -> StarGatherer:
    """Find the server, and take the number that it gives.

    Args:
        targets: where it may be.
        ground: what this node has to go on.
        deadline: when to give up (monotonic).
        watch: called about every second while it is not found; what it raises ends the search.

    Raises:
        RendezvousError: it is not there, or does not want this node.
    """
    deadline = by_hand_deadline(ground, deadline)
    size = bounds(ground)[1]
    caller = Caller(identity(ground), new_token(), size, ground.facts.host, os.getpid(), os.urandom(8).hex())
    find = lambda by, hint: secret.find(identity(ground), ground.env, by, hint)  # noqa: E731
    where = f"node that serves at {brackets(*targets[0])}"
    patience = Patience(ground, where)

    def late(seen: Mapping[Target, str]) -> None:
        watch(seen)
        patience(seen)

    dialer = Dialer(targets, caller, find, late)
    spoke, known = find_hub(dialer, where, ground, deadline)
    try:
        given = take_seat(spoke, own_wish(ground, serves=False), deadline)
    except BaseException:
        spoke.close()
        raise
    if "late" in given:
        raise LateError(spoke, known)
    spoke.renumber(given["seat"], given["of"])
    hub_rank = given["hub"]
    return StarGatherer(spoke, spoke.index, known, lambda rank: f"node {rank}", patience_s=BY_HAND_S, hub_rank=hub_rank)


def take_seat(spoke: Spoke, wish: Wish, deadline: float) -> Mapping[str, int]:
    """Say who we are; gives what the server says when enough are there, by its own deadline, which may be later than ours.

    {"late": true} from the hub of a job that runs already.
    """
    spoke.send(HUB, {"wish": [wish.rank, wish.ip, wish.host]})
    until = max(deadline, time.monotonic() + BY_HAND_S) + HUB_LEAD_S
    seats: list[Message] = []
    for item in listen_to(spoke, lambda: not seats, until):
        check_error(item)
        if isinstance(item, Message) and item.body.keys() & {"seat", "late"}:
            seats.append(item)
    if not seats:
        raise left_alone("the serving node has not answered in time")
    return seats[0].body


class Patience:
    """For a dialer's `late`: says what is looked for, and gives up where the server says no again and again."""

    def __init__(self, ground: Ground, where: str) -> None:
        self._ground, self._where = ground, where
        self._pause_s = TELL_S
        self._tell = time.monotonic() + TELL_S
        self._refused = float("inf")

    def __call__(self, seen: Mapping[Target, str]) -> None:
        """Look at what was seen so far."""
        now = time.monotonic()
        refusals = [why for why in seen.values() if why.startswith("refused us")]
        self._refused = min(self._refused, now) if refusals else float("inf")
        if now - self._refused > REFUSED_S:
            raise left_alone(f"the node at {brackets(*next(iter(seen)))} {refusals[0]}")
        if now > self._tell:
            self._pause_s = min(2 * self._pause_s, SLOWEST_TELL_S)
            self._tell = now + self._pause_s
            self._ground.say(f"looking for the {self._where}: {'; '.join(sorted(set(seen.values())))}")
