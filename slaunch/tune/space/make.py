"""From study and machine to the settings to try, with the reason of every setting that is not among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from slaunch.errors import UsageError
from slaunch.frozen import dataclass
from slaunch.tune.language.predicate import Predicate, PredicateError
from slaunch.tune.language.strategy import compile_any
from slaunch.tune.rules.config import Case, scope_of, why_not
from slaunch.tune.rules.considered import Considered
from slaunch.tune.space.candidates import candidates, estimated
from slaunch.tune.space.grid import grid, grid_size
from slaunch.tune.space.order import least_memory, prior_first
from slaunch.tune.values import Cluster, Dropped, Outcome, Setting, Study

LARGEST = 2_000_000
"""Combinations that are looked at, at most: more are a mistake in the ranges, and would take minutes."""


@dataclass(frozen=True)
class Space:
    """The settings to try, in order, and those that rules dropped."""

    settings: tuple[Setting, ...]
    dropped: tuple[Dropped, ...] = ()

    @property
    def total(self) -> int:
        """Settings before the rules."""
        return len(self.settings) + len(self.dropped)


def make_space(study: Study, cluster: Cluster) -> Space:
    """The grid after the rules, in the order of the study.

    Raises:
        UsageError: it is far too large, or a predicate has no answer.
    """
    wide = estimated(study, cluster)
    try:
        space = sift(case_of(study, wide), study, wide)
        ordered = prior_first(space.settings, prior(study, wide))
        if study.order.baseline:
            ordered = least_memory(ordered)
    except PredicateError as error:
        raise UsageError("make the list of settings", str(error), "mend this text in the configuration") from None
    return Space(tuple(ordered), space.dropped)


def sift(case: Case, study: Study, cluster: Cluster) -> Space:
    """The grid, parted by the rules."""
    kept, dropped = [], []
    size = grid_size(study, cluster, case.values)
    if size > LARGEST:
        raise UsageError("make the list of settings", f"{size} combinations, more than {LARGEST}", "narrow the ranges")
    for setting in grid(study, cluster, case.values):
        rule, reason = why_not(case, setting)
        if rule:
            dropped.append(Dropped(setting, rule, reason))
        else:
            kept.append(setting)
            case.accepted.add(Outcome(setting))
    return Space(tuple(kept), tuple(dropped))


def case_of(study: Study, cluster: Cluster) -> Case:
    """What the rules look at, nothing accepted yet."""
    invalid, constraints = study.pruning.invalid, study.pruning.constraints
    own = names_of(study)
    return Case(
        study,
        cluster,
        candidates(study, cluster),
        Considered(),
        tuple((text, compile_any(text, own)) for text in invalid),
        tuple((text, compile_any(text, own)) for text in constraints),
    )


def prior(study: Study, cluster: Cluster) -> tuple[Predicate, ...]:
    """The user's priorities as predicates over settings."""
    scope: Callable[[Setting], Setting] = partial(scope_of, study, cluster)
    return tuple(_over(compile_any(text, names_of(study)), scope) for text in study.order.prior)


def _over(matches: Predicate, scope: Callable[[Setting], Setting]) -> Predicate:
    return lambda setting: matches(scope(setting))


def names_of(study: Study) -> Sequence[str]:
    """Names of the user's own dimensions."""
    return [*(each.name for each in study.own), *study.refined]


def reasons(dropped: Sequence[Dropped]) -> dict[str, int]:
    """How many settings each rule dropped, the most frequent first."""
    counts: dict[str, int] = {}
    for each in dropped:
        counts[each.rule] = counts.get(each.rule, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
