"""Nodes that come to a job that runs already: where they find it, and what the two sides say.

    newcomer → hub   wish             as at a meeting
    hub → newcomer   late             the job has begun
    newcomer → hub   card             its facts
    hub → newcomer   welcome          its index, everybody's facts, and what it has to know to follow another hub; or an error

The hub of the agents listens for them: at `--master`, or where etcd's key says, or, in a Slurm job, at a port that follows from
the job's number. Who comes proves itself by the job's secret, which it finds as at a meeting.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping, Sequence

from slaunch.channel import secret
from slaunch.channel.dial import Caller, Dialer, Target
from slaunch.channel.door import Door
from slaunch.channel.handshake import HandshakeError
from slaunch.channel.listen import listen
from slaunch.channel.secret import Offered
from slaunch.channel.star import HUB, Message
from slaunch.errors import RendezvousError
from slaunch.frozen import dataclass, replace
from slaunch.node.values import NodeFacts
from slaunch.rendezvous.assemble import find_hub
from slaunch.rendezvous.by_hand import new_token
from slaunch.rendezvous.codec import Card, decode_facts, encode_card, encode_facts
from slaunch.rendezvous.gather import check_error, left_alone, listen_to
from slaunch.rendezvous.gatherer import Ground
from slaunch.rendezvous.lateness import LateError
from slaunch.rendezvous.ports import candidate_ports
from slaunch.rendezvous.resolve import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER_S = 30.0
"""How long the hub may take to let a newcomer in."""
SIZE = 1
"""In the place of a meeting's size: nobody who comes late need know it."""


@dataclass(frozen=True)
class Welcome:
    """What a newcomer is told.

    Attributes:
        index: its own.
        hub: the hub's.
        reign, identity, size: for the channel; see `channel.succession`.
        peers: agents that are there.
        attempt, agents, members, record: what it has to know of the attempt; see `Follows`.
        job: the job's name.
        facts: everybody's, its own included.
    """

    index: int
    hub: int
    reign: int
    identity: str
    size: int
    peers: tuple[int, ...]
    attempt: int
    agents: tuple[int, ...]
    members: tuple[int, ...]
    record: tuple[tuple[float, ...], int, int]
    job: str
    facts: tuple[NodeFacts, ...]


def body(welcome: Welcome) -> tuple[dict[str, object], bytes]:
    """The welcome as a message and its blob."""
    words = {name: value for name, value in welcome.__dict__.items() if name != "facts"}
    return {"welcome": words}, json.dumps([encode_facts(each) for each in welcome.facts]).encode()


def read_welcome(message: Message) -> Welcome:
    """The inverse of `body`."""
    words: dict[str, Any] = dict(message.body["welcome"])
    restarts, *rest = words["record"]
    for name in ("peers", "agents", "members"):
        words[name] = tuple(words[name])
    facts = tuple(decode_facts(each) for each in json.loads(message.blob))
    return Welcome(**{**words, "record": (tuple(restarts), *rest), "facts": facts})


def come_in(late: LateError, facts: NodeFacts) -> Welcome:
    """The newcomer's part, once it has found the hub.

    Raises:
        RendezvousError: the hub does not want it, or does not answer.
    """
    facts = replace(facts, machine=f"{facts.machine}/{os.getpid()}")  # it counts as a node, even where an agent was before
    late.spoke.send(HUB, {"card": facts.host}, encode_card(Card(0, SIZE, "", b"", facts)))
    until = time.monotonic() + ANSWER_S
    found: list[Message] = []
    for item in listen_to(late.spoke, lambda: not found, until):
        check_error(item)
        if isinstance(item, Message) and "welcome" in item.body:
            found.append(item)
    if not found:
        raise left_alone(f"the running job has not let this node in within {ANSWER_S:g} s")
    return read_welcome(found[0])


def slurm_identity(job: str) -> str:
    """Names the reception of a Slurm job. Not the cluster: srun does not tell its name to steps of a job from elsewhere."""
    return f"slurm job {job}/late"


def look_in_job(ground: Ground, hosts: Sequence[str]) -> LateError:
    """The hub of the agents that run in another step of this Slurm job, on one of these hosts.

    Raises:
        RendezvousError: there is none.
    """
    job = ground.task.allocation.job
    identity = slurm_identity(job)
    caller = Caller(identity, new_token(), SIZE, ground.facts.host, os.getpid(), os.urandom(8).hex())
    ips = [ip for host in hosts for ip in resolve(host)] + [address.ip for address in ground.facts.addresses]
    targets = [(ip, port) for port in candidate_ports(identity)[:PORTS] for ip in dict.fromkeys(ips)]
    find = lambda by, hint: secret.find(identity, ground.env, by, hint)  # noqa: E731
    where = f"agent of job {job} that lets nodes in (it does with --nnodes MIN:MAX)"
    dialer = Dialer(targets, caller, find)
    spoke, known = find_hub(dialer, where, ground, time.monotonic() + ground.options.rendezvous_timeout_s)
    spoke.send(HUB, {"wish": [-1, ips[-1], ground.facts.host]})
    return LateError(spoke, known)


PORTS = 3
"""Of the candidate ports, so many are tried by each side: the first one is free nearly always."""


def slurm_doors(job: str, ips: Sequence[str]) -> list[socket.socket]:
    """Where the hub listens in a Slurm job; [] if all ports are taken."""
    for port in candidate_ports(slurm_identity(job))[:PORTS]:
        found = listen(ips, port)
        if found:
            return found
    return []


def offer(identity: str, env: Mapping[str, str], known: bytes) -> Offered:
    """The hub's part: the job's own secret, to be found by those who come late.

    Raises:
        RendezvousError: none of the ways works here.
    """
    try:
        return Offered(Door(identity, known, "munge", secret.credential(identity, known)))
    except HandshakeError as error:
        no_munge = str(error)
    if secret.VARIABLE in env and secret.given(env) == known:
        return Offered(Door(identity, known, "given"))
    path = secret.secret_path(identity, env)
    try:
        secret.write_secret(path, known)
    except OSError as error:
        raise secret.no_secret(no_munge, f"{path}: {error.strerror}") from None
    return Offered(Door(identity, known, "file"), path)


def objection(facts: NodeFacts, first: NodeFacts) -> RendezvousError | None:
    """Why a newcomer cannot take part; None if it can."""
    for what, own, others in (
        ("slaunch and Python", facts.versions, first.versions),
        ("program (its content or the options)", facts.program_digest, first.program_digest),
    ):
        if own != others:
            seen = f"{what} of {facts.host} differs from that of the job: {own} there, {others} here"
            return RendezvousError("take part in the running job", seen, "start it with the same program, options and slaunch")
    if facts.problems:
        problem = facts.problems[0]
        return RendezvousError(problem.wanted, f"{facts.host}: {problem.seen}", problem.todo)
    return None


def targets_of(facts: NodeFacts) -> tuple[Target, ...]:
    """Where an agent listens."""
    return tuple((address.ip, facts.control_port) for address in facts.addresses)
