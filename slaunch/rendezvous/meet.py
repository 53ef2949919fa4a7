"""The meeting of all tasks: every task's facts to every task, agreement on the plan, and the agents' channel."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from slaunch.allocation.values import Task
from slaunch.channel.star import Solo, Star
from slaunch.errors import RendezvousError, SlaunchError
from slaunch.frozen import replace
from slaunch.node.values import NodeFacts
from slaunch.options import Options
from slaunch.rendezvous.choose import Choice, choose
from slaunch.rendezvous.gatherer import Gatherer, Ground, UnusableError
from slaunch.rendezvous.values import Membership
from slaunch.rendezvous.ways import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from types import TracebackType

    from slaunch.rendezvous.codec import Card

FIRST_SHARE = 1 / 3
"""Part of the time that a way may take where another one can follow."""


class Meeting:
    """Tasks that have met. Use it as a context manager.

    Attributes:
        membership: who they are.
        held: sockets that listen on where the tasks came to, if more may come; closed with the meeting.
    """

    def __init__(self, membership: Membership, ground: Ground, gatherer: Gatherer | None, control: list[socket.socket]) -> None:
        self.membership = membership
        self._ground = ground
        self._gatherer = gatherer
        self._control = control
        self.held: tuple[socket.socket, ...] = getattr(gatherer, "held", ())
        self._met_at = time.time()  # about the same moment for all: just after everybody's facts have come

    def agree(self, digest: str) -> None:
        """Make sure that all tasks have made the same plan; compare the clocks by the way.

        Raises:
            AgreementError: they have not.
            RendezvousError: not all have answered in time.
        """
        if self._gatherer:
            from slaunch.rendezvous.check import check_clocks, check_digests

            words = [each.decode().split() for each in self._gathered(f"{digest} {self._met_at:.3f}")]
            check_digests([each[0] for each in words], self.membership.facts)
            for line in check_clocks([float(each[1]) for each in words], self.membership.facts):
                self._ground.say(f"warning: {line}")

    def exchange(self, payload: bytes, deadline: float) -> list[bytes]:
        """Everybody's payload, in task-rank order; before `star`.

        Args:
            payload: this task's.
            deadline: `time.monotonic()` when to give up.

        Raises:
            RendezvousError: not everybody's has come in time.
        """
        if not self._gatherer:
            return [payload]
        try:
            return self._gatherer.allgather(payload, deadline)
        except UnusableError as error:
            raise RendezvousError("hear from all tasks", str(error), "start the job again") from None

    def _gathered(self, words: str) -> list[bytes]:
        assert self._gatherer
        try:
            return self._gatherer.allgather(words.encode(), self._deadline())
        except UnusableError as error:
            todo = "start the job again; --rendezvous slurm avoids MPI"
            raise RendezvousError("compare the plans", str(error), todo) from None

    def star(self) -> Star:
        """The agents' channel: the one over which they met, or a new one. From now on it is the caller's. It survives its hub.

        Raises:
            RendezvousError: not all have come in time.
        """
        if not self._gatherer:
            return Solo()
        from slaunch.rendezvous.agents import lasting, open_star

        found = None if needs_new_star(self._gatherer, self._ground) else self._gatherer.star()
        star = found or open_star(self.membership, self._ground, self._control, self._deadline())
        self._gatherer.close()
        control, self._control = self._control, []
        return lasting(star, self.membership, self._ground, control)

    def close(self) -> None:
        """End the meeting. Calling it again does nothing."""
        if self._gatherer:
            self._gatherer.close()
        for sock in (*self._control, *self.held):
            sock.close()

    def __enter__(self) -> Meeting:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _deadline(self) -> float:
        return time.monotonic() + self._ground.options.rendezvous_timeout_s


def meet(task: Task, facts: NodeFacts, options: Options, env: Mapping[str, str], say: Callable[[str], None]) -> Meeting:
    """Meet all tasks of the job and exchange what everyone knows of itself.

    Args:
        task: this task and its allocation.
        facts: this task's facts.
        options: what the user asked for.
        env: the environment.
        say: prints a line for the user, on the first task only.

    Raises:
        RendezvousError: not all tasks met in time.
        AgreementError: they are not parts of one job as they should be.
        SlaunchError: a node has a local error; all tasks raise it.
    """
    ground = Ground(task, facts, options, env, say)
    choice = choose(task, options, env)
    if choice.library:
        ground = replace(ground, env={**env, "MPI4PY_LIBMPI": choice.library})
    if choice.ways == ("none",):
        return alone(ground, choice.reason)
    return together(ground, choice)


def alone(ground: Ground, reason: str) -> Meeting:
    """The meeting of one task: its own errors are all there is to check."""
    if ground.facts.problems:
        from slaunch.rendezvous.check import raise_problems

        raise_problems([ground.facts])
    return Meeting(Membership((ground.facts,), 0, 0, "none", reason, b""), ground, None, [])


def together(ground: Ground, choice: Choice) -> Meeting:
    """The first way that works. All tasks try the same ones, and a way works for all of them or for none: it needs all."""
    timeout_s = ground.options.rendezvous_timeout_s
    end, reason = time.monotonic() + timeout_s, choice.reason
    for way in choice.ways[:-1]:
        try:
            return by(way, reason, replace(ground, fallback=True), time.monotonic() + timeout_s * FIRST_SHARE)
        except UnusableError as error:
            reason = f"{way} does not work: {error}"
    way = choice.ways[-1]
    try:
        return by(way, reason, ground, end)
    except UnusableError as error:
        raise RendezvousError(f"meet the other tasks by {way}", f"{reason}: {error}", remedy(way, ground)) from None


def remedy(way: str, ground: Ground) -> str:
    """What to do where the last way does not work."""
    if way != "mpi":
        return "start the tasks with srun, or meet by MPI (--rendezvous mpi)"
    if ground.task.slot.rank != 0:
        return ""  # task 0 speaks for all; no reason for thousands of tasks to ask Slurm
    from slaunch.rendezvous.pmi import advice

    return advice(ground.env)


def by(way: str, reason: str, ground: Ground, deadline: float) -> Meeting:
    """Meet in one way.

    Raises:
        UnusableError: it does not work here.
    """
    gatherer = find(way)(ground, deadline)
    control: list[socket.socket] = []
    try:
        if gatherer.size > 1:
            from slaunch.channel.listen import listen_somewhere

            control += listen_somewhere([address.ip for address in ground.facts.addresses])
        port = control[0].getsockname()[1] if control else 0
        cards, secret = exchange(gatherer, ground, port, deadline)
        ground.say(f"met {len(cards)} tasks by {way}: {reason}")
        check(cards, ground, gatherer.rank == 0)
        everybody = proven(tuple(card.facts for card in cards), ground, gatherer, deadline)
    except BaseException:
        gatherer.close()
        for sock in control:
            sock.close()
        raise
    membership = Membership(everybody, gatherer.rank, 0, way, reason, secret, getattr(gatherer, "mark", ""))
    return Meeting(membership, ground, gatherer, control)


def proven(everybody: tuple[NodeFacts, ...], ground: Ground, gatherer: Gatherer, deadline: float) -> tuple[NodeFacts, ...]:
    """Everybody's facts, without addresses on networks that do not join all nodes. One network needs no proof."""
    if all(len(facts.addresses) > 1 for facts in everybody):
        from slaunch.rendezvous.prove import prove

        return prove(everybody, ground, gatherer, deadline)
    return everybody


