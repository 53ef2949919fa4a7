"""Single-replica estimation: measure one replica on few devices, estimate many on a large cluster. Pure.

The grid is made for the large cluster. Of each of its settings one replica is tried, with its share of the global batch. With
`sharding_overlap` each is tried again over as many shards as fit, without and with overlap of communication, to learn the gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slaunch.tune.space.grid import whole
from slaunch.tune.space.make import Space, make_space
from slaunch.tune.values import Cluster, Conversion, Dropped, Setting, Study, Value

Figures = Mapping[str, float | None]


def make_estimation(study: Study, cluster: Cluster) -> Space:
    """The trials of single replicas, then those of overlap."""
    wide = make_space(study, cluster)
    kept: list[Setting] = []
    dropped = list(wide.dropped)
    for setting in wide.settings:
        replica = one_replica(setting, study.model.global_batch_size, cluster)
        if not replica["nodes"]:
            dropped.append(Dropped(setting, "nodes", f"{replica['num_gpus']} devices cannot be parted evenly over the nodes"))
        elif replica in kept:
            dropped.append(Dropped(setting, "same_replica", "its replica is the same as that of another setting"))
        else:
            kept.append(replica)
    pairs = [trial for replica in kept for trial in overlap_pair(replica, cluster)] if study.algorithm.overlap else []
    return Space((*kept, *pairs), tuple(dropped))


def one_replica(setting: Setting, global_batch: int, cluster: Cluster) -> dict[str, Value]:
    """One replica of a setting. `nodes` is 0 if it does not fit the cluster."""
    replicas = whole(setting, "dp_degree") * whole(setting, "sharding_degree")
    cards = whole(setting, "mp_degree") * whole(setting, "pp_degree") * whole(setting, "cp_degree")
    return {
        **setting,
        "dp_degree": 1,
        "sharding_degree": 1,
        "sharding_stage": 1,
        "estimated_dp_degree": replicas,
        "num_gpus": cards,
        "nodes": nodes_for(cards, cluster),
        "global_batch_size": global_batch // replicas,
    }


def nodes_for(cards: int, cluster: Cluster) -> int:
    """The fewest nodes of the cluster that have so many devices, evenly; 0 if it is too small, or they do not part evenly."""
    counts = (n for n in range(1, cluster.nodes + 1) if cards % n == 0 and cards // n <= cluster.gpus_per_node)
    return next(counts, 0)


def overlap_pair(replica: Mapping[str, Value], cluster: Cluster) -> list[Setting]:
    """The replica over as many shards as fit, without and with overlap; () if only one fits."""
    cards = whole(replica, "num_gpus")
    shards = cluster.gpus // cards
    nodes = nodes_for(cards * shards, cluster)
    if shards <= 1 or not nodes:
        return []
    spread: dict[str, Value] = {
        **replica,
        "sharding_degree": shards,
        "sharding_stage": 1,
        "estimated_dp_degree": None,
        "num_gpus": cards * shards,
        "nodes": nodes,
        "global_batch_size": whole(replica, "global_batch_size") * shards,
    }
    return [{**spread, "sharding_overlap": flag} for flag in (False, True)]


def convert(conversion: Conversion, metric: str, value: float | None, step_s: float | None, gpus: int) -> dict[str, float | None]:
    """The estimates of many replicas from one, by name of the column.

    For each bandwidth w between replicas (GB/s), the gradients of B billion parameters take C = 4 B / w seconds, or 6 B / w with
    mixed precision; the metric falls by T / (T + C). With `need_unify` also per device.
    """
    found: dict[str, float | None] = {}
    unify = conversion.need_unify
    if unify:
        found[f"unified_{metric}"] = None if value is None else round(value / gpus, 2)
    for bandwidth in conversion.comm_bw:
        seconds = conversion.model_size_b * (6 if conversion.amp else 4) / bandwidth
        known = value is not None and step_s is not None
        estimate = round(step_s / (step_s + seconds) * value, 5) if known else None  # type: ignore[operator]
        found[f"bw_{bandwidth:g}_{metric}"] = estimate
        if unify:
            found[f"unified_bw_{bandwidth:g}_{metric}"] = None if estimate is None else round(estimate / gpus, 2)
    return found


def ranking_column(conversion: Conversion, metric: str) -> str:
    """The estimate by which settings are ranked."""
    return f"{'unified_' * conversion.need_unify}bw_{conversion.comm_bw[0]:g}_{metric}"


def gains(conversion: Conversion, metric: str, plain: Figures, without: float, with_overlap: float) -> dict[str, float | None]:
    """The estimates with the gain of overlap, measured over shards, added: columns `overlap_bw_…`."""
    ratio = (with_overlap - without) / without
    found: dict[str, float | None] = {}
    for bandwidth in conversion.comm_bw:
        estimate = plain.get(f"bw_{bandwidth:g}_{metric}")
        found[f"overlap_bw_{bandwidth:g}_{metric}"] = None if estimate is None else round(estimate * (1 + ratio), 5)
    return found


def partner(setting: Setting, others: Sequence[Setting], names: Sequence[str], overlap: bool | None) -> int:
    """Place of the setting that agrees in these dimensions and has this overlap flag (None: no flag); -1 if there is none."""
    for place, other in enumerate(others):
        if other.get("sharding_overlap") is overlap and all(other.get(name) == setting.get(name) for name in names):
            return place
    return -1
