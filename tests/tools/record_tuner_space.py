"""Record which configurations Paddle's own tuner makes, and which it runs, for the configurations in CASES.

    python tests/tools/record_tuner_space.py         writes tests/data/tuner/<case>.json; needs paddlepaddle 3.3.1

`settings` is the list before any trial. `walk` has the places in that list of the settings that were handed out, in order, where
results come from the made-up machine in tests/support/tuner.py with the case's memory; it is missing where Paddle's search raises
an error, which `error` then tells.
"""

from __future__ import annotations

import copy
import json
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

from support.tuner import memory, speed  # noqa: E402

DATA = os.path.join(TESTS, "data", "tuner")
AUTO = "auto"
MODEL = {"global_batch_size": 16, "num_layers": 8, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 32000}
METRIC = {"name": "tokens_per_sec", "OptimizationDirection": "Maximize"}
DEGREES = {name: AUTO for name in ("dp_degree", "mp_degree", "pp_degree", "sharding_degree")}
ALL = {
    **DEGREES,
    **{name: AUTO for name in ("vpp_degree", "sharding_stage", "micro_batch_size", "use_recompute", "recompute_granularity")},
}


def case(nodes: int, gpus: int, memory_gib: float = 0, **config: object) -> dict[str, object]:
    base = {"model_cfg": MODEL, "metric_cfg": METRIC, "run_cmd": {}, "search_algo": {"name": "grid"}, "task_limit": 100000}
    return {"nodes": nodes, "gpus_per_node": gpus, "memory_gib": memory_gib, "config": {**base, **config}}


ROWS = """\
dp_degree,mp_degree,pp_degree,vpp_degree,micro_batch_size,sharding_degree,sharding_stage,\
use_recompute,recompute_granularity
1,8,1,1,4,1,1,true,full
1,4,2,1,2,1,1,False,
1,2,2,1,2,2,1,TRUE,core_attn
"""

CASES = {
    "everything": case(1, 8, 40, **ALL),
    "everything-fast": case(1, 8, 24, **ALL, schedule_mode="performance"),
    "two-nodes": case(2, 8, 30, **ALL, model_cfg={**MODEL, "num_layers": 12, "global_batch_size": 48}),
    "two-nodes-free": case(2, 4, 30, **ALL, enable_pp_prune=False, enable_mp_prune=False),
    "lists": case(
        1,
        8,
        20,
        dp_degree=[1, 2],
        mp_degree=[4, 1, 2],
        pp_degree=[1, 2],
        sharding_degree=[2, 1, 4],
        sharding_stage=[2, 1],
        micro_batch_size=[4, 1, 2],
        use_recompute=[True, False],
        recompute_granularity=["core_attn", "full"],
    ),
    "few": case(1, 8, 0, dp_degree=AUTO, mp_degree=[8, 4]),
    "data-parallel-forms": case(1, 8, 0, **{**DEGREES, "dp_degree": {"min": 2, "max": 4}}),
    "baseline": case(1, 8, 26, **ALL, need_baseline=True, schedule_prior=["mp*_pp*", "sharding*"]),
    "prior": case(1, 8, 0, **ALL, schedule_prior=["mp4_pp2", "dp2", "recompute0", "stage3_sharding*"]),
    "invalid": case(1, 8, 0, **ALL, invalid_strategy=["mp8"]),
    "invalid-two": case(1, 8, 0, **ALL, invalid_strategy=["mp8", "pp2_recompute1"]),
    "own": case(
        1,
        8,
        30,
        **{**DEGREES, "micro_batch_size": [1, 2], "use_recompute": [True], "recompute_granularity": ["full"]},
        custom_search_dim={"bucket": {"value": [32, 64], "prune": True}, "fused": {"value": [True, False], "prune": False}},
    ),
    "refined": case(
        1,
        8,
        30,
        **{**DEGREES, "micro_batch_size": [1, 2], "use_recompute": AUTO, "recompute_granularity": ["full", "core_attn"]},
        refined_recompute=["op_a", "op_b"],
    ),
    "refined-fast": case(
        1,
        4,
        50,
        **{**DEGREES, "micro_batch_size": [1, 2], "use_recompute": AUTO, "recompute_granularity": AUTO},
        refined_recompute=["op_a", "op_b"],
        schedule_mode="performance",
    ),
    "sequence": case(
        1, 8, 0, **DEGREES, use_sequence_parallel=True, model_cfg={**MODEL, "seq_length": 2052, "num_attention_heads": 12}
    ),
    "without-granularity": case(1, 4, 0, **DEGREES, use_recompute=False),
    "integer": case(1, 8, 0, **{**DEGREES, "mp_degree": 2}),
    "minmax": case(1, 8, 0, **{**DEGREES, "mp_degree": {"min": 2, "max": 4}}),
    "estimation": case(
        1,
        8,
        0,
        **ALL,
        search_algo={"name": "dp_estimation", "estimated_num_gpus": 32},
        model_cfg={**MODEL, "global_batch_size": 64},
    ),
    "estimation-overlap": case(
        1,
        8,
        0,
        **{**DEGREES, "micro_batch_size": [1, 2], "use_recompute": [True], "recompute_granularity": ["full"]},
        search_algo={"name": "dp_estimation", "estimated_num_gpus": 16, "sharding_overlap": {"sharding_mp": ["--a", "b"]}},
    ),
    "batch": case(1, 8, 0, search_algo={"name": "gbs"}, model_cfg={**MODEL, "global_batch_size": AUTO}),
    "batch-32": case(4, 8, 0, search_algo={"name": "gbs"}, model_cfg={**MODEL, "global_batch_size": AUTO}),
    "rows": case(1, 8, 0, search_algo={"name": "customize"}, rows=ROWS),
}


