"""What follows from a setting: sizes that programs want to be told. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.tune.space.grid import accumulation, whole
from slaunch.tune.values import Cluster, Setting, Study, Value


def with_derived(study: Study, cluster: Cluster, setting: Setting) -> dict[str, Value]:
    """The setting, and the sizes that follow from it, by the names under which `run_cmd` knows them."""
    batch = whole(setting, "global_batch_size", study.model.global_batch_size)
    local = batch // whole(setting, "sharding_degree") // whole(setting, "dp_degree")
    return {
        **setting,
        "local_batch_size": local,
        "gradient_accumulation_steps": local // whole(setting, "micro_batch_size"),
        "global_batch_size": batch,
        "acc_steps": accumulation(study, setting),
        "sequence_parallel": setting.get("sequence_parallel", int(whole(setting, "mp_degree") > 1)),
        "num_gpus": setting.get("num_gpus", cluster.gpus),
        "nodes": setting.get("nodes", cluster.nodes),
    }


def refined_object(study: Study, setting: Setting) -> Mapping[str, Value]:
    """Operators of refined recomputation and their values."""
    return {name: setting[name] for name in study.refined if name in setting}


def hybrid(setting: Setting, single: bool) -> str:
    """Which settings of communication overlap apply; "" = none.

    Args:
        setting: the trial's.
        single: single-replica estimation, which has no settings for "none of these".
    """
    tensor, stages = whole(setting, "mp_degree") > 1, whole(setting, "pp_degree") > 1
    if whole(setting, "sharding_degree") > 1 and (tensor or stages):
        return "sharding" + "_mp" * tensor + "_pp" * stages
    return "" if single else "no_overlap"
