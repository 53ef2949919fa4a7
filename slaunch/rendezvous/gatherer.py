"""What every way of meeting offers: an allgather of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slaunch.allocation.values import Task
from slaunch.channel.star import Star
from slaunch.frozen import dataclass
from slaunch.node.values import NodeFacts
from slaunch.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object


@dataclass(frozen=True)
class Ground:
    """All that a way of meeting has to go on.

    Attributes:
        task: this task and its allocation.
        facts: what this task knows of its machine.
        options: what the user asked for.
        env: the environment.
        say: prints a line for the user; on every task but the first it prints nothing.
        fallback: whether another way of meeting follows if this one does not work.
    """

    task: Task
    facts: NodeFacts
    options: Options
    env: Mapping[str, str]
    say: Callable[[str], None]
    fallback: bool = False


class Gatherer(Protocol):
    """Tasks that have found each other.

    Attributes:
        rank, size: this task's place among them. The launcher's, unless the tasks were started one by one.
        secret: the job's secret, if the tasks needed one to meet; else b"".
        lasts: whether they met over a channel that can be the agents' (its hub is task 0).
    """

    rank: int
    size: int
    secret: bytes
    lasts: bool

    def allgather(self, payload: bytes, deadline: float) -> list[bytes]:
        """Everybody's payload, in task-rank order.

        Args:
            payload: this task's.
            deadline: `time.monotonic()` when to give up.

        Raises:
            RendezvousError: not everybody's has come in time.
        """

    def star(self) -> Star | None:
        """The channel over which they met, if it is one; it is then the caller's."""

    def close(self) -> None:
        """End it. Calling it again does nothing."""


class UnusableError(Exception):
    """A way of meeting does not work here; another one may. The text says why."""