def record(given: dict[str, object]) -> dict[str, object]:
    from paddle.distributed.auto_tuner.tuner import AutoTuner

    config = copy.deepcopy(given["config"])
    assert isinstance(config, dict)
    config |= {"nodes": given["nodes"], "gpus_per_node": given["gpus_per_node"]}
    config["num_gpus"] = config["nodes"] * config["gpus_per_node"]
    if "rows" in config:
        config["configs_csv"] = "/tmp/record_tuner_space.csv"
        with open(config["configs_csv"], "w") as file:
            file.write(config.pop("rows"))
    try:
        tuner = AutoTuner(config)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    settings = [dict(each) for each in tuner.algo.all_tasks]
    table = columns(settings)
    if not given["memory_gib"]:
        return table
    try:
        return {**table, "walk": walk(tuner, settings, float(str(given["memory_gib"])))}
    except Exception as error:
        return {**table, "error": f"{type(error).__name__}: {error}"}


def columns(settings: list[dict[str, object]]) -> dict[str, object]:
    names = list(dict.fromkeys(name for each in settings for name in each))
    return {"columns": names, "settings": [[each.get(name, "-") for name in names] for each in settings]}


def walk(tuner: object, settings: list[dict[str, object]], gib: float) -> list[int]:
    places = []
    while True:
        setting = tuner.search_once()  # type: ignore[attr-defined]
        if setting is None:
            return places
        places.append(settings.index({name: setting[name] for name in settings[0]}))
        fits = memory(setting) <= gib
        setting["time"] = speed(setting) if fits else -1
        setting["max_mem_usage"] = 1000 if fits else "OOM"
        tuner.add_cfg(setting)  # type: ignore[attr-defined]


def main() -> None:
    os.makedirs(DATA, exist_ok=True)
    for name, given in CASES.items():
        made = {"command": "python tests/tools/record_tuner_space.py", "paddle": "3.3.1", **given, **record(given)}
        with open(os.path.join(DATA, f"{name}.json"), "w") as file:
            file.write(json.dumps(made, separators=(",", ":")).replace("],[", "],\n[") + "\n")
        print(name, len(made.get("settings", [])), "settings", len(made.get("walk", [])), "run", made.get("error", ""))


if __name__ == "__main__":
    main()
