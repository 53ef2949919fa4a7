"""The settings, their order, and those that are tried, against what Paddle's own tuner (3.3.1) makes of the same file.

Recorded by tests/tools/record_tuner_space.py. Where the two differ, it is said here how and why; everything else is equal, down
to the order of the columns.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from support.cluster import CHECKOUT
from support.tuner import memory

from slaunch.tune.config.build import build
from slaunch.tune.rules.considered import Considered
from slaunch.tune.rules.history import RULES, Expected, interleaving, tensor_or_pipeline
from slaunch.tune.search.choose import method
from slaunch.tune.search.walk import Walk
from slaunch.tune.space.grid import whole
from slaunch.tune.space.make import prior
from slaunch.tune.space.order import after_baseline
from slaunch.tune.values import Cluster, Setting, Study

DATA = os.path.join(CHECKOUT, "tests", "data", "tuner")
Settings = list[dict[str, Any]]


def load(name: str) -> dict[str, Any]:
    with open(os.path.join(DATA, f"{name}.json")) as file:
        found: dict[str, Any] = json.load(file)
        return found


NAMES = sorted(name.removesuffix(".json") for name in os.listdir(DATA))


def study_of(case: dict[str, Any], tmp_path: Any) -> Study:
    config = dict(case["config"])
    if "rows" in config:
        config["configs_csv"] = str(tmp_path / "rows.csv")
        (tmp_path / "rows.csv").write_text(config.pop("rows"))
    return build(config, "tuner.json")


def theirs(case: dict[str, Any]) -> Settings:
    rows = case.get("settings", [])
    return [{name: value for name, value in zip(case["columns"], row, strict=True) if value != "-"} for row in rows]


def replicas_counted(ours: Settings, paddle: Settings) -> None:
    """Its global batch forgets that sharding splits it: it leaves fewer micro batches than pipeline stages."""
    for mine, other in zip(ours, paddle, strict=True):
        assert mine.pop("vpp_degree") == 1
        assert mine.pop("global_batch_size") == other.pop("global_batch_size") * mine["sharding_degree"]
    assert ours == paddle


def all_entries_count(ours: Settings, paddle: Settings) -> None:
    """W7: of several invalid strategies it heeds the last one only."""
    assert ours == [each for each in paddle if each["mp_degree"] != 8]


def form_is_read(ours: Settings, paddle: Settings) -> None:
    """W32: it cannot read a number, drops everything for {min, max}, and for recomputation off without a granularity."""
    assert ours
    assert paddle == []


DIFFERENCES: dict[str, Callable[[Settings, Settings], None]] = {
    "batch": replicas_counted,
    "batch-32": replicas_counted,
    "invalid-two": all_entries_count,
    "integer": form_is_read,
    "minmax": form_is_read,
    "without-granularity": form_is_read,
}


@pytest.mark.parametrize("name", NAMES)
def test_f187_f188_f189_f190_f197_f199_f276_f277_f282_w07_w32_settings_and_their_order(name: str, tmp_path: Any) -> None:
    case = load(name)
    study = study_of(case, tmp_path)
    space = method(study.algorithm.name).space(study, Cluster(case["nodes"], case["gpus_per_node"]))
    ours, paddle = [dict(each) for each in space.settings], theirs(case)
    if name in DIFFERENCES:
        DIFFERENCES[name](ours, paddle)
        return
    assert ours == paddle
    assert [list(each) for each in ours] == [list(each) for each in paddle]


def its_interleaving(study: Study, setting: Setting, seen: Considered) -> Expected | None:
    """Its rule: pp does not count (W6), and a pipeline without interleaving is thought to need more than one with."""
    for old in seen.beside(setting, "vpp_degree", "pp_degree"):
        if old.oom and whole(old.setting, "vpp_degree") > whole(setting, "vpp_degree"):
            return Expected(True, "")
    return None


def its_tensor_or_pipeline(study: Study, setting: Setting, seen: Considered) -> Expected | None:
    """Its rule: never fires (W33)."""
    return None


ITS_RULES = tuple({interleaving: its_interleaving, tensor_or_pipeline: its_tensor_or_pipeline}.get(rule, rule) for rule in RULES)
WALKS = [name for name in NAMES if "walk" in load(name)]
OTHER_WALKS = {"baseline", "everything-fast"}
"""Where the mended rules make a difference; for the others they make none."""


def walk(case: dict[str, Any], rules: Any) -> list[int]:
    """Places of the settings that are tried, in order, on the made-up machine."""
    study = build(case["config"], "tuner.json")
    cluster = Cluster(case["nodes"], case["gpus_per_node"])
    settings = method("grid").space(study, cluster).settings
    order = prior(study, cluster)
    search = Walk(study, settings, rules, (lambda left: after_baseline(left, order)) if study.order.baseline else None)
    tried = []
    while (setting := search.ask()) is not None:
        tried.append(settings.index(setting))
        fits = memory(setting) <= case["memory_gib"]
        search.tell(setting, ran=fits, oom=not fits)
    return tried


@pytest.mark.parametrize("name", WALKS)
def test_f213_f214_f215_f216_f218_f219_f220_f222_what_is_tried(name: str) -> None:
    case = load(name)
    assert walk(case, ITS_RULES) == case["walk"]
    assert (walk(case, RULES) == case["walk"]) is (name not in OTHER_WALKS)


def test_the_walks_skip_enough_to_tell_something() -> None:
    assert {name for name in WALKS if len(load(name)["walk"]) < 0.95 * len(load(name)["settings"])} >= {
        "own",
        "lists",
        "baseline",
    }
    assert set(WALKS) > OTHER_WALKS
