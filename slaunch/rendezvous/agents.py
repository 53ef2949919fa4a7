"""The agents' star where the tasks met in another way: its address and secret came with the facts."""

from __future__ import annotations

import os
import socket

from slaunch.channel.dial import Caller, Dialer
from slaunch.channel.door import Door
from slaunch.channel.handshake import HandshakeError
from slaunch.channel.hub import Hub
from slaunch.channel.spoke import Spoke
from slaunch.channel.star import Star
from slaunch.hashing import sha256
from slaunch.rendezvous.assemble import find_hub, tell_seldom, wait_for_all
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.slurm import meeting_identity
from slaunch.rendezvous.values import Membership


def open_star(membership: Membership, ground: Ground, control: list[socket.socket], deadline: float) -> Star:
    """Open it: task 0 lets the others in, they connect to the first of its addresses that answers.

    Raises:
        RendezvousError: not all have come in time.
    """
    identity = f"{meeting_identity(ground.task.allocation, ground.env)}/agents"
    if membership.rank == 0:
        doors = [sock.dup() for sock in control]
        hub = Hub(doors, 0, len(membership.facts), Door(identity, membership.secret))
        wait_for_all(hub, ground, deadline)
        return hub
    return connect(identity, membership, ground, deadline)


def lasting(star: Star, membership: Membership, ground: Ground, control: list[socket.socket]) -> Star:
    """The star, with what it takes to find another hub when this one is lost.

    Args:
        star: as it stands.
        membership: everybody's facts, with the ports where they listen.
        ground: this task.
        control: where this one listens.
    """
    if not isinstance(star, Hub | Spoke):
        return star
    used = {address.ip for address in membership.facts[membership.rank].addresses}
    for sock in control:
        if sock.getsockname()[0] not in used:  # on a network that does not join all nodes
            sock.close()
    from slaunch.channel.succession import Dynasty, Line

    targets = tuple(tuple((address.ip, facts.control_port) for address in facts.addresses) for facts in membership.facts)
    identity = f"{meeting_identity(ground.task.allocation, ground.env)}/agents {sha256(str(targets).encode()).hexdigest()[:16]}"
    listeners = [sock for sock in control if sock.fileno() >= 0]
    return Dynasty(star, Line(identity, membership.secret, targets, ground.facts.host), listeners)


def connect(identity: str, membership: Membership, ground: Ground, deadline: float) -> Star:
    """A spoke's part."""
    first, own = membership.facts[0], ground.facts
    caller = Caller(identity, membership.rank, len(membership.facts), own.host, os.getpid(), os.urandom(8).hex())

    def find(by: str, hint: str) -> bytes:
        if by != "given":
            raise HandshakeError("is no hub of agents")
        return membership.secret

    where = f"agent of task 0 on {first.host}"
    targets = [(address.ip, first.control_port) for address in first.addresses]
    return find_hub(Dialer(targets, caller, find, tell_seldom(ground, where)), where, ground, deadline)[0]
