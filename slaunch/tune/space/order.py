"""The order in which settings are tried. Pure; all sorts are stable."""

from __future__ import annotations

import random
from collections.abc import Sequence

from slaunch.tune.language.predicate import Predicate
from slaunch.tune.space.grid import whole
from slaunch.tune.values import Setting


def least_memory(settings: Sequence[Setting]) -> list[Setting]:
    """Those that need least memory first: for the search of a baseline."""
    return sorted(settings, key=_memory)


def _memory(setting: Setting) -> tuple[float, ...]:
    recompute = setting.get("use_recompute")
    return (
        -whole(setting, "mp_degree"),
        -whole(setting, "pp_degree"),
        -whole(setting, "vpp_degree"),
        -whole(setting, "sharding_degree"),
        -whole(setting, "sharding_stage"),
        whole(setting, "micro_batch_size"),
        -float(bool(recompute)),
    )


def after_baseline(settings: Sequence[Setting], prior: Sequence[Predicate]) -> list[Setting]:
    """Large micro batches first, once something ran; then the user's priorities again."""
    return prior_first(sorted(settings, key=lambda setting: -whole(setting, "micro_batch_size")), prior)


def prior_first(settings: Sequence[Setting], prior: Sequence[Predicate]) -> list[Setting]:
    """Settings that a predicate matches move to the front, in their order; the first predicate is the strongest."""
    found = list(settings)
    for matches in reversed(prior):
        front = [setting for setting in found if matches(setting)]
        found = front + [setting for setting in found if not matches(setting)]
    return found


def shuffled(settings: Sequence[Setting], seed: int) -> list[Setting]:
    """A random order that is the same for the same seed."""
    found = list(settings)
    random.Random(seed).shuffle(found)  # noqa: S311 - an order, no secret
    return found
