"""The configuration: every form of every key, and errors that name key and reason."""

import json
import os
from typing import Any

import jsonschema
import pytest
from support.cluster import CHECKOUT
from support.studies import make, raw

from slaunch.errors import UsageError
from slaunch.tune.config.build import build, read_study
from slaunch.tune.config.kinds import mib
from slaunch.tune.config.read import parse
from slaunch.tune.config.table import TOP, json_schema
from slaunch.tune.values import AUTO, Conversion, OwnDimension, Study

WHOLE = (
    *("dp_degree", "mp_degree", "pp_degree", "vpp_degree"),
    *("sharding_degree", "sharding_stage", "micro_batch_size"),
)


def wrong(given: object) -> list[str]:
    """The errors of a configuration, without their mark."""
    with pytest.raises(UsageError) as caught:
        build(given, "tuner.json")
    return [line.removeprefix("- ") for line in caught.value.seen.splitlines()[1:]]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ("auto", AUTO),
        ("AUTO", AUTO),
        (" Auto ", AUTO),
        (2, (2,)),
        ([4, 1, 4], (4, 1)),
        ({"min": 2, "max": 4}, range(2, 5)),
        (None, (1,)),
    ],
)
def test_f156_f157_f158_f159_f160_f161_f162_f163_w32_every_form_of_every_range(name: str, given: object, allowed: object) -> None:
    keys = {} if given is None else {name: given}
    assert make(**keys).ranges[name] == allowed


@pytest.mark.parametrize(
    ("name", "given", "values"),
    [
        ("use_recompute", "Auto", (True, False)),
        ("use_recompute", True, (True,)),
        ("use_recompute", [False, True], (False, True)),
        ("use_recompute", [], (None,)),
        ("recompute_granularity", "auto", ("full", "full_attn", "core_attn")),
        ("recompute_granularity", "Core_Attn", ("core_attn",)),
        ("recompute_granularity", ["full_attn", "FULL"], ("full_attn", "full")),
        ("recompute_granularity", [], (None,)),
        ("sequence_parallel", "auto", (True, False)),
        ("optimizer_offload", False, (False,)),
    ],
)
def test_f164_f165_switches(name: str, given: object, values: tuple[object, ...]) -> None:
    assert make(**{name: given}).switches[name] == values


def test_f170_performance_turns_generated_lists_round() -> None:
    study = make(schedule_mode="Performance", use_recompute="auto", recompute_granularity="auto")
    assert study.order.performance
    assert study.switches["use_recompute"] == (False, True)
    assert study.switches["recompute_granularity"] == ("core_attn", "full_attn", "full")


def test_absent_switches_are_left_to_the_program() -> None:
    study = make()
    assert study.switches == {"use_recompute": (None,), "recompute_granularity": (None,)}


def test_f166_f167_refined_and_own_dimensions() -> None:
    study = make(refined_recompute=["attn", "mlp"], custom_search_dim={"bucket": {"value": [1, "x"], "prune": True}})
    assert study.refined == ("attn", "mlp")
    assert study.own == (OwnDimension("bucket", (1, "x"), prune=True),)


def test_f168_model_measures() -> None:
    model = make(model={"hidden_size": 64, "seq_length": 128, "max_seq_length": 7, "num_experts": 4}).model
    assert (model.global_batch_size, model.hidden_size, model.seq_length, model.num_experts) == (16, 64, 128, 4)


@pytest.mark.parametrize("given", ["auto", None])
def test_a_global_batch_that_is_to_be_searched(given: object) -> None:
    config = raw()
    config["model_cfg"] = {"num_layers": 8} if given is None else {"num_layers": 8, "global_batch_size": given}
    assert build(config, "x.json").model.global_batch_size == 0


@pytest.mark.parametrize(("direction", "up"), [("Maximize", True), ("maximize", True), ("Minimize", False)])
def test_f169_direction(direction: str, up: bool) -> None:
    config = raw()
    config["metric_cfg"] = {"name": "loss", "OptimizationDirection": direction, "combine": "MAX", "warmup": 3, "window": 5}
    metric = build(config, "x.json").metric
    assert (metric.maximize, metric.combine, metric.warmup, metric.window) == (up, "max", 3, 5)


def test_f174_f175_f176_what_restricts_the_space() -> None:
    pruning = make(
        invalid_strategy=["mp8", "pp>1 and mp>1"],
        constraints=["mp * pp <= 16"],
        enable_pp_prune=False,
        enable_mp_prune=False,
        use_sequence_paralel=True,
        assume_slower=False,
    ).pruning
    assert pruning.invalid == ("mp8", "pp>1 and mp>1")
    assert pruning.constraints == ("mp * pp <= 16",)
    assert (pruning.pp_by_nodes, pruning.mp_in_node, pruning.sequence_parallel, pruning.assume_slower) == (
        False,
        False,
        True,
        False,
    )


