"""Rules over the history: each by itself, then chained."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.studies import DEGREES, ONE_NODE, make, seen, setting

from slaunch.tune.rules.considered import Considered
from slaunch.tune.rules.history import RULES, expect
from slaunch.tune.search.ladder import Ladder
from slaunch.tune.search.walk import Walk
from slaunch.tune.space.make import make_space
from slaunch.tune.values import Outcome, Setting, Study

BY_NAME = {rule.__name__: rule for rule in RULES}


def expected(name: str, study: Study, old: Setting, end: str, new: Setting) -> tuple[bool, str] | None:
    found = BY_NAME[name](study, new, seen((old, end)))
    return None if found is None else (found.oom, found.reason)


OFF = {"use_recompute": False}


@pytest.mark.parametrize(
    ("old", "end", "new", "oom"),
    [
        ({"mp_degree": 4, "pp_degree": 1, **OFF}, "oom", {"mp_degree": 2, "pp_degree": 2, **OFF}, True),
        ({"mp_degree": 4, "pp_degree": 1, **OFF}, "ran", {"mp_degree": 2, "pp_degree": 2, **OFF}, None),
        ({"mp_degree": 4, "pp_degree": 2, **OFF}, "oom", {"mp_degree": 2, "pp_degree": 2, **OFF}, None),
        ({"mp_degree": 1, "pp_degree": 4, **OFF}, "oom", {"mp_degree": 2, "pp_degree": 2, **OFF}, None),
        ({"mp_degree": 4, "use_recompute": True}, "oom", {"mp_degree": 2, "pp_degree": 2, "use_recompute": True}, None),
    ],
)
def test_f212_w33_tensor_or_pipeline(old: dict[str, Any], end: str, new: dict[str, Any], oom: bool | None) -> None:
    found = expected("tensor_or_pipeline", make(), setting(**old), end, setting(**new))
    assert found == (None if oom is None else (oom, "mp_degree 4 with pp_degree 1 lacked memory"))


@pytest.mark.parametrize(
    ("old", "end", "new", "oom"),
    [
        ({"vpp_degree": 4}, "oom", {"vpp_degree": 2}, True),
        ({"vpp_degree": 4}, "ran", {"vpp_degree": 2}, None),
        ({"vpp_degree": 2}, "oom", {"vpp_degree": 4}, None),
        ({"vpp_degree": 2}, "oom", {"vpp_degree": 1}, None),  # without interleaving a pipeline keeps fewer activations
        ({"vpp_degree": 4, "pp_degree": 8}, "oom", {"vpp_degree": 2, "pp_degree": 4}, None),  # there, pp does not count
    ],
)
def test_f213_w06_interleaving(old: dict[str, Any], end: str, new: dict[str, Any], oom: bool | None) -> None:
    usual = {"pp_degree": 4}
    found = expected("interleaving", make(), setting(**{**usual, **old}), end, setting(**{**usual, **new}))
    assert found == (None if oom is None else (oom, "vpp_degree 4 lacked memory"))


@pytest.mark.parametrize(
    ("name", "old", "end", "new", "oom", "reason"),
    [
        (
            "micro_batch",
            {"micro_batch_size": 4},
            "ran",
            {"micro_batch_size": 2},
            False,
            "micro_batch_size 4 ran and is thought to be faster",
        ),
        ("micro_batch", {"micro_batch_size": 2}, "oom", {"micro_batch_size": 4}, True, "micro_batch_size 2 lacked memory"),
        ("micro_batch", {"micro_batch_size": 2}, "ran", {"micro_batch_size": 4}, None, ""),
        ("micro_batch", {"micro_batch_size": 4}, "oom", {"micro_batch_size": 2}, None, ""),
        ("micro_batch", {"micro_batch_size": 4}, "failed", {"micro_batch_size": 2}, None, ""),
        ("micro_batch", {"micro_batch_size": 4, "mp_degree": 2}, "ran", {"micro_batch_size": 2}, None, ""),
        (
            "sharding",
            {"sharding_stage": 1},
            "ran",
            {"sharding_stage": 2},
            False,
            "sharding_stage 1 ran and is thought to be faster",
        ),
        ("sharding", {"sharding_stage": 3}, "oom", {"sharding_stage": 2}, True, "sharding_stage 3 lacked memory"),
        ("sharding", {"sharding_stage": 2}, "ran", {"sharding_stage": 1}, None, ""),
        ("sharding", {"sharding_stage": 1}, "oom", {"sharding_stage": 2}, None, ""),
    ],
)
def test_f214_f215_micro_batch_sharding(
    name: str, old: dict[str, Any], end: str, new: dict[str, Any], oom: bool | None, reason: str
) -> None:
    assert expected(name, make(), setting(**old), end, setting(**new)) == (None if oom is None else (oom, reason))


def recomputing(granularity: str | None) -> Setting:
    return setting(use_recompute=granularity is not None, recompute_granularity=granularity or "full")


@pytest.mark.parametrize(
    ("old", "end", "new", "oom", "reason"),
    [
        (None, "ran", "full", False, "no recomputation ran and is thought to be faster"),
        ("core_attn", "ran", "full_attn", False, "recomputation (core_attn) ran and is thought to be faster"),
        ("full", "oom", "core_attn", True, "recomputation (full) lacked memory"),
        ("full", "oom", None, True, "recomputation (full) lacked memory"),
        (None, "oom", "full", None, ""),
        ("full", "ran", "core_attn", None, ""),
    ],
)
def test_f216_recompute(old: str | None, end: str, new: str | None, oom: bool | None, reason: str) -> None:
    assert expected("recompute", make(), recomputing(old), end, recomputing(new)) == (None if oom is None else (oom, reason))


def test_f216_recompute_without_a_granularity_is_full() -> None:
    old = setting(use_recompute=True, recompute_granularity=None)
    new = setting(use_recompute=False, recompute_granularity=None)
    assert expected("recompute", make(), old, "oom", new) == (True, "recomputation (full) lacked memory")


def test_f217_overlap() -> None:
    plain = setting(num_gpus=2, nodes=1)
    trial = setting(sharding_degree=2, num_gpus=4, nodes=1, sharding_overlap=False)
    assert expected("overlap", make(), plain, "failed", trial) == (False, "the same setting without sharding had no result")
    assert expected("overlap", make(), plain, "ran", trial) is None
    assert expected("overlap", make(), {**plain, "mp_degree": 2}, "ran", trial) is not None
    assert expected("overlap", make(), plain, "failed", plain) is None


@pytest.mark.parametrize(
    ("old", "end", "new", "oom"),
    [
        ({"use_recompute": False, "a": 0}, "ran", {"a": 2}, False),
        ({"a": 2}, "ran", {"a": 1}, False),
        ({"a": 1}, "oom", {"a": 2}, True),
        ({"a": 1}, "ran", {"a": 2}, None),
        ({"a": 2}, "oom", {"a": 1}, None),
        ({"use_recompute": False, "a": 0}, "oom", {"a": 1}, None),
    ],
)
def test_f218_refined_recompute(old: dict[str, Any], end: str, new: dict[str, Any], oom: bool | None) -> None:
    usual = {"use_recompute": True, "recompute_granularity": "full", "pp_degree": 2}
    study = make(refined_recompute=["a"])
    found = expected("refined_recompute", study, setting(**{**usual, **old}), end, setting(**{**usual, **new}))
    assert (None if found is None else found[0]) is oom


@pytest.mark.parametrize(
    ("old", "end", "new", "said"),
    [
        ({"fuse": "a"}, "ran", {"fuse": "b"}, (False, "fuse a ran and comes before")),
        ({"fuse": "b"}, "ran", {"fuse": "a"}, None),
        ({"fuse": "a"}, "oom", {"fuse": "b"}, None),
        ({"fuse": "a", "free": 1}, "ran", {"fuse": "b", "free": 2}, None),
        ({"fuse": "a", "fuse_more": 1}, "ran", {"fuse": "b", "fuse_more": 2}, None),  # there, names inside names are mixed up
    ],
)
def test_f219_w06_own_dimension(old: dict[str, Any], end: str, new: dict[str, Any], said: object) -> None:
    study = make(custom_search_dim={"fuse": {"value": ["a", "b"], "prune": True}, "free": {"value": [1, 2], "prune": False}})
    assert expected("own_dimension", study, setting(**old), end, setting(**new)) == said


def test_recomputed_layers() -> None:
    def layers(number: int) -> Setting:
        return setting(use_recompute=number > 0, recompute_layers=number)

    assert expected("recomputed_layers", make(), layers(1), "ran", layers(2)) is not None
    assert expected("recomputed_layers", make(), layers(2), "oom", layers(0)) == (True, "recompute_layers 2 lacked memory")
    assert expected("recomputed_layers", make(), layers(1), "oom", layers(2)) is None
    assert expected("recomputed_layers", make(), setting(), "ran", setting(mp_degree=2)) is None


def test_optimizer_offload() -> None:
    on, off = setting(optimizer_offload=True), setting(optimizer_offload=False)
    assert expected("optimizer_offload", make(), off, "ran", on) is not None
    assert expected("optimizer_offload", make(), on, "oom", off) == (True, "with optimizer_offload it lacked memory")
    assert expected("optimizer_offload", make(), on, "ran", off) is None


# -- together -----------------------------------------------------------------------------------------------------------


def test_f220_skipped_settings_count_as_expected_so_that_skips_chain() -> None:
    """stage 3 lacks memory -> stage 2 would -> and with it a larger micro batch, which no trial speaks of."""
    chain = [setting(sharding_stage=3), setting(sharding_stage=2), setting(sharding_stage=2, micro_batch_size=2)]
    walk = Walk(make(), chain)
    assert walk.ask() == chain[0]
    walk.tell(chain[0], ran=False, oom=True)
    assert walk.ask() is None
    assert [(each.rule, each.reason) for each in walk.skipped] == [
        ("sharding", "sharding_stage 3 lacked memory"),
        ("micro_batch", "micro_batch_size 1 lacked memory"),
    ]


def test_guesses_of_speed_can_be_switched_off() -> None:
    old, new = setting(micro_batch_size=4), setting(micro_batch_size=2)
    assert expect(make(), new, seen((old, "ran"))) is not None
    assert expect(make(assume_slower=False), new, seen((old, "ran"))) is None
    assert expect(make(assume_slower=False), old, seen((new, "oom"))) is not None


def test_f187_a_walk_tries_everything_that_nothing_speaks_against() -> None:
    study = make(**DEGREES, micro_batch_size="auto")
    space = make_space(study, ONE_NODE)
    walk = Walk(study, space.settings, rules=())
    found = []
    while (each := walk.ask()) is not None:
        found.append(each)
        walk.tell(each, ran=True, oom=False)
    assert found == list(space.settings)
    assert (walk.left, walk.skipped) == (0, [])


def test_f189_f282_the_ladder_ends_with_the_first_that_does_not_run() -> None:
    steps = [setting(micro_batch_size=size) for size in (1, 2, 4, 8)]
    ladder = Ladder(steps)
    for step, ran in ((steps[0], True), (steps[1], True), (steps[2], False)):
        assert ladder.ask() == step
        ladder.tell(step, ran, oom=not ran)
    assert ladder.ask() is None
    assert ladder.best == steps[1]
    assert [each.setting for each in ladder.skipped] == steps[3:]


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans(), st.sampled_from(["ran", "oom", "failed"])), max_size=20
    ),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans()),
)
def test_w06_the_index_finds_what_a_search_finds(old: list[tuple[int, int, bool, str]], new: tuple[int, int, bool]) -> None:
    """`Considered.beside` against the definition: equal in every dimension but the named ones."""

    def made(mp: int, size: int, on: bool) -> Setting:
        return setting(mp_degree=mp, micro_batch_size=size, use_recompute=on)

    found = Considered()
    latest: dict[str, Outcome] = {}
    for mp, size, on, end in old:
        outcome = Outcome(made(mp, size, on), ran=end == "ran", oom=end == "oom")
        found.add(outcome)
        latest[str(outcome.setting)] = outcome
    for names in ((), ("mp_degree",), ("micro_batch_size", "use_recompute")):
        wanted = made(*new)
        slow = [
            outcome
            for outcome in latest.values()
            if all(outcome.setting[name] == value for name, value in wanted.items() if name not in names)
        ]
        assert found.beside(wanted, *names) == slow
