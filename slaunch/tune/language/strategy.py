"""Paddle's texts for kinds of settings: `mp8_pp*_recompute1`.

Dimensions are joined by `_`; each is a short name and a number, or `*` for "in use". Unlike there, numbers may have several
digits. `recompute0` and `recompute1` are off and on; `granularity0`, `1`, `2` are full, full_attn and core_attn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set

from slaunch.tune.language.predicate import Predicate, PredicateError, Scope, compile_predicate
from slaunch.tune.space.dimensions import ALIASES, DERIVED, NAMES
from slaunch.tune.values import Value

PART = re.compile(r"(dp|mp|pp|vpp|mbs|sharding|stage|recompute|granularity)(\d+|\*)")
GRANULARITIES = ("full", "full_attn", "core_attn")


def compile_any(text: str, own: Iterable[str]) -> Predicate:
    """The predicate of a strategy text or of an expression.

    Args:
        text: either.
        own: names of the user's own dimensions.

    Raises:
        PredicateError: the text is neither.
    """
    parts = [PART.fullmatch(part) for part in text.strip().split("_")]
    if None in parts:
        return compile_predicate(text, known(own), ALIASES)
    tests = [_test(match[1], match[2]) for match in parts if match]
    return lambda scope: all(test(scope) for test in tests)


def is_strategy(text: str) -> bool:
    """Whether it is a strategy text."""
    return all(PART.fullmatch(part) for part in text.strip().split("_"))


def known(own: Iterable[str]) -> Set[str]:
    """All names that an expression may use."""
    return {*NAMES, *DERIVED, *own}


def _test(name: str, value: str) -> Callable[[Scope], bool]:
    dimension = ALIASES[name]
    if value == "*":
        return _IN_USE.get(name, lambda scope: _above_one(scope, dimension))
    wanted = _wanted(name, int(value))
    return lambda scope: scope.get(dimension) == wanted


def _wanted(name: str, number: int) -> Value:
    if name == "recompute":
        return bool(number)
    if name != "granularity":
        return number
    if number >= len(GRANULARITIES):
        raise PredicateError(f"granularity{number}: the last one is granularity{len(GRANULARITIES) - 1}")
    return GRANULARITIES[number]


def _above_one(scope: Scope, dimension: str) -> bool:
    value = scope.get(dimension)
    return isinstance(value, int) and value > 1


_IN_USE: Mapping[str, Callable[[Scope], bool]] = {
    "mbs": lambda scope: True,
    "stage": lambda scope: _above_one(scope, "sharding_degree"),
    "recompute": lambda scope: bool(scope.get("use_recompute")),
    "granularity": lambda scope: bool(scope.get("use_recompute")),
}