def test_f177_f178_f179_f180_limits() -> None:
    limits = make(task_limit=5, max_time_per_task=60, warmup_time=300, max_search_time=1000, pause=3, startup_time=9).limits
    assert (limits.tasks, limits.trial_s, limits.first_s, limits.search_s) == (5, 60, 300, 1000)
    assert (limits.pause_s, limits.start_s) == (3, 9)
    usual = make().limits
    assert (usual.tasks, usual.trial_s, usual.first_s, usual.search_s) == (100, 1800, 1800, 0)


@pytest.mark.parametrize(
    ("given", "unit", "wanted"),
    [
        (80, 1024, 81920),
        (80, 1, 80),
        ("80GiB", 1, 81920),
        ("80 gb", 1, 81920),
        ("512M", 1024, 512),
        ("2097152B", 1, 2),
        ("1T", 1, 2**20),
    ],
)
def test_f330_w09_sizes_have_units(given: float | str, unit: float, wanted: float) -> None:
    assert mib(given, unit) == wanted


def test_f181_f182_memory_in_one_unit() -> None:
    study = make(memory_estimation_tool="m.py", buffer="8GiB", max_mem_usage="80GiB")
    assert (study.pruning.estimator, study.pruning.estimator_limit_mib) == ("m.py", 81920)
    assert (study.choice.limit_mib, study.choice.buffer_mib) == (81920, 8192)
    assert make(memory_estimation_tool="m.py", max_mem_usage=80).pruning.estimator_limit_mib == 81920
    alone = make(buffer=1000, max_mem_usage=80000).choice
    assert (alone.limit_mib, alone.buffer_mib) == (80000, 1000)


def test_f171_f183_f184_f185_what_is_done_in_the_end() -> None:
    study = make(mode="LoRA", run_best=False, best_cfg_dir="/b", resume_csv_file_path="h.csv")
    assert (study.choice.thrifty, study.choice.run, study.choice.folder, study.resume_csv) == (True, False, "/b", "h.csv")
    assert not make(mode="Pretrain").choice.thrifty


def test_f186_f187_f188_f189_f190_f192_algorithms() -> None:
    assert make().algorithm.name == "grid"
    assert make(search_algo="random").algorithm.name == "random"
    assert make(search_algo={"name": "gbs"}).algorithm.name == "gbs"
    assert make(search_algo={"name": "customize"}, configs_csv="c.csv").algorithm.rows == "c.csv"
    conversion = {"step_time": "interval", "comm_bw": [100, 200], "model_size_b": 13, "amp": True, "need_unify": True}
    found = make(search_algo={"name": "dp_estimation", "estimated_num_gpus": 32, "conversion": conversion}).algorithm
    assert found.estimated_gpus == 32
    assert found.conversion == Conversion("interval", (100, 200), 13, amp=True, need_unify=True)


def test_f155_all_errors_at_once_each_with_key_and_reason() -> None:
    found = wrong(
        {
            "mp_degre": 2,
            "pp_degree": {"min": 4, "max": 2},
            "dp_degree": True,
            "sharding_stage": [1, "2"],
            "model_cfg": {"num_layer": 8, "global_batch_size": 0},
            "metric_cfg": {"name": ""},
            "run_cmd": {"mp_degree": ["mp"], "pp_degree": ["--pp", ""], "unknown": ["--x"]},
            "task_limit": 0,
        }
    )
    text = "\n".join(found)
    for part in (
        "mp_degre: there is no such key; did you mean mp_degree?",
        "pp_degree: min 4 is above max 2",
        "dp_degree: true is not",
        'sharding_stage[1]: "2" is no whole number',
        "model_cfg.num_layer: there is no such key; did you mean num_layers?",
        "model_cfg.global_batch_size: 0 is not",
        'metric_cfg.name: "" is not a text',
        "metric_cfg.OptimizationDirection: is missing",
        "run_cmd.mp_degree: 'mp' is neither an option",
        "run_cmd.unknown: there is no such dimension",
        "task_limit: 0 is no whole number of at least 1",
    ):
        assert part in text, text
    assert len(found) == 11


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"search_algo": {"name": "grdi"}},
            "search_algo.name: 'grdi' is none of grid, random, gbs, dp_estimation, customize; did you",
        ),
        ({"search_algo": {"name": "customize"}}, "configs_csv: is missing"),
        ({"search_algo": {"name": "dp_estimation"}}, "search_algo.estimated_num_gpus: is missing"),
        ({"memory_estimation_tool": "x.py"}, "max_mem_usage: is missing (memory_estimation_tool"),
        ({"buffer": 5}, "max_mem_usage: is missing (buffer"),
        ({"buffer": -5, "max_mem_usage": 5}, "buffer: -5 is not a number or a size"),
        ({"memory_estimation_tool": "x", "buffer": 5, "max_mem_usage": 80}, "max_mem_usage: write it with its unit"),
        ({"metric_cfg": {"name": "x", "OptimizationDirection": "Up"}}, 'metric_cfg.OptimizationDirection: "Up" is not one of'),
        (
            {"metric_cfg": {"name": "x", "OptimizationDirection": "Maximize", "pattern": "x(1"}},
            "metric_cfg.pattern: 'x(1' is no regular",
        ),
        (
            {"metric_cfg": {"name": "x", "OptimizationDirection": "Maximize", "pattern": "x"}},
            "metric_cfg.pattern: 'x' has no group",
        ),
        ({"oom_patterns": ["("]}, "oom_patterns[0]"),
        ({"invalid_strategy": ["mp8", "mpp>2"]}, "invalid_strategy[1]: 'mpp>2': there is no dimension mpp; did you mean"),
        ({"constraints": ["__import__('os')"]}, "constraints[0]: \"__import__('os')\": `__import__('os')` is not allowed in it"),
        ({"custom_search_dim": {"mp": {"value": [1]}}}, "mp: this name is one of the tuner's own"),
        ({"custom_search_dim": {"x": {"values": [1]}}}, "custom_search_dim.x.values: there is no such key; did you mean value?"),
        ({"refined_recompute": ["a", "a"]}, "refined_recompute: a stands twice"),
        ({"run_cmd": {"mp_degree": ["a.json"]}}, "run_cmd.mp_degree: a.json needs a dotted path"),
        ({"run_cmd": {"refined_recompute": ["--rr"]}}, "run_cmd.refined_recompute: its value is an object"),
        ({"run_cmd": {"search_stage": {"x": ["y", 1]}}}, "run_cmd.search_stage.x: 'y' is neither an option"),
        (
            {"search_algo": {"name": "grid", "sharding_overlap": {"mp": ["--x", 1]}}},
            "search_algo.sharding_overlap.mp: there is no such key",
        ),
        (
            {"search_algo": {"name": "grid", "sharding_overlap": {"sharding_mp": ["--x"]}}},
            "options and values must come in pairs",
        ),
        ({"model_cfg": {"global_batch_size": 8}, "pp_degree": "auto"}, "model_cfg.num_layers: is missing (pp_degree"),
    ],
)
def test_f155_w07_w14_errors_of_keys_that_are_right_by_themselves(keys: dict[str, Any], said: str) -> None:
    assert any(line.startswith(said) or said in line for line in wrong({**raw(), **keys})), wrong({**raw(), **keys})


