"""Candidates, the grid, and its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.studies import DEGREES, ONE_NODE, make, setting

from slaunch.errors import UsageError
from slaunch.tune.config.build import prior as prior_texts
from slaunch.tune.rules.config import RULES, why_not
from slaunch.tune.search.choose import METHODS
from slaunch.tune.space.batch import batch_settings, cube
from slaunch.tune.space.candidates import candidates, divisors
from slaunch.tune.space.grid import chain, grid, whole
from slaunch.tune.space.make import case_of, make_space, prior, reasons
from slaunch.tune.space.order import after_baseline, least_memory, prior_first, shuffled
from slaunch.tune.values import Cluster

TWO_NODES = Cluster(2, 8)
AUTO = {**DEGREES, "vpp_degree": "auto", "micro_batch_size": "auto", "sharding_stage": "auto"}


@pytest.mark.parametrize(("number", "found"), [(1, (1,)), (12, (1, 2, 3, 4, 6, 12)), (16, (1, 2, 4, 8, 16)), (7, (1, 7))])
def test_f194_divisors(number: int, found: tuple[int, ...]) -> None:
    assert divisors(number) == found


def test_f194_f195_f196_f198_generated_values_and_their_order() -> None:
    model = {"num_layers": 12, "global_batch_size": 6}
    found = candidates(make(**AUTO, model=model, use_recompute="auto", recompute_granularity="auto"), TWO_NODES)
    assert found["mp_degree"] == (8, 4, 2, 1)
    assert found["pp_degree"] == (3, 2, 1)
    assert found["sharding_degree"] == (16, 8, 4, 2, 1)
    assert found["dp_degree"] == (1, 2, 4, 8, 16)
    assert found["vpp_degree"] == (1, 2, 3, 4, 6, 12)
    assert found["micro_batch_size"] == (1, 2, 3, 6)
    assert found["sharding_stage"] == (3, 2, 1)
    assert found["use_recompute"] == (True, False)
    assert found["recompute_granularity"] == ("full", "full_attn", "core_attn")


def test_f170_f198_performance_mode_turns_all_but_pipelines_and_sharding_round() -> None:
    study = make(**AUTO, model={"num_layers": 12, "global_batch_size": 6}, schedule_mode="performance")
    found = candidates(study, TWO_NODES)
    assert found["mp_degree"] == (1, 2, 4, 8)
    assert found["pp_degree"] == (3, 2, 1)
    assert found["sharding_degree"] == (16, 8, 4, 2, 1)
    assert found["dp_degree"] == (16, 8, 4, 2, 1)
    assert found["vpp_degree"] == (12, 6, 4, 3, 2, 1)
    assert found["micro_batch_size"] == (6, 3, 2, 1)
    assert found["sharding_stage"] == (1, 2, 3)


def test_f195_pipelines_without_the_limit_by_nodes() -> None:
    assert candidates(make(**AUTO, enable_pp_prune=False), TWO_NODES)["pp_degree"] == (8, 4, 2, 1)


def test_f196_tensor_parallelism_over_nodes_if_wanted() -> None:
    assert candidates(make(**AUTO, enable_mp_prune=False), TWO_NODES)["mp_degree"] == (16, 8, 4, 2, 1)


@pytest.mark.parametrize(
    ("given", "found"), [("auto", (8, 4, 2, 1)), ([1, 3, 4], (4, 1)), (2, (2,)), ({"min": 2, "max": 7}, (4, 2)), ([3], ())]
)
def test_f197_the_users_range(given: object, found: tuple[int, ...]) -> None:
    assert candidates(make(mp_degree=given), ONE_NODE)["mp_degree"] == found


def test_f199_degrees_multiply_to_the_devices() -> None:
    study = make(**AUTO)
    found = list(grid(study, ONE_NODE, candidates(study, ONE_NODE)))
    products = {
        whole(each, "mp_degree") * whole(each, "sharding_degree") * whole(each, "pp_degree") * whole(each, "dp_degree")
        for each in found
    }
    assert products == {8}


def test_f200_batches_and_layers_divide() -> None:
    study = make(**AUTO, model={"num_layers": 6, "global_batch_size": 12})
    for each in grid(study, ONE_NODE, candidates(study, ONE_NODE)):
        assert 12 % (whole(each, "micro_batch_size") * whole(each, "sharding_degree") * whole(each, "dp_degree")) == 0
        assert 6 % (whole(each, "pp_degree") * whole(each, "vpp_degree")) == 0


def test_f201_the_chain_of_refined_recomputation() -> None:
    assert chain(2, 2) == [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert chain(1, 0) == [(0,)]
    assert chain(3, 1) == [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)]


def test_f201_refined_recomputation_only_in_pipelines_with_full_recomputation() -> None:
    study = make(
        **{**DEGREES, "sharding_degree": 1}, use_recompute="auto", recompute_granularity=["full"], refined_recompute=["a", "b"]
    )
    for each in make_space(study, ONE_NODE).settings:
        idle = each["pp_degree"] == 1 or not each["use_recompute"]
        assert not idle or (each["a"], each["b"]) == (0, 0)
    states = [
        (each["a"], each["b"])
        for each in make_space(study, ONE_NODE).settings
        if each["pp_degree"] == 4 and each["use_recompute"]
    ]
    assert states[:5] == [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]


@examples(40)
@given(
    nodes=st.integers(1, 4),
    gpus=st.sampled_from([1, 2, 4, 6, 8]),
    layers=st.integers(1, 16),
    batch=st.integers(1, 32),
    performance=st.booleans(),
)
def test_every_setting_of_a_space_passes_every_rule(nodes: int, gpus: int, layers: int, batch: int, performance: bool) -> None:
    model = {"num_layers": layers, "global_batch_size": batch}
    study = make(**AUTO, model=model, schedule_mode="performance" if performance else "memory")
    cluster = Cluster(nodes, gpus)
    space = make_space(study, cluster)
    case = case_of(study, cluster)
    assert len({tuple(each.items()) for each in space.settings}) == len(space.settings)
    assert all(why_not(case, each) == ("", "") for each in space.settings)
    assert space.total == len(list(grid(study, cluster, case.values)))


def test_f225_every_dropped_setting_has_a_rule_and_a_reason() -> None:
    space = make_space(make(**AUTO), ONE_NODE)
    counts = reasons(space.dropped)
    assert sum(counts.values()) == len(space.dropped) == space.total - len(space.settings)
    assert set(counts) <= {rule.__name__ for rule in RULES}
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert all(each.reason for each in space.dropped)


def test_a_space_without_end_is_refused() -> None:
    study = make(custom_search_dim={f"d{i}": {"value": list(range(300)), "prune": False} for i in range(3)})
    with pytest.raises(UsageError, match="narrow the ranges"):
        make_space(study, Cluster(1, 1))


def test_further_dimensions_are_there_only_if_named() -> None:
    study = make(
        **DEGREES,
        cp_degree="auto",
        ep_degree=[1, 2],
        sequence_parallel="auto",
        optimizer_offload=[False, True],
        use_recompute=[True],
        recompute_layers=[1, 2],
        model={"seq_length": 64, "num_experts": 4},
    )
    space = make_space(study, ONE_NODE)
    assert {"cp_degree", "ep_degree", "sequence_parallel", "optimizer_offload", "recompute_layers"} <= set(space.settings[0])
    assert {each["cp_degree"] for each in space.settings} == {1, 2, 4, 8}
    assert not {"cp_degree", "ep_degree", "recompute_layers"} & set(make_space(make(**DEGREES), ONE_NODE).settings[0])


# -- order --------------------------------------------------------------------------------------------------------------


def test_f172_f222_least_memory_first_then_large_micro_batches() -> None:
    some = [
        setting(mp_degree=mp, micro_batch_size=size, use_recompute=on) for mp in (1, 2) for size in (1, 2) for on in (False, True)
    ]
    first = least_memory(some)
    assert [(each["mp_degree"], each["micro_batch_size"], each["use_recompute"]) for each in first[:3]] == [
        (2, 1, True),
        (2, 1, False),
        (2, 2, True),
    ]
    assert [each["micro_batch_size"] for each in after_baseline(first, ())] == [2, 2, 2, 2, 1, 1, 1, 1]
    assert least_memory([setting(use_recompute=None)]) == [setting(use_recompute=None)]


def test_f173_f223_priorities_move_to_the_front() -> None:
    study = make(**DEGREES, schedule_prior=["pp2", "mp2"])
    found = make_space(study, ONE_NODE).settings
    first = [each for each in found if each["mp_degree"] == 2]
    assert list(found[: len(first)]) == first  # of Paddle's texts, the alphabetically smallest is the strongest
    rest = found[len(first) :]
    assert rest[0]["pp_degree"] == 2
    assert prior_texts(("pp2", "mp2")) == ("mp2", "pp2")
    assert prior_texts(("pp2", "mp == 2")) == ("pp2", "mp == 2")


def test_f223_order_within_a_priority_stays() -> None:
    some = [setting(mp_degree=mp, pp_degree=pp) for mp in (1, 2) for pp in (1, 2)]
    moved = prior_first(some, prior(make(schedule_prior=["pp == 2"]), ONE_NODE))
    assert [(each["mp_degree"], each["pp_degree"]) for each in moved] == [(1, 2), (2, 2), (1, 1), (2, 1)]


def test_w57_random_order_is_repeatable_and_complete() -> None:
    some = [setting(micro_batch_size=size) for size in range(1, 20)]
    assert shuffled(some, 3) == shuffled(some, 3) != some
    assert sorted(shuffled(some, 3), key=lambda each: str(each)) == sorted(some, key=lambda each: str(each))
    study = make(**DEGREES, search_algo={"name": "random", "seed": 7})
    assert {each for each in METHODS} == {"grid", "random", "gbs", "dp_estimation", "customize"}
    space = METHODS["random"].space(study, ONE_NODE)
    search = METHODS["random"].search(study, ONE_NODE, space.settings)
    order = []
    while (each := search.ask()) is not None:
        order.append(each)
        search.tell(each, ran=False, oom=False)
    assert order != list(space.settings)
    assert len(order) == len(space.settings)


# -- the global batch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "found"), [(8, (2, 2, 2)), (32, (2, 4, 4)), (7, (1, 1, 7)), (64, (4, 4, 4)), (1, (1, 1, 1))])
def test_f282_three_factors_near_the_cube_root(number: int, found: tuple[int, int, int]) -> None:
    assert cube(number) == found


def test_f189_f282_growing_batches() -> None:
    found = batch_settings(make(model={"global_batch_size": "auto"}), ONE_NODE)
    assert [each["micro_batch_size"] for each in found] == [2**i for i in range(10)]
    first = found[0]
    assert (first["sharding_degree"], first["mp_degree"], first["pp_degree"], first["dp_degree"]) == (2, 2, 2, 1)
    assert first["global_batch_size"] == 4  # every replica has as many micro batches as there are stages


def test_f282_degrees_keep_to_the_model_and_to_the_users_ranges() -> None:
    odd = batch_settings(make(model={"num_layers": 7, "global_batch_size": "auto"}), ONE_NODE)[0]
    assert odd["pp_degree"] == 1
    data = batch_settings(make(dp_degree="auto", model={"global_batch_size": "auto"}), ONE_NODE)[0]
    assert (data["dp_degree"], data["sharding_degree"], data["mp_degree"], data["pp_degree"]) == (8, 1, 1, 1)
    with pytest.raises(UsageError, match="widen the ranges"):
        batch_settings(make(dp_degree=3, model={"global_batch_size": "auto"}), ONE_NODE)
