"""The grid: every combination of the candidates whose degrees multiply to the number of devices. Order is part of the result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from slaunch.tune.space.candidates import Candidates
from slaunch.tune.values import Cluster, Setting, Study, Value


def grid(study: Study, cluster: Cluster, values: Candidates) -> Iterator[Setting]:
    """All settings: degrees outside, the other dimensions inside, the last one fastest; the rules have not been asked yet."""
    others = list(combinations(study, values))
    for degrees in degree_tuples(cluster.gpus, values):
        for other in others:
            setting = {**degrees, **other}
            if divides(study, setting):
                yield from refined(study, setting)


def grid_size(study: Study, cluster: Cluster, values: Candidates) -> int:
    """How many combinations there are, before any is looked at."""
    others = prod(len(values[name]) for name in other_names(study, values))
    return others * sum(1 for _ in degree_tuples(cluster.gpus, values))


def degree_tuples(gpus: int, values: Candidates) -> Iterator[dict[str, Value]]:
    """Degrees that multiply to the devices: tensor, sharding, pipeline, context; what is left must be a data-parallel degree."""
    names = [name for name in ("mp_degree", "sharding_degree", "pp_degree", "cp_degree") if name in values]
    for chosen in factors(gpus, [values[name] for name in names]):
        *degrees, left = chosen
        if left not in values["dp_degree"]:
            continue
        found: dict[str, Value] = dict(zip(names, degrees, strict=True))
        context = {"cp_degree": found.pop("cp_degree")} if "cp_degree" in found else {}
        for expert in values.get("ep_degree", (None,)):
            yield {**found, "dp_degree": left, **context, **({} if expert is None else {"ep_degree": expert})}


def factors(left: int, lists: list[tuple[Value, ...]]) -> Iterator[tuple[int, ...]]:
    """One degree of each list, as long as each divides what the former ones left; at the end what remains."""
    if not lists:
        yield (left,)
        return
    for degree in lists[0]:
        if isinstance(degree, int) and left % degree == 0:
            for rest in factors(left // degree, lists[1:]):
                yield (degree, *rest)


def combinations(study: Study, values: Candidates) -> Iterator[dict[str, Value]]:
    """All combinations of the dimensions that are no degrees."""
    names = other_names(study, values)
    for chosen in product(*(values[name] for name in names)):
        yield dict(zip(names, chosen, strict=True))


def other_names(study: Study, values: Candidates) -> list[str]:
    """The dimensions that are no degrees, in the order of the columns."""
    further = [name for name in ("recompute_layers", "sequence_parallel", "optimizer_offload") if name in values]
    names = ["sharding_stage", "micro_batch_size", "vpp_degree", "use_recompute", "recompute_granularity", *further]
    return names + [each.name for each in study.own]


def divides(study: Study, setting: Setting) -> bool:
    """Whether micro batches divide the global batch, and chunks the layers."""
    size = whole(setting, "micro_batch_size") * whole(setting, "sharding_degree") * whole(setting, "dp_degree")
    chunks = whole(setting, "pp_degree") * whole(setting, "vpp_degree")
    return study.model.global_batch_size % size == 0 and study.model.num_layers % chunks == 0


def refined(study: Study, setting: dict[str, Value]) -> Iterator[Setting]:
    """The setting with each state of refined recomputation; as it is where the user does not search that.

    Operators are spared recomputation one after another: the next one only once the former is spared in all layers of a stage.
    """
    if not study.refined:
        yield setting
        return
    most = study.model.num_layers // whole(setting, "pp_degree")
    granularity = setting["recompute_granularity"] or "full"
    idle = setting["pp_degree"] == 1 or not setting["use_recompute"] or granularity != "full"
    states = [(0,) * len(study.refined)] if idle else chain(len(study.refined), most)
    for state in sorted(states, reverse=True) if study.order.performance else states:
        yield {**setting, **dict(zip(study.refined, state, strict=True))}


def chain(operators: int, most: int) -> list[tuple[int, ...]]:
    """(0, 0) … (most, 0), (most, 1) … (most, most): ascending."""
    zero = (0,) * operators
    return [zero] + [(*(most,) * i, value, *zero[i + 1 :]) for i in range(operators) for value in range(1, most + 1)]


def whole(setting: Setting, name: str, default: int = 1) -> int:
    """A dimension that is a whole number."""
    value = setting.get(name, default)
    return value if isinstance(value, int) else default


def accumulation(study: Study, setting: Setting) -> int:
    """Micro batches of a step on each replica."""
    batch = whole(setting, "global_batch_size", study.model.global_batch_size)
    return batch // whole(setting, "dp_degree") // whole(setting, "sharding_degree") // whole(setting, "micro_batch_size")
