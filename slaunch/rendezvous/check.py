"""What all tasks must have in common before a worker starts, and what is worth a warning. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from slaunch.errors import AgreementError, AllocationError, SlaunchError, UsageError
from slaunch.node.values import NodeFacts
from slaunch.rendezvous.codec import Card, decode_card, read_words
from slaunch.rendezvous.names import some

CLOCK_S = 5.0
"""Clocks that differ by more are worth a warning."""
MISTAKEN = frozenset((UsageError.exit_code, AllocationError.exit_code))
"""Errors in what was said to a node, as a wrong number: another node would have them as well."""


def check_cards(cards: Sequence[Card], least: int = 0) -> list[str]:
    """Compare what all tasks have shown.

    Args:
        cards: in the order of the ranks under which they came.
        least: how many nodes without local errors are enough; 0 = all.

    Returns:
        Warnings, one line each.

    Raises:
        AgreementError: the tasks are not parts of one job as they should be.
        SlaunchError: some of the nodes have local errors; raised as the class of the first of them.
    """
    left_out = [card for card in cards if card.facts.problems]
    if len(cards) - len(left_out) < (least or len(cards)):
        raise_problems([card.facts for card in cards])
    odd = [f"{name(card)} came as task {rank}" for rank, card in enumerate(cards) if card.rank != rank]
    odd += differences("number of tasks", [card.size for card in cards], cards)
    odd += differences("node list", [card.nodes for card in cards], cards, show=False)
    odd += differences("program (its content or the options)", [card.facts.program_digest for card in cards], cards, show=False)
    if odd:
        raise AgreementError(
            "run the same program on all nodes",
            "; ".join(odd),
            "make code, options and environment equal on all nodes (same path, same file, same slaunch)",
        )
    return [*(f"{name(card)} is left out: {card.facts.problems[0].seen}" for card in left_out), *warnings(cards)]


def read_cards(parts: Sequence[bytes]) -> list[Card]:
    """All tasks' cards.

    Raises:
        AgreementError: some were made by another version of slaunch or Python than most.
    """
    cards = [read_words(part) for part in parts]
    usual, most = commonest(card[0] for card in cards)
    odd = [f"{card[1]} (task {rank}): {card[0]}" for rank, card in enumerate(cards) if card[0] != usual]
    if odd:
        raise AgreementError(
            "run the same slaunch on all nodes",
            f"{some(odd)}; the other {most}: {usual}",
            "start all tasks with the same installation (same interpreter, same virtual environment)",
        )
    return [decode_card(card) for card in cards]


def warnings(cards: Sequence[Card]) -> list[str]:
    """Differences that may be intended; those in numbers are, where the job has several components."""
    found = differences("interpreter", [card.facts.python for card in cards], cards)
    if len({card.facts.component for card in cards}) > 1:
        return found
    return [
        *found,
        *differences("number of devices", [len(card.facts.devices) for card in cards], cards),
        *differences("number of workers", [card.facts.workers for card in cards], cards),
    ]


def differences(what: str, values: Sequence[object], cards: Sequence[Card], show: bool = True) -> list[str]:
    """Name the tasks whose value is not the most common one; with a tie, the first task's counts as the common one.

    Args:
        what: what is compared.
        values: each task's.
        cards: whose they are.
        show: whether the values mean something to people.
    """
    usual, most = commonest(values)
    odd = [index for index, value in enumerate(values) if value != usual]
    if not odd:
        return []
    if not show:
        return [f"{what} differs on {some([name(cards[index]) for index in odd])} from the other {most}"]
    shown = some([f"{name(cards[index])}: {values[index]}" for index in odd])
    return [f"{what} differs: {shown}; the other {most}: {usual}"]


def commonest(values: Iterable[object]) -> tuple[object, int]:
    """The most common value, and how often it occurs; with a tie, the one that comes first."""
    return max(Counter(values).items(), key=lambda each: each[1])


def name(card: Card) -> str:
    """A task's name."""
    return f"{card.facts.host} (task {card.rank})"


def raise_problems(facts: Sequence[NodeFacts]) -> None:
    """Raise the local errors of all nodes as one, equal ones together."""
    hosts: dict[tuple[int, str, str, str], list[str]] = {}
    for each in facts:
        for problem in each.problems:
            hosts.setdefault((problem.code, problem.wanted, problem.seen, problem.todo), []).append(each.host)
    if not hosts:
        return
    code, wanted, _, todo = next(iter(hosts))
    seen = "\n        ".join(f"{some(list(dict.fromkeys(where)))}: {problem[2]}" for problem, where in hosts.items())
    raise class_of(code)(wanted, seen, todo)


def unfit(facts: Sequence[NodeFacts]) -> dict[int, str]:
    """Nodes that later jobs had better do without, by their place, and why.

    What is wrong on more than half of them, as the name of a program, is the job's own.
    """
    common = Counter(kind for each in facts for kind in {(problem.code, problem.wanted) for problem in each.problems})
    own = {kind for kind, nodes in common.items() if 2 * nodes <= len(facts) and kind[0] not in MISTAKEN}
    found = ((index, [each for each in one.problems if (each.code, each.wanted) in own]) for index, one in enumerate(facts))
    return {index: problems[0].seen for index, problems in found if problems}


def class_of(code: int) -> type[SlaunchError]:
    """The error class with this exit code."""
    todo = [SlaunchError]
    while todo:
        kind = todo.pop()
        if kind.exit_code == code:
            return kind
        todo += kind.__subclasses__()
    return SlaunchError


def check_digests(digests: Sequence[str], facts: Sequence[NodeFacts]) -> None:
    """All tasks must have made the same plan.

    Raises:
        AgreementError: they have not; it names those that differ from the most.
    """
    usual, most = commonest(digests)
    odd = [f"{facts[rank].host} (task {rank})" for rank, digest in enumerate(digests) if digest != usual]
    if odd:
        raise AgreementError(
            "make the same plan on all nodes",
            f"{some(odd)} made another plan than the {most} others, from the same facts",
            "make slaunch and its options equal on all nodes; if they are, report it as a bug of slaunch",
        )


def check_clocks(stamps: Sequence[float], facts: Sequence[NodeFacts]) -> list[str]:
    """Compare the wall clocks.

    Args:
        stamps: what each task's clock showed at one and the same moment, in seconds since the epoch.
        facts: whose they are.

    Returns:
        Warnings, one line each.
    """
    middle = sorted(stamps)[len(stamps) // 2]
    apart = [stamp - middle for stamp in stamps]
    late = [f"{facts[i].host} (task {i}) {each:+.0f} s" for i, each in enumerate(apart) if abs(each) > CLOCK_S]
    return [f"clocks differ: {some(late)}"] if late else []
