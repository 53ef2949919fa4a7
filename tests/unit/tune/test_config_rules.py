"""Rules over the configuration: each by itself. The name of a rule's tests ends with the rule's name or has it inside."""

from typing import Any

import pytest
from support.studies import ONE_NODE, make, seen, setting

from slaunch.frozen import replace
from slaunch.tune.language.strategy import compile_any
from slaunch.tune.rules.config import RULES, why_not
from slaunch.tune.space.make import case_of
from slaunch.tune.values import Cluster, Setting, Study

BY_NAME = {rule.__name__: rule for rule in RULES}


def dropped(name: str, study: Study, each: Setting, cluster: Cluster = ONE_NODE, accepted: Setting | None = None) -> str:
    case = case_of(study, cluster)
    if accepted is not None:
        case = replace(case, accepted=seen((accepted, "failed")))
    return BY_NAME[name](case, each)


@pytest.mark.parametrize(
    ("keys", "values", "said"),
    [
        ({"mp_degree": [1, 2]}, {"mp_degree": 4}, "mp_degree 4 is not among 1, 2"),
        ({"pp_degree": {"min": 1, "max": 2}}, {"pp_degree": 4}, "pp_degree 4 is not among 1 to 2"),
        ({}, {"sharding_stage": 2}, "sharding_stage 2 is not among 1"),
        ({"mp_degree": "auto"}, {"mp_degree": 4}, ""),
        ({"micro_batch_size": 2}, {"micro_batch_size": 2}, ""),
    ],
)
def test_f202_f203_f204_f205_f206_w32_in_range(keys: dict[str, Any], values: dict[str, Any], said: str) -> None:
    assert dropped("in_range", make(**keys), setting(**values)) == said


@pytest.mark.parametrize(
    ("model", "keys", "degree", "said"),
    [
        ({"hidden_size": 12}, {}, 8, "mp_degree 8 does not divide hidden_size 12"),
        ({"vocab_size": 12}, {}, 8, "mp_degree 8 does not divide vocab_size 12"),
        ({"num_attention_heads": 12}, {}, 8, "mp_degree 8 does not divide num_attention_heads 12"),
        ({"seq_length": 12}, {}, 8, ""),
        ({"seq_length": 12}, {"use_sequence_parallel": True}, 8, "mp_degree 8 does not divide seq_length 12"),
        ({"hidden_size": 16}, {}, 8, ""),
        ({}, {}, 8, ""),
    ],
)
def test_f176_f202_tensor(model: dict[str, int], keys: dict[str, Any], degree: int, said: str) -> None:
    assert dropped("tensor", make(model=model, **keys), setting(mp_degree=degree)) == said


def test_f203_pipeline() -> None:
    assert dropped("pipeline", make(), setting(pp_degree=3)) == "pp_degree 3 does not divide num_layers 8"
    assert dropped("pipeline", make(), setting(pp_degree=4)) == ""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"pp_degree": 4, "vpp_degree": 4}, "num_layers 8 are not divided by 4 stages of 4 chunks"),
        ({"pp_degree": 2, "vpp_degree": 2}, "vpp_degree 2 needs more than 2 pipeline stages"),
        (
            {"pp_degree": 4, "vpp_degree": 2, "micro_batch_size": 8},
            "vpp_degree 2 needs micro batches (2) that pp_degree 4 divides",
        ),
        ({"pp_degree": 4, "vpp_degree": 2, "micro_batch_size": 4}, ""),
        ({"pp_degree": 4, "vpp_degree": 1, "micro_batch_size": 8}, ""),
    ],
)
def test_f204_interleaving(values: dict[str, int], said: str) -> None:
    assert dropped("interleaving", make(), setting(**values)) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"dp_degree": 8, "sharding_degree": 4}, "global_batch_size 16 leaves nothing for some replicas"),
        ({"dp_degree": 4, "micro_batch_size": 3}, "micro_batch_size 3 does not divide the replica's batch of 4"),
        ({"pp_degree": 4, "micro_batch_size": 8}, "2 micro batches cannot fill 4 pipeline stages"),
        ({"pp_degree": 4, "micro_batch_size": 4}, ""),
        ({"global_batch_size": 64, "dp_degree": 8, "sharding_degree": 4}, ""),
    ],
)
def test_f205_micro_batch(values: dict[str, int], said: str) -> None:
    assert dropped("micro_batch", make(), setting(**values)) == said


def test_f206_sharding() -> None:
    study = make(sharding_stage="auto")
    with_pipeline = setting(pp_degree=2, sharding_degree=2, sharding_stage=2)
    assert dropped("sharding", study, with_pipeline) == "sharding_stage 2 does not go with pipeline parallelism"
    assert dropped("sharding", study, {**with_pipeline, "sharding_degree": 1}) == ""
    assert dropped("sharding", study, {**with_pipeline, "sharding_stage": 1}) == ""
    alone = setting(sharding_stage=2)
    other = dropped("sharding", study, alone, accepted=setting(sharding_stage=3))
    assert other == "without sharding this stage is the same as another one"
    assert dropped("sharding", study, alone, accepted=setting(sharding_stage=3, mp_degree=2)) == ""


@pytest.mark.parametrize(
    ("granularities", "kept"),
    [("auto", "full"), (["core_attn", "full"], "full"), (["core_attn", "full_attn"], "core_attn"), (None, None)],
)
def test_f207_recompute(granularities: object, kept: str | None) -> None:
    """Of the settings without recomputation exactly one is left, whatever granularities there are."""
    keys = {} if granularities is None else {"recompute_granularity": granularities}
    study = make(use_recompute="auto", **keys)
    for value in case_of(study, ONE_NODE).values["recompute_granularity"]:
        off = dropped("recompute", study, setting(use_recompute=False, recompute_granularity=value))
        assert (off == "") == (value == kept)
        assert dropped("recompute", study, setting(use_recompute=True, recompute_granularity=value)) == ""