def needs_new_star(gatherer: Gatherer, ground: Ground) -> bool:
    """Whether the agents need a channel of their own: after MPI, and where node names need not lead to the network asked for."""
    by_name = gatherer.lasts and ground.task.slot.size > 1
    return not gatherer.lasts or (by_name and bool(ground.options.network))


def exchange(gatherer: Gatherer, ground: Ground, control_port: int, deadline: float) -> tuple[list[Card], bytes]:
    """Show everyone's card to everyone; also gives the job's secret, which comes with task 0's card if the tasks had none."""
    from slaunch.channel.secret import fresh
    from slaunch.hashing import sha256
    from slaunch.rendezvous.check import read_cards
    from slaunch.rendezvous.codec import Card, encode_card

    rank, size, allocation = gatherer.rank, gatherer.size, ground.task.allocation
    secret = fresh() if rank == 0 and not gatherer.secret else b""
    facts = replace(ground.facts, control_port=control_port)
    nodes = allocation.nodes
    if ground.task.slot.size != size:  # started one by one: each knows of itself only, and counts as a node even beside another
        nodes, facts = (), replace(facts, machine=f"{facts.machine}/{rank}")
    card = Card(rank, size, sha256(" ".join(nodes).encode()).hexdigest()[:12], secret, facts)
    cards = read_cards(gatherer.allgather(encode_card(card), deadline))
    return cards, gatherer.secret or cards[0].secret


def enough(cards: list[Card], options: Options) -> int:
    """How many nodes without local errors are enough; 0 = all. A machine with several tasks has no agent that could wait."""
    alone = len({card.facts.machine for card in cards}) == len(cards)
    least, most = options.nnodes
    return least if alone and options.elastic and least < most else 0


def check(cards: list[Card], ground: Ground, first: bool) -> None:
    """The tasks must belong together; smaller differences are said. An error on the first task has the nodes that are not fit."""
    from slaunch.rendezvous.check import check_cards, unfit

    try:
        warnings = check_cards(cards, enough(cards, ground.options))
    except SlaunchError as error:
        facts = [card.facts for card in cards]
        error.unfit = tuple((facts[index].host, why) for index, why in unfit(facts).items()) if first else ()
        raise
    for line in warnings:
        ground.say(f"warning: {line}")
