"""Keeps a running job's entry at an etcd, by errands; notices when the job must end since it cannot count on it any more."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from functools import partial
from math import inf

from slaunch.agent.errand import Errand
from slaunch.agent.events import Fenced
from slaunch.errors import RendezvousError
from slaunch.node.values import Problem
from slaunch.rendezvous.etcd_client import CALL_S
from slaunch.rendezvous.etcd_late import AGAIN_S, FIRST_S, KEPT, RENEW_S, TRUST_S, Entry, remove, renew

ERRAND_S = 8 * CALL_S
"""A renewal makes a few calls, each of which may try several servers."""
CLOSE_S = 5.0
"""The agent that ends waits so long for an etcd that does not answer. The entry vanishes with its lease then."""


class Keeper:
    """One hub's.

    Args:
        entry, listeners: what the entry tells.
        selector, spared: the agent's; see `Errand`.

    Attributes:
        kept: the entry has been put there. Until then an agent that has become the hub starts no workers.
        due: when `tick` has something to do, on the monotonic clock.
    """

    def __init__(
        self, entry: Entry, listeners: Sequence[socket.socket], selector: selectors.BaseSelector, spared: set[int]
    ) -> None:
        self._entry, self._text = entry, entry.text(listeners)
        self._place = selector, spared
        self._lease = ""
        self._trust_until = time.monotonic() + FIRST_S
        self.kept = False
        self._taken = ""
        self._asked_at = 0.0
        self._errand: Errand | None = None
        self.due = 0.0

    def tick(self, now: float) -> list[Fenced]:
        """Renew the entry, if it is time; tells once if the job must end."""
        if self._errand:
            self._errand.tick(now)
        if now >= self.due and (self._errand is None or self._errand.over):
            self.due, self._asked_at = now + RENEW_S, now
            work = partial(renew, self._entry, self._text, self._lease)
            self._errand = Errand(work, self._done, ERRAND_S, *self._place)
        if self._taken or now > self._trust_until:
            self._trust_until, seen, self._taken = inf, self._why(), ""
            return [Fenced(problem(seen))]
        return []

    def _why(self) -> str:
        if self._taken:
            return f"{self._entry.key} at {self._entry.options.master} has another entry: {self._taken[:200]}"
        if not self.kept:
            return f"{self._entry.options.master} has not taken {self._entry.key} from this node within {FIRST_S:g} s"
        return f"{self._entry.options.master} has not renewed {self._entry.key} for {TRUST_S:g} s"

    def _done(self, said: list[str] | None) -> None:
        if not said:
            self.due = time.monotonic() + AGAIN_S
        elif said[0] == KEPT:
            self.kept, self._lease = True, said[1]
            self._trust_until = max(self._trust_until, self._asked_at + TRUST_S) if self._trust_until < inf else inf
        else:
            self._taken = said[1] or "none"

    def close(self, clear: bool) -> None:
        """The job has ended. `clear`: all its workers certainly have."""
        until = time.monotonic() + CLOSE_S
        if self._errand:
            self._errand.due = min(self._errand.due, until)
            self._errand.finish()
        work = partial(remove, self._entry, self._text, self._lease, clear)
        Errand(work, lambda said: None, max(AGAIN_S, until - time.monotonic()), *self._place).finish()


def problem(seen: str) -> Problem:
    """Why the job must end."""
    wanted = "go on, as another job of this name may begin"
    return Problem(RendezvousError.exit_code, wanted, seen, "look at etcd, and start the job again")
