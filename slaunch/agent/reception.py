"""Where nodes come to the running job: the hub's agent lets them in one by one, looks at their facts and hands them over."""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Callable, Sequence
from math import inf

from slaunch.agent.events import Arrived, Fenced
from slaunch.channel.hub import Hub
from slaunch.channel.secret import Offered
from slaunch.channel.star import Message
from slaunch.errors import RendezvousError
from slaunch.frozen import dataclass
from slaunch.node.values import NodeFacts
from slaunch.rendezvous.codec import decode_card, encode_facts, read_words
from slaunch.rendezvous.late import SIZE, Welcome, body, objection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.keeper import Keeper
    from slaunch.channel.succession import Dynasty
    from slaunch.rendezvous.etcd_late import Entry


@dataclass(frozen=True)
class Way:
    """How nodes come.

    Attributes:
        listeners: sockets at which they knock; () = none could be had.
        offered: what they are offered.
        size: what they call the meeting's size.
        entry: makes the entry by which they find the way, from the number of the hub; None where they know it.
    """

    listeners: Sequence[socket.socket]
    offered: Offered
    size: int = SIZE
    entry: Callable[[int], Entry] | None = None


Doors = Callable[[], Way]
TICK_S = 0.5
COMPLETE = RendezvousError(
    "take part in the running job",
    "it keeps the nodes with which it has begun (--elastic_level -1)",
    "wait for its end, or give this one another name (--job-id)",
)
OWN = 1 << 60
"""The reception's own number among those who come, which are random and smaller."""


class Reception:
    """One agent's; closed unless it is the hub of a job that can grow.

    Args:
        doors: opens the way.
        first: facts that theirs are compared with.
        say: tells the user a line.
        takes: whether nodes may take part. Else they come to hear that the job runs, and begin no other one of its name.
    """

    def __init__(self, doors: Doors, first: NodeFacts, say: Callable[[str], None], takes: bool = True) -> None:
        self._takes = takes
        self._doors = doors
        self._first = first
        self._say = say
        self._hub: Hub | None = None
        self._offered: Offered | None = None
        self._keeper: Keeper | None = None
        self.due = inf

    def open(self, reign: int, selector: selectors.BaseSelector, spared: set[int]) -> None:
        """This agent is the hub; `reign`: its number."""
        if self._hub is not None:
            return
        try:
            way = self._doors()
        except RendezvousError as error:
            self._say(f"note: no node can come to the running job: {error.seen}")
            return
        self._offered = way.offered
        if not way.listeners:
            self._say("note: no node can come to the running job: the port for them is taken")
            return
        if way.entry is not None:
            from slaunch.agent.keeper import Keeper

            self._keeper = Keeper(way.entry(reign), way.listeners, selector, spared)
        self._hub = Hub(list(way.listeners), OWN, way.size, way.offered.door, numbered=False)
        self._hub.register(selector)
        self.due = 0.0

    def tick(self, now: float) -> list[Arrived | Fenced]:
        """Who has come, with its facts; and that the job must end."""
        if self._hub is None:
            return []
        self.due = now + TICK_S
        self._hub.tick(now)
        return [*self._come(self._hub), *(self._keeper.tick(now) if self._keeper else ())]

    def _come(self, hub: Hub) -> list[Arrived]:
        return [arrived for item in hub.take() if isinstance(item, Message) and (arrived := self._hear(hub, item))]

    def _hear(self, hub: Hub, item: Message) -> Arrived | None:
        if "wish" in item.body:
            hub.send(item.sender, {"late": True})
        elif "card" in item.body:
            return self._look(hub, item)
        return None

    def _look(self, hub: Hub, item: Message) -> Arrived | None:
        """The facts of one that was made by this version; the words of another one say at least which it is."""
        words = read_words(item.blob)
        own = self._first
        if words[0] != own.versions:
            seen = f"{words[1]} has {words[0]}, the job {own.versions}"
            error: RendezvousError | None = RendezvousError("take part in the running job", seen, "use the same installation")
        else:
            facts = decode_card(words).facts
            error = objection(facts, own) if self._takes else COMPLETE
        if error is not None:
            hub.send(item.sender, {"error": [error.wanted, error.seen, error.todo]})
            self._say(f"note: {words[1]} cannot take part: {error.seen}")
            return None
        return Arrived(item.sender, facts.host, json.dumps(encode_facts(facts)))

    def admit(self, token: int, star: Dynasty, welcome: Welcome) -> None:
        """Hand one over to the agents' star, and tell it so."""
        assert self._hub is not None
        if token in self._hub.peers:  # else it has gone again
            star.adopt(self._hub.release(token), welcome.index)
            star.send(welcome.index, *body(welcome))

    @property
    def waits(self) -> bool:
        """Whether another job of this name may begin: no worker is to be started."""
        return self._keeper is not None and not self._keeper.kept

    def close(self, clear: bool) -> None:
        """Nobody comes in any more. `clear`: the job has ended, and certainly so have all its workers."""
        if self._keeper is not None:
            self._keeper.close(clear)
            self._keeper = None
        if self._hub is not None:
            self._hub.close()
            self._hub, self.due = None, inf
        if self._offered is not None:
            self._offered.withdraw()
            self._offered = None
