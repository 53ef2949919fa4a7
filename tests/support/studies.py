"""Studies and settings for tests of the tuner, from a few words."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from slaunch.tune.config.build import build
from slaunch.tune.rules.considered import Considered
from slaunch.tune.values import Cluster, Outcome, Setting, Study

MODEL = {"global_batch_size": 16, "num_layers": 8}
METRIC = {"name": "tokens_per_sec", "OptimizationDirection": "Maximize"}
DEGREES = {name: "auto" for name in ("dp_degree", "mp_degree", "pp_degree", "sharding_degree")}
ONE_NODE = Cluster(1, 8)


def raw(**keys: Any) -> dict[str, Any]:
    """A configuration's content; `model` adds to the model's measures."""
    model = {**MODEL, **keys.pop("model", {})}
    return {"model_cfg": model, "metric_cfg": METRIC, "run_cmd": {}, **keys}


def make(**keys: Any) -> Study:
    """A study of these keys."""
    return build(raw(**keys), os.path.join(tempfile.gettempdir(), "tuner.json"))


def setting(**values: Any) -> Setting:
    """A setting: all ones, but for these."""
    usual = {
        **{name: 1 for name in ("mp_degree", "sharding_degree", "pp_degree", "dp_degree")},
        **{name: 1 for name in ("sharding_stage", "micro_batch_size", "vpp_degree")},
        **{"use_recompute": False, "recompute_granularity": None},
    }
    return {**usual, **values}


def seen(*outcomes: tuple[Setting, str]) -> Considered:
    """What trials showed: each setting with "ran", "oom" or "failed"."""
    found = Considered()
    for each, end in outcomes:
        found.add(Outcome(each, ran=end == "ran", oom=end == "oom"))
    return found
