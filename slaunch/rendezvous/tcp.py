"""Meeting of nodes that were started by hand, one by one: at an address that the user names, or that the first one prints.

All nodes run the same command. The one whose own address is named serves, whoever of them comes first if there are several on
that machine; the others join it. Without an address this node serves at a free port and prints how the others join. The server
gives each node its number, if the user has not.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from slaunch.channel.link import brackets
from slaunch.channel.listen import listen
from slaunch.errors import RendezvousError
from slaunch.node.netlink import raw_addresses
from slaunch.rendezvous.by_hand import bounds, tell_how_to_join
from slaunch.rendezvous.endpoints import parse_master
from slaunch.rendezvous.enrol import serve
from slaunch.rendezvous.gather import StarGatherer
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.join import join
from slaunch.rendezvous.resolve import resolve_any


def meet_by_tcp(ground: Ground, deadline: float) -> StarGatherer:
    """Meet at `--master`, or be the place where the others come to.

    Raises:
        RendezvousError: not enough nodes have come in time, or their numbers do not fit together.
        UsageError: `--master` is malformed.
    """
    master = ground.options.master
    if not master:
        own = [address.ip for address in ground.facts.addresses]
        listeners = listen(own, 0)
        tell_how_to_join(ground, brackets(own[0], listeners[0].getsockname()[1]))
        return serve(listeners, ground, deadline)
    host, port = parse_master(master)[0]
    ips = resolve_any(host)
    if not ips:
        raise unknown_host(host)
    listeners = own_listeners(ips, port, ground)
    least, most = bounds(ground)
    if listeners:
        return serve(listeners, ground, deadline, hold=least < most)
    return join([(ip, port) for ip in ips], ground, deadline)


def own_listeners(ips: Sequence[str], port: int, ground: Ground) -> list[socket.socket]:
    """Sockets at the named address, and at this node's other ones; [] if it is another machine's, or another process serves."""
    own = {raw.ip for raw in raw_addresses()}
    mine = [ip for ip in ips if ip in own or ip.startswith("127.")]
    return listen([*mine, *(address.ip for address in ground.facts.addresses)], port) if mine else []


def unknown_host(host: str) -> RendezvousError:
    """The error of a name that leads nowhere."""
    error = RendezvousError(
        f"find the address of {host}",
        "the system's resolver knows none",
        "correct --master, or /etc/hosts or DNS on this node, or give a numeric address",
    )
    error.local = True
    return error
