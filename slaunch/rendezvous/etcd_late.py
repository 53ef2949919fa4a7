"""The key by which nodes find a running job at an etcd, and which keeps a second job of its name from beginning beside it.

    /slaunch/<job>/server   {"ips": [...], "port": n, "nonce": "<the job's>", "reign": n}      with a lease

It is the key of the meeting. The hub of the agents takes it over, lets its lease begin anew all the time, and removes it in the
end; the next hub puts its own entry in place of the last one's. A hub that finds another job's entry there, or has not been able
to renew its own for nearly as long as the lease lasts, must have its job end: from then on others may begin one of the same name.
A lease alone excludes nobody, as who holds it may stand still; so each step compares what is there (in a transaction of etcd),
and the time that the hub trusts is shorter than the lease, by more than it takes to kill all workers.

The last hub's renewals are not known to the next one. It starts no worker before etcd has its entry. The first hub's workers run
already by then, under what the meeting has left there.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence

from slaunch.frozen import dataclass
from slaunch.options import Options
from slaunch.rendezvous.endpoints import parse_master
from slaunch.rendezvous.etcd_access import access_of
from slaunch.rendezvous.etcd_client import Etcd, EtcdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEASE_S = 120
TRUST_S = 90.0
"""So long after its last renewal the hub counts on its entry. The rest of the lease is for the workers' end, without grace."""
FIRST_S = 25.0
"""So long a hub tries to put its entry there: less than what the meeting has left there lasts (`etcd.CLOSED_S`), with all that
the nodes do between the meeting and their start, and less than they wait for another attempt (`renewal.PREPARE_S`)."""
LINGER_S = 20
"""The entry of a job that has lost a node stays for so long: if that lives, out of reach, it has ended its workers by then."""
RENEW_S = 10.0
AGAIN_S = 1.0
"""After a renewal that has failed."""
TRIES = 3
KEPT, TAKEN = "kept", "taken"


@dataclass(frozen=True)
class Entry:
    """The hub's.

    Attributes:
        options, env: where etcd is, and what it wants to see.
        key: the job's.
        nonce: of this run of the job, the same on all its agents.
        reign: number of the hub.
        mark: what the job's meeting has left there; "" = not known.
    """

    options: Options
    env: Mapping[str, str]
    key: str
    nonce: str
    reign: int
    mark: str = ""

    def text(self, listeners: Sequence[socket.socket]) -> str:
        """What it tells."""
        ips = [sock.getsockname()[0] for sock in listeners]
        port = listeners[0].getsockname()[1]
        return json.dumps({"ips": ips, "port": port, "nonce": self.nonce, "reign": self.reign})


def client(entry: Entry) -> Etcd:
    """A connection to etcd."""
    return Etcd(parse_master(entry.options.master), access_of(entry.options, entry.env))


def renew(entry: Entry, text: str, lease: str) -> list[str]:
    """Keep the entry: [KEPT, its lease] or [TAKEN, what is there]; [] if etcd does not answer.

    Args:
        entry: the hub's.
        text: what it tells.
        lease: as the last renewal has returned it; "" at first.
    """
    try:
        etcd = client(entry)
        if lease and etcd.keep_alive(lease) and etcd.get(entry.key) == text:
            return [KEPT, lease]
        return take(etcd, entry, text)
    except EtcdError:
        return []


def take(etcd: Etcd, entry: Entry, text: str) -> list[str]:
    """Put the entry in place of none, of that of the meeting, or of an earlier hub's of this job."""
    lease = etcd.grant(LEASE_S)
    there = ""
    for _ in range(TRIES):
        there = etcd.create(entry.key, text, lease)
        if not there:
            return [KEPT, lease]
        if not is_earlier(there, entry):
            break
        if etcd.replace(entry.key, there, text, lease):
            return [KEPT, lease]
    etcd.revoke(lease)
    return [TAKEN, there]


def is_earlier(there: str, entry: Entry) -> bool:
    """Whether an entry is that of this job's meeting, or of an earlier hub, or this one's own with another lease."""
    if there == entry.mark:
        return True
    try:
        told: dict[str, Any] = json.loads(there)
        return bool(told["nonce"] == entry.nonce) and int(told["reign"]) <= entry.reign
    except (ValueError, KeyError, TypeError):
        return False


def remove(entry: Entry, text: str, lease: str, clear: bool) -> bool:
    """The job has ended: the key is free, after a while unless it is `clear` that all workers have ended. False: no answer."""
    try:
        etcd = client(entry)
        etcd.replace(entry.key, text, *(("", "0") if clear else (text, etcd.grant(LINGER_S))))
        if lease:
            etcd.revoke(lease)
    except EtcdError:
        return False
    return True
