"""The values that each dimension may take on a machine: all that divide, in the order to try, within the user's range."""

from __future__ import annotations

from collections.abc import Mapping

from slaunch.tune.values import AUTO, Cluster, Ints, Study, Value

Candidates = Mapping[str, tuple[Value, ...]]


def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    low = [i for i in range(1, int(number**0.5) + 1) if number % i == 0]
    return tuple(sorted({*low, *(number // i for i in low)}))


def estimated(study: Study, cluster: Cluster) -> Cluster:
    """The cluster that the grid is made for: the one at hand, or the one to estimate for."""
    gpus = study.algorithm.estimated_gpus
    if not gpus:
        return cluster
    nodes = max(1, gpus // cluster.gpus_per_node)
    return Cluster(nodes, gpus // nodes, cluster.device)


def candidates(study: Study, cluster: Cluster) -> dict[str, tuple[Value, ...]]:
    """Every dimension's values, in the order to try: those that need least memory first, or fast ones first."""
    made = generated(study, cluster)
    found: dict[str, tuple[Value, ...]] = {}
    for name, allowed in study.ranges.items():
        found[name] = tuple(value for value in made[name] if value in allowed)
    if study.algorithm.name == "dp_estimation":
        found["dp_degree"] = (1,)
    return found | dict(study.switches) | {each.name: each.values for each in study.own}


def generated(study: Study, cluster: Cluster) -> dict[str, tuple[int, ...]]:
    """All values of the dimensions of whole numbers, whatever the user's range."""
    fast = study.order.performance
    model = study.model

    def ordered(values: tuple[int, ...], descending: bool) -> tuple[int, ...]:
        return values[::-1] if descending != fast else values

    devices = divisors(cluster.gpus)
    return {
        "dp_degree": ordered(devices, descending=False),
        "mp_degree": ordered(tensor(study, cluster), descending=True),
        "pp_degree": pipeline(study, cluster),
        "sharding_degree": devices[::-1],
        "cp_degree": ordered(context(study, cluster), descending=True),
        "ep_degree": ordered(expert(study, cluster), descending=True),
        "vpp_degree": ordered(divisors(model.num_layers) if model.num_layers else (1,), descending=False),
        "micro_batch_size": ordered(divisors(model.global_batch_size), descending=False),
        "sharding_stage": ordered((1, 2, 3), descending=True),
        "recompute_layers": ordered(layers(study), descending=True),
    }


def tensor(study: Study, cluster: Cluster) -> tuple[int, ...]:
    """Degrees of tensor parallelism, ascending: within a node unless the user lifts that, and dividing the model."""
    reach = cluster.gpus_per_node if study.pruning.mp_in_node else cluster.gpus
    return tuple(degree for degree in divisors(reach) if not tensor_problem(study, degree))


def tensor_problem(study: Study, degree: int) -> str:
    """Which measure of the model this degree does not divide; "" if it divides all that are told."""
    model = study.model
    measures = {
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "num_attention_heads": model.num_attention_heads,
        "seq_length": model.seq_length if study.pruning.sequence_parallel else 0,
    }
    return next((f"{name} {size}" for name, size in measures.items() if size % degree), "")


def pipeline(study: Study, cluster: Cluster) -> tuple[int, ...]:
    """Degrees of pipeline parallelism, descending in both orders: up to nodes + 1, or all that divide the devices."""
    if cluster.nodes > 1 and study.pruning.pp_by_nodes:
        degrees = tuple(range(cluster.nodes + 1, 0, -1))
    else:
        degrees = divisors(cluster.gpus)[::-1]
    return tuple(degree for degree in degrees if study.model.num_layers % degree == 0)


def context(study: Study, cluster: Cluster) -> tuple[int, ...]:
    """Degrees of context parallelism, ascending: each device gets two pieces of the sequence, so that all have equal work."""
    length = study.model.seq_length
    return tuple(degree for degree in divisors(cluster.gpus) if degree == 1 or length % (2 * degree) == 0)


def expert(study: Study, cluster: Cluster) -> tuple[int, ...]:
    """Degrees of expert parallelism, ascending."""
    experts = study.model.num_experts
    return tuple(degree for degree in divisors(cluster.gpus) if not experts or experts % degree == 0)


def layers(study: Study) -> tuple[int, ...]:
    """Numbers of recomputed layers, ascending; the rules know how many a stage has.

    Without a range of the user's, only powers of two are tried: all numbers would be far too many.
    """
    most = study.model.num_layers
    if study.ranges.get("recompute_layers", AUTO) is not AUTO:
        return tuple(range(most + 1))
    return (0, *(power for power in (1 << i for i in range(most.bit_length())) if power <= most))


def shown(allowed: Ints) -> str:
    """A range as the user would write it."""
    if allowed is AUTO:
        return "auto"
    return f"{allowed.start} to {allowed.stop - 1}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
