"""Meeting of nodes that were started by hand, at an etcd that all of them reach: it tells them which of them serves.

Whoever comes first puts its addresses under a key of the job, in a transaction that only one can win, with a lease that ends when
it does; the others read the key and join, as in `tcp`. Before the server tells anybody that enough are there it makes sure, in a
transaction, that the key is still its own. etcd is not needed any more then. The key:

    /slaunch/<job>/server       {"ips": [...], "port": n, "nonce": "..."}, afterwards removed, or {"closed": "..."} for 90 s

While others are connected to the server they miss it after some seconds of silence; so it asks etcd in a thread.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from slaunch.channel.dial import Target
from slaunch.channel.listen import close_all, listen
from slaunch.errors import RendezvousError
from slaunch.rendezvous.beside import Beside
from slaunch.rendezvous.by_hand import bounds, by_hand_deadline, identity
from slaunch.rendezvous.endpoints import parse_master
from slaunch.rendezvous.enrol import serve
from slaunch.rendezvous.etcd_access import HELP, access_of
from slaunch.rendezvous.etcd_client import DeniedError, Etcd, EtcdError
from slaunch.rendezvous.gather import StarGatherer
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.join import join

LEASE_S = 10
"""A server that has died is forgotten after so long."""
CLOSED_S = 90
"""Where more nodes may come than must: late ones are kept from making a second world for so long. By then the agent that leads
the job has put its own entry there, or has ended the job (`agent.keeper`)."""
LEAVE_S = 20.0
"""So long an etcd that does not answer, as it has lost its leader, is asked again whether the key is still the server's own."""
LOOK_S = 0.5


class MovedError(Exception):
    """Another node serves now, or none."""


def meet_by_etcd(ground: Ground, deadline: float) -> StarGatherer:
    """Meet at `--master etcd://…`.

    Raises:
        RendezvousError: etcd does not answer or does not let us in, or not enough nodes have come in time, or their numbers do
            not fit together.
        UsageError: `--master` is malformed, or what etcd wants to see cannot be read.
    """
    access = access_of(ground.options, ground.env)
    etcd, until = Etcd(parse_master(ground.options.master), access), by_hand_deadline(ground, deadline)
    found = f"no answer from {ground.options.master}"
    while time.monotonic() < until:
        try:
            return compete(etcd, ground, deadline)
        except MovedError as error:
            found = str(error)
        except DeniedError as error:
            raise failure(f"etcd: {error}", HELP) from None
        except EtcdError as error:
            found = f"etcd: {error}"
        time.sleep(LOOK_S)
    hint = "" if access.tls else "; one that wants encryption needs --etcd-cacert"
    raise failure(found, f"look whether etcd runs at --master and can be reached from this node{hint}")


def failure(seen: str, todo: str) -> RendezvousError:
    """The error of a node that has found no other, so that it speaks for itself."""
    error = RendezvousError("meet the other nodes", seen, todo)
    error.local = True
    return error


def compete(etcd: Etcd, ground: Ground, deadline: float) -> StarGatherer:
    """Serve if nobody else does, else join.

    Raises:
        MovedError: who was to be joined is gone.
    """
    key, lease = f"/slaunch/{identity(ground)}/server", etcd.grant(LEASE_S)
    listeners = listen([address.ip for address in ground.facts.addresses], 0)
    try:
        own = entry(listeners)
        there = etcd.create(key, own, lease)
        if there in ("", own):  # its own, if the first of several servers was too slow to say so
            office = Office(etcd, key, own, lease, closes=bounds(ground)[0] != bounds(ground)[1])
            return marked(serve(listeners, ground, deadline, office.keep, office.leave), own)
    finally:
        close_all(listeners)  # those of a server are closed already, when all are there
    etcd.revoke(lease)
    return marked(join(targets(there), ground, deadline, watch(etcd, key, there)), there)


def marked(gatherer: StarGatherer, served: str) -> StarGatherer:
    """The nodes that have met, knowing what their server has left at etcd."""
    gatherer.mark = closing(served)
    return gatherer


def closing(own: str) -> str:
    """What a server leaves at etcd where more nodes may come."""
    return json.dumps({"closed": own})


def entry(listeners: Sequence[socket.socket]) -> str:
    """What the server tells of itself."""
    ips = [sock.getsockname()[0] for sock in listeners]
    return json.dumps({"ips": ips, "port": listeners[0].getsockname()[1], "nonce": os.urandom(8).hex()})


def targets(text: str) -> list[Target]:
    """Where the server is.

    Raises:
        MovedError: it is none, or takes nobody in any more.
    """
    try:
        told = json.loads(text or "{}")
        if "closed" in told:
            raise MovedError("the job has begun without this node")
        return [(str(ip), int(told["port"])) for ip in told["ips"]]
    except (ValueError, KeyError, TypeError):
        raise MovedError("the key of the serving node is empty, or not slaunch's") from None


def watch(etcd: Etcd, key: str, there: str) -> Callable[[Mapping[Target, str]], None]:
    """For a dialer's `late`: the search ends when another node serves."""

    def look(seen: Mapping[Target, str]) -> None:
        try:
            now = etcd.get(key)
        except EtcdError:  # it may come back; meanwhile the server may be found without it
            return
        if now != there:
            raise MovedError("the serving node has gone, or has begun without this one")

    return look


class Office:
    """The server's key.

    Args:
        etcd, key: where it is.
        own, lease: its value, and what it hangs on.
        closes: whether late comers must be told that the job has begun.
    """

    def __init__(self, etcd: Etcd, key: str, own: str, lease: str, closes: bool) -> None:
        self._etcd, self._key, self._own, self._lease = etcd, key, own, lease
        self._last = closing(own) if closes else ""
        self._due = time.monotonic() + LEASE_S / 3
        self._work: Beside | None = None

    def keep(self) -> None:
        """Refresh the lease when it is due, without waiting for it; a failure shows in `leave`."""
        if time.monotonic() > self._due and (self._work is None or self._work.over):
            self._due = time.monotonic() + LEASE_S / 3
            self._rest()
            self._work = Beside(self._refresh)

    def _rest(self) -> None:
        if self._work is not None:
            self._work.finish()
            self._work = None

    def _refresh(self) -> None:
        try:
            if not self._etcd.keep_alive(self._lease):  # it has ended; another node may serve by now
                self._lease = self._etcd.grant(LEASE_S)
                self._etcd.create(self._key, self._own, self._lease)
        except EtcdError:
            pass

    def leave(self) -> None:
        """The roll is complete: give up the key.

        Raises:
            RendezvousError: it was not ours any more, so another node may serve as well; or etcd does not tell.
        """
        self._rest()
        seen, until = "", time.monotonic() + LEAVE_S
        while not seen:
            try:
                if self._left():
                    return
                seen = "the key of this node has ended: etcd did not answer for too long, or this node stood still"
            except EtcdError as error:
                seen = f"etcd: {error}" if isinstance(error, DeniedError) or time.monotonic() > until else ""
                time.sleep(LOOK_S)
        raise RendezvousError("make sure that only one node serves this job", seen, "look at etcd, and start the job again")

    def _left(self) -> bool:
        """Whether the key was our own until now.

        An answer may have been lost and not the question, so what is there afterwards counts. Nothing hangs on the old lease any
        more then; it ends by itself, and the others are waiting.
        """
        lease = self._etcd.grant(CLOSED_S) if self._last else "0"
        return self._etcd.replace(self._key, self._own, self._last, lease) or self._etcd.get(self._key) == self._last
