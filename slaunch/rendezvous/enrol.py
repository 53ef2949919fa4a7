"""The node to which the others come: it lets them in, numbers them, and closes the door."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping

from slaunch.channel import secret
from slaunch.channel.hub import Hub
from slaunch.channel.listen import close_all
from slaunch.channel.star import Lost
from slaunch.errors import RendezvousError
from slaunch.rendezvous.assemble import strangers
from slaunch.rendezvous.by_hand import SLOWEST_TELL_S, bounds, by_hand_deadline, identity, new_token, own_wish
from slaunch.rendezvous.gather import TELL_S, StarGatherer, announce, listen_to
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.seats import Wish, assign

AT_LAST_S = 40.0
"""What is done at last has a limit of its own, unless even a name cannot be looked up."""
LAST_CALL_S = 10.0
"""Where the user wants at least and at most so many nodes: go without more of them after so long without a new one."""


def serve(  # noqa: PLR0917 - what each way of meeting does beside it
    listeners: list[socket.socket],
    ground: Ground,
    deadline: float,
    meanwhile: Callable[[], None] = lambda: None,
    at_last: Callable[[], None] | None = None,
    hold: bool = False,
) -> StarGatherer:
    """Let the others in, number them, and close the door.

    Args:
        listeners: where they come to; closed in the end.
        ground: what this node has to go on.
        deadline: when to give up (monotonic).
        meanwhile: called several times a second while waiting; takes no time.
        at_last: called when enough are here, and may take time; may still refuse.
        hold: keep the port until others may come to the running job: else one of them could listen there itself, and be a second
            job.
    """
    try:
        offered = secret.offer(identity(ground), ground.env)
    except BaseException:
        close_all(listeners)
        raise
    own = new_token()
    held = [sock.dup() for sock in listeners] if hold else []
    hub = Hub(listeners, own, bounds(ground)[1], offered.door, numbered=False)
    try:
        wishes = {own: own_wish(ground, serves=True)}
        enrol(hub, wishes, ground, by_hand_deadline(ground, deadline), meanwhile)
        if at_last is not None:
            confirm(hub, at_last)
        hosts = seat(hub, wishes, own)
    except RendezvousError as error:
        announce(hub, error)
        hub.close()
        close_all(held)
        raise
    finally:
        offered.withdraw()
    return StarGatherer(hub, hub.index, offered.door.secret, lambda rank: f"node {rank} ({hosts[rank]})", held=held)


def enrol(hub: Hub, wishes: dict[int, Wish], ground: Ground, deadline: float, meanwhile: Callable[[], None]) -> None:
    """Collect the others' words until there are enough; who leaves before that was never there.

    Raises:
        RendezvousError: there are not enough in time.
    """
    least, most = bounds(ground)
    state = Waiting(least, most)

    def waiting() -> bool:
        meanwhile()
        return state.goes_on(len(wishes), hub, ground)

    for item in listen_to(hub, waiting, deadline):
        if isinstance(item, Lost):
            wishes.pop(item.index, None)
        elif "wish" in item.body:
            rank, ip, host = item.body["wish"]
            wishes[item.sender] = Wish(rank, ip, host)
        state.changed()
    if len(wishes) < least:
        here = ", ".join(wish.host for wish in wishes.values())
        raise RendezvousError(
            "meet the other nodes",
            f"{len(wishes)} of {least} nodes are here ({here}){strangers(hub)}",
            "start slaunch on the other nodes, with the same --master; --rendezvous-timeout waits longer",
        )


def confirm(hub: Hub, at_last: Callable[[], None]) -> None:
    """Have it done while those who are here hear that this node lives. Nobody else comes in.

    Raises:
        RendezvousError: it refuses, or takes too long.
    """
    from slaunch.rendezvous.beside import Beside

    hub.close_door()
    work, until = Beside(at_last), time.monotonic() + AT_LAST_S
    try:
        hub.put_back(list(listen_to(hub, lambda: not work.over, until, work)))
        if not work.over:
            seen = f"no answer within {AT_LAST_S:g} s"
            raise RendezvousError("make sure that only one node serves this job", seen, "look at etcd, and start the job again")
        work.finish()
    finally:
        work.close()


class Waiting:
    """How long to wait for how many, and when to say so."""

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self._pause_s = TELL_S
        self._tell = time.monotonic() + TELL_S
        self._since = time.monotonic()

    def changed(self) -> None:
        """Somebody has come or gone: the last call begins anew."""
        self._since = time.monotonic()

    def goes_on(self, here: int, hub: Hub, ground: Ground) -> bool:
        """Whether to wait on."""
        now = time.monotonic()
        if here < self.most and now > self._tell:
            self._pause_s = min(2 * self._pause_s, SLOWEST_TELL_S)
            self._tell = now + self._pause_s
            ground.say(f"waiting for {self.most - here} more of {self.most} nodes{strangers(hub)}")
        return here < self.least or (here < self.most and now - self._since < LAST_CALL_S)


def seat(hub: Hub, wishes: Mapping[int, Wish], own: int) -> dict[int, str]:
    """Number everybody and tell them; returns the hosts by rank.

    Raises:
        RendezvousError: the numbers that were asked for do not fit.
    """
    ranks = assign(wishes, hub.size)
    for token, rank in ranks.items():
        if token != own:
            hub.send(token, {"seat": rank, "of": len(ranks), "hub": ranks[own]})
    hub.close_door()
    hub.renumber(ranks, ranks[own], len(ranks))
    return {rank: wishes[token].host for token, rank in ranks.items()}
