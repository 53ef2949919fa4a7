"""Ranking, and the choice of the best. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from slaunch.frozen import replace
from slaunch.tune.trial.values import Record
from slaunch.tune.values import Choice, Limits, Metric, same

THRIFTY = 4
"""Among how many of the fastest the one with least memory is taken."""


def ranked(records: Sequence[Record], maximize: bool) -> list[Record]:
    """Best first; those without a result last; of equals the earlier one first."""

    def place(record: Record) -> float:
        if record.metric is None:
            return math.inf
        return -record.metric if maximize else record.metric

    return sorted(sorted(records, key=lambda record: record.number), key=place)


def best(records: Sequence[Record], metric: Metric, choice: Choice) -> Record | None:
    """The record to run at the end; None if nothing has a result."""
    good = [record for record in ranked(averaged(records), metric.maximize) if record.ran]
    if not good:
        return None
    if choice.buffer_mib >= 0:
        return with_room(good, choice.limit_mib - choice.buffer_mib)
    if choice.thrifty:
        return least_memory(good[:THRIFTY])
    return good[0]


def with_room(good: Sequence[Record], most_mib: float) -> Record:
    """The first whose memory is known and below this; if there is none, the one with least; if none is known, the first."""
    known = [record for record in good if record.memory_mib is not None]
    fitting = [record for record in known if (record.memory_mib or 0.0) < most_mib]
    return fitting[0] if fitting else least_memory(known or good)


def least_memory(good: Sequence[Record]) -> Record:
    """The one with least memory; memory that is not known counts as most; of equals the better one."""
    return min(good, key=lambda record: math.inf if record.memory_mib is None else record.memory_mib)


def averaged(records: Sequence[Record]) -> list[Record]:
    """One record for each setting: repeated ones with the mean of their results, and the most memory of them."""
    groups: dict[object, list[Record]] = {}
    for record in records:
        groups.setdefault(same(record.setting) if record.ran else record.number, []).append(record)
    return [mean_of(group) for group in groups.values()]


def mean_of(group: Sequence[Record]) -> Record:
    """The first of a setting's records, with the mean of all."""
    if len(group) == 1:
        return group[0]
    values = [record.metric for record in group if record.metric is not None]
    known = [record.memory_mib for record in group if record.memory_mib is not None]
    return replace(group[0], metric=round(math.fsum(values) / len(values), 5), memory_mib=max(known, default=None))


def near_ties(records: Sequence[Record], metric: Metric, limits: Limits) -> list[Record]:
    """Settings to run again: their results come near the best one's, and they have not been repeated often enough.

    Near is: within the share `near` of it, or within both confidence intervals. A best one that stands alone is not repeated.
    """
    counts: dict[object, int] = {}
    for record in records:
        if record.ran:
            counts[same(record.setting)] = counts.get(same(record.setting), 0) + 1
    good = [record for record in ranked(averaged(records), metric.maximize) if record.ran]
    near = [record for record in good if close(record, good[0], limits.near)]
    if len(near) < 2:
        return []
    return [record for record in near if counts[same(record.setting)] <= limits.repeats]


def close(record: Record, first: Record, near: float) -> bool:
    """Whether a result cannot be told from the best one."""
    assert record.metric is not None
    assert first.metric is not None
    gap = abs(first.metric - record.metric)
    return gap <= near * abs(first.metric) or gap <= (record.error or 0.0) + (first.error or 0.0)