@pytest.mark.parametrize("given", [[], "x", None, 3])
def test_f155_a_file_that_holds_no_object(given: object) -> None:
    assert wrong(given) == [f"the file: {json.dumps(given)} is no object"]


def test_f155_files_that_cannot_be_read(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_study(str(tmp_path / "no.json"))
    with pytest.raises(UsageError, match=r"ends in \.json"):
        parse("{}", "tuner.txt")
    with pytest.raises(UsageError, match="line 1"):
        parse("{", "tuner.json")
    with pytest.raises(UsageError, match="mp_degree given twice"):
        parse('{"mp_degree": 1, "mp_degree": 2}', "tuner.json")


def test_yaml_and_toml_say_the_same() -> None:
    as_json = parse('{"mp_degree": [1, 2], "metric_cfg": {"name": "x"}}', "a.json")
    assert parse("mp_degree: [1, 2]\nmetric_cfg: {name: x}\n", "a.yaml") == as_json
    assert parse('mp_degree = [1, 2]\n[metric_cfg]\nname = "x"\n', "a.toml") == as_json


def test_the_published_schema_is_the_one_of_the_code() -> None:
    with open(os.path.join(CHECKOUT, "docs", "tuner-schema.json")) as file:
        assert json.load(file) == json_schema(), "run python tests/tools/tuner_docs.py"


GOOD: list[dict[str, Any]] = [
    raw(),
    raw(mp_degree="AUTO", pp_degree={"min": 1, "max": 2}, micro_batch_size=3, use_recompute=[], mode="SFT"),
    raw(search_algo="random", max_mem_usage="80 GiB", run_cmd={"mp_degree": ["--mp", ""], "generate_launch_cfg": True}),
    raw(run_cmd={"mp_degree": {"env": "MP"}, "pp_degree": {"flag": "--pp"}, "dp_degree": {"file": "a.json", "key": "a.b"}}),
    raw(custom_search_dim={"x": {"value": [1, True, "a"], "prune": False}}, schedule_mode=" Performance", **{"$schema": "x"}),
]
BAD: list[dict[str, Any]] = [
    raw(mp_degree="automatic"),
    raw(mp_degree=0),
    raw(mp_degree=[]),
    raw(mp_degree={"min": 1}),
    raw(use_recompute="yes"),
    raw(recompute_granularity=["half"]),
    raw(max_mem_usage="80 apples"),
    raw(run_cmd={"mp_degree": []}),
    raw(run_cmd={"mp_degree": {"env": "X", "flag": "--y"}}),
    raw(custom_search_dim={"x": {"prune": True}}),
    raw(unknown=1),
    {"metric_cfg": {}},
]


@pytest.mark.parametrize("given", GOOD + BAD)
def test_the_schema_and_the_check_agree(given: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    assert validator.is_valid(given) == (given in GOOD) == (not list(TOP.wrong(given, "")))


def test_values_are_whole(tmp_path: Any) -> None:
    path = tmp_path / "tuner.json"
    path.write_text(json.dumps(raw(mp_degree="auto")))
    study = read_study(str(path))
    assert isinstance(study, Study)
    assert study.path == str(path)
