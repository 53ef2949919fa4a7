"""The one normaliser: every form of a range or switch becomes a list of values that the rest of the tuner works with."""

from __future__ import annotations

from slaunch.tune.config.table import GRANULARITIES
from slaunch.tune.values import AUTO, Ints, Value


def ints(value: object, default: Ints = (1,)) -> Ints:
    """The allowed whole numbers of a checked value: "auto" in any case, a number, a list, {min, max}; absent = the default."""
    if value is None:
        return default
    if isinstance(value, str):
        return AUTO
    if isinstance(value, dict):
        return range(value["min"], value["max"] + 1)
    return unique(value) if isinstance(value, list) else (value,)  # type: ignore[return-value]


def switch(value: object, performance: bool) -> tuple[Value, ...]:
    """The values of a switch in the order to try; absent or an empty list = (None,): the program decides."""
    if value is None or value == []:
        return (None,)
    if isinstance(value, str):
        return (False, True) if performance else (True, False)
    return unique(value) if isinstance(value, list) else (bool(value),)


def granularity(value: object, performance: bool) -> tuple[Value, ...]:
    """The granularities in the order to try; absent or an empty list = (None,)."""
    if value is None or value == []:
        return (None,)
    if isinstance(value, list):
        return unique([each.strip().lower() for each in value])
    word = str(value).strip().lower()
    if word != "auto":
        return (word,)
    return GRANULARITIES[::-1] if performance else GRANULARITIES


def unique(values: list[Value]) -> tuple[Value, ...]:
    """The values without repetitions, in order. 1 and true are two values."""
    return tuple(value for _, value in dict.fromkeys((type(value), value) for value in values))