def test_f208_device_count() -> None:
    assert dropped("device_count", make(), setting(mp_degree=2)) == "the degrees make 2 devices, not 8"
    assert dropped("device_count", make(), setting(mp_degree=2, dp_degree=4)) == ""
    assert dropped("device_count", make(), setting(mp_degree=2, cp_degree=4)) == ""
    assert dropped("device_count", make(), setting(mp_degree=2, num_gpus=2)) == ""


@pytest.mark.parametrize(
    ("entries", "values", "said"),
    [
        (["mp8", "pp2"], {"mp_degree": 8}, "it is invalid: mp8"),  # there, only the last entry counts
        (["mp8", "pp2"], {"pp_degree": 2}, "it is invalid: pp2"),
        (["mp >= 4 and mbs == 1"], {"mp_degree": 4}, "it is invalid: mp >= 4 and mbs == 1"),
        (["granularity*"], {"use_recompute": True}, "it is invalid: granularity*"),
        (["granularity*"], {"use_recompute": False}, ""),
        (["mp16"], {"mp_degree": 1}, ""),
        ([], {}, ""),
    ],
)
def test_f210_w07_invalid_strategy(entries: list[str], values: dict[str, Any], said: str) -> None:
    study = make(invalid_strategy=entries)
    assert dropped("invalid_strategy", study, setting(**values)) == said
    assert not entries or compile_any(entries[0], []) is not None


def test_w07_constraint() -> None:
    study = make(constraints=["mp * pp <= 4", "acc >= 2"])
    assert dropped("constraint", study, setting(mp_degree=8)) == "it breaks the constraint mp * pp <= 4"
    assert dropped("constraint", study, setting(micro_batch_size=16)) == "it breaks the constraint acc >= 2"
    assert dropped("constraint", study, setting(mp_degree=2)) == ""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"a": 1, "use_recompute": False}, "refined recomputation without recomputation"),
        ({"a": 1, "recompute_granularity": "core_attn"}, "refined recomputation goes with full recomputation only"),
        ({"a": 1, "pp_degree": 1}, "refined recomputation needs a pipeline"),
        ({"a": 5}, "a 5 is more than the 4 layers of a stage"),
        ({"a": 3, "b": 1}, "b comes after a, which is not spared in all 4 layers"),
        ({"a": 4, "b": 1}, ""),
        ({"a": 0, "pp_degree": 1, "recompute_granularity": "core_attn"}, ""),
    ],
)
def test_f211_refined_recompute(values: dict[str, Any], said: str) -> None:
    study = make(refined_recompute=["a", "b"])
    usual = {"pp_degree": 2, "use_recompute": True, "recompute_granularity": "full", "a": 0, "b": 0}
    assert dropped("refined_recompute", study, setting(**{**usual, **values})) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"recompute_layers": 2, "use_recompute": False}, "recompute_layers 2 without recomputation"),
        ({"recompute_layers": 0, "use_recompute": True}, "recomputation of no layers is the same as none"),
        (
            {"recompute_layers": 3, "use_recompute": True, "pp_degree": 4},
            "recompute_layers 3 is more than the 2 layers of a stage",
        ),
        ({"recompute_layers": 2, "use_recompute": True, "pp_degree": 4}, ""),
        ({"recompute_layers": 0, "use_recompute": False}, ""),
        ({}, ""),
    ],
)
def test_recomputed_layers(values: dict[str, Any], said: str) -> None:
    assert dropped("recomputed_layers", make(recompute_layers="auto"), setting(**values)) == said


def test_sequence_parallel() -> None:
    study = make(sequence_parallel="auto", model={"seq_length": 6})
    on = setting(sequence_parallel=True)
    assert dropped("sequence_parallel", study, on) == "sequence parallelism needs tensor parallelism"
    assert dropped("sequence_parallel", study, {**on, "mp_degree": 4}) == "mp_degree 4 does not divide seq_length 6"
    assert dropped("sequence_parallel", study, {**on, "mp_degree": 2}) == ""
    assert dropped("sequence_parallel", study, setting(sequence_parallel=False)) == ""


def test_context_parallel() -> None:
    study = make(model={"seq_length": 12})
    assert dropped("context_parallel", study, setting(cp_degree=4)) == "twice cp_degree 4 does not divide seq_length 12"
    assert dropped("context_parallel", study, setting(cp_degree=2)) == ""
    assert dropped("context_parallel", study, setting()) == ""


def test_expert_parallel() -> None:
    study = make(model={"num_experts": 6})
    assert dropped("expert_parallel", study, setting(ep_degree=4)) == "ep_degree 4 does not divide num_experts 6"
    assert dropped("expert_parallel", study, setting(ep_degree=2, dp_degree=1)) == "ep_degree 2 does not divide the 1 replicas"
    assert dropped("expert_parallel", study, setting(ep_degree=2, dp_degree=2, sharding_degree=2)) == ""


def test_f221_the_first_rule_that_fires_is_named() -> None:
    case = case_of(make(mp_degree=[1]), ONE_NODE)
    assert why_not(case, setting(mp_degree=2)) == ("in_range", "mp_degree 2 is not among 1")
    assert why_not(case, setting(dp_degree=1)) == ("device_count", "the degrees make 1 devices, not 8")
