"""Predicates and strategy texts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.studies import ONE_NODE, make, setting

from slaunch.tune.language.predicate import PredicateError, compile_predicate
from slaunch.tune.language.strategy import compile_any, is_strategy
from slaunch.tune.rules.config import scope_of
from slaunch.tune.space.dimensions import ALIASES
from slaunch.tune.values import Value

SCOPE: dict[str, Value] = {
    **setting(mp_degree=16, pp_degree=2, micro_batch_size=4, use_recompute=True, recompute_granularity="core_attn"),
    **{"num_gpus": 32, "fused": True, "kind": "ring"},
}


def answer(text: str, **values: Value) -> bool:
    return compile_any(text, ["fused", "kind"])({**SCOPE, **values})


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("mp >= 16 and pp == 1", False),
        ("mp >= 16 and pp == 2", True),
        ("mp_degree == 16", True),
        ("mp * pp == gpus", True),
        ("mp * pp > gpus or not fused", False),
        ("1 < pp <= 2", True),
        ("granularity in ('full', 'core_attn')", True),
        ("granularity not in ['full']", True),
        ("kind == 'ring'", True),
        ("mbs % 3 == 1", True),
        ("-mp < -15", True),
        ("mp // 3 + 1 - 2 == 4", True),
        ("recompute", True),
        ("recompute == True and granularity is_not", None),
    ],
)
def test_f224_w07_predicates(text: str, true: bool | None) -> None:
    if true is None:
        with pytest.raises(PredicateError):
            answer(text)
    else:
        assert answer(text) is true


@pytest.mark.parametrize(
    "text",
    [
        *(
            "__import__('os').system('true')",
            "mp.real",
            "[x for x in ()]",
            "lambda: 1",
            "f'{mp}'",
            "mp ** 9",
            "(mp := 1)",
            "mp[0]",
        ),
        *("mp if pp else 1", "mp is None", "~mp", "{1}", "{}", "b'x'", "1j", "...", "*mp", "mp; pp", "import os", "", "mp = 1"),
        *("unknown > 1", "mp >", "(" * 300 + ")" * 300, "1" * 2000, "mp / 2", "mp << 2", "await mp", "yield"),
    ],
)
def test_w07_nothing_else_is_accepted(text: str) -> None:
    with pytest.raises(PredicateError):
        compile_predicate(text, {"mp_degree"}, ALIASES)


@given(st.text(max_size=40))
def test_w07_any_text_is_a_predicate_or_an_error(text: str) -> None:
    try:
        holds = compile_predicate(text, {"mp_degree", "pp_degree"}, ALIASES)
        assert holds({"mp_degree": 2, "pp_degree": 1}) in (True, False)
    except PredicateError:
        pass


@pytest.mark.parametrize("text", ["kind > 1", "kind * 10 == 'x'", "mp // (pp - 2) == 1", "mp in pp"])
def test_predicates_without_an_answer_say_so(text: str) -> None:
    with pytest.raises(PredicateError, match="has no answer"):
        answer(text)


@pytest.mark.parametrize(
    ("text", "values", "true"),
    [
        ("mp16", {}, True),
        ("mp1", {}, False),  # there, only the first digit counts
        ("mp16_pp2", {}, True),
        ("mp16_pp4", {}, False),
        ("pp*", {}, True),
        ("dp*", {}, False),
        ("vpp2", {"vpp_degree": 2}, True),
        ("vpp*", {}, False),
        ("mbs*", {}, True),
        ("mbs4", {}, True),
        ("sharding*", {"sharding_degree": 2}, True),
        ("stage2", {"sharding_stage": 2}, True),
        ("stage*", {"sharding_degree": 4}, True),
        ("stage*", {}, False),
        ("recompute1", {}, True),
        ("recompute0", {}, False),
        ("recompute*", {"use_recompute": False}, False),
        ("granularity2", {}, True),
        ("granularity0", {"recompute_granularity": "full"}, True),
        ("granularity*", {}, True),
        ("granularity*", {"use_recompute": None}, False),
    ],
)
def test_f224_w07_strategy_texts(text: str, values: dict[str, Any], true: bool) -> None:
    assert is_strategy(text)
    assert answer(text, **values) is true


@pytest.mark.parametrize("text", ["granularity3", "mp16_", "xx3", "mp*2_pp1"])
def test_f224_what_is_neither_strategy_nor_predicate(text: str) -> None:
    with pytest.raises(PredicateError):
        compile_any(text, [])


def test_predicates_know_what_follows_from_a_setting() -> None:
    scope = scope_of(make(), ONE_NODE, setting(micro_batch_size=2, dp_degree=4))
    assert compile_any("acc == 2 and gbs == 16 and layers == 8 and cp == 1 and not sp and gpus == 8", [])(scope)
