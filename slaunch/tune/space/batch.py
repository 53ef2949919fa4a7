"""The search for the largest global batch: one parallel setting, micro batches doubled until memory is lacking. Pure."""

from __future__ import annotations

from itertools import product

from slaunch.errors import UsageError
from slaunch.tune.space.candidates import divisors, tensor_problem
from slaunch.tune.values import Cluster, Setting, Study

SIZES = tuple(2**i for i in range(10))
"""Micro batch sizes that are tried."""


def batch_settings(study: Study, cluster: Cluster) -> tuple[Setting, ...]:
    """The settings in order: each gives every replica as many micro batches as there are stages.

    Raises:
        UsageError: no degrees fit the model and the machine.
    """
    replicas, tensor, stages = balanced(study, cluster)
    sharded = free(study) or replicas in study.ranges["sharding_degree"]
    return tuple(
        {
            "dp_degree": 1 if sharded else replicas,
            "mp_degree": tensor,
            "pp_degree": stages,
            "micro_batch_size": size,
            "sharding_degree": replicas if sharded else 1,
            "sharding_stage": 1,
            "vpp_degree": 1,
            "use_recompute": False,
            "recompute_granularity": None,
            "global_batch_size": stages * replicas * size,
        }
        for size in SIZES
    )


def balanced(study: Study, cluster: Cluster) -> tuple[int, int, int]:
    """Replicas, tensor and pipeline degrees near the cube root of the devices; the nearest to it that fit the model.

    Raises:
        UsageError: none does.
    """
    first = cube(cluster.gpus)
    if fits(study, first):
        return first
    found = [triple for triple in triples(cluster.gpus) if fits(study, triple)]
    if not found:
        seen = f"{cluster.gpus} devices, and no degrees within the user's ranges that divide the model"
        raise UsageError("search the global batch size", seen, "give model_cfg.global_batch_size, or widen the ranges")
    return min(found, key=lambda triple: (max(triple) / min(triple), triple))


def cube(number: int) -> tuple[int, int, int]:
    """Three factors near the cube root: the largest up to it, the largest up to the root of the rest, what remains."""
    first = next(i for i in range(round(number ** (1 / 3)), 0, -1) if number % i == 0)
    rest = number // first
    second = next(i for i in range(round(rest**0.5), 0, -1) if rest % i == 0)
    return first, second, rest // second


def triples(number: int) -> list[tuple[int, int, int]]:
    """All ways to write the number as three factors."""
    pairs = product(divisors(number), repeat=2)
    return [(a, b, number // a // b) for a, b in pairs if number % (a * b) == 0]


def fits(study: Study, triple: tuple[int, int, int]) -> bool:
    """Whether tensor and pipeline degrees divide the model, and all are within the user's ranges, if there are any."""
    replicas, tensor, stages = triple
    if tensor_problem(study, tensor) or study.model.num_layers % stages:
        return False
    ranges = study.ranges
    spread = replicas in ranges["sharding_degree"] or replicas in ranges["dp_degree"]
    return free(study) or (spread and tensor in ranges["mp_degree"] and stages in ranges["pp_degree"])


def free(study: Study) -> bool:
    """Whether the user says nothing of any degree."""
    return all(study.ranges[name] == (1,) for name in ("dp_degree", "sharding_degree", "mp_degree", "pp_degree"))
