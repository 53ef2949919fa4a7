"""Rules over the configuration: settings that cannot run, or do not differ from another one. Pure; asked before any trial.

Each rule returns why the setting is dropped, "" if it is not. Paddle's rules with its faults mended: forms of ranges never matter
here, as the setting's values came out of the normalised ones; recomputation may be on without a granularity (it is then full);
all invalid strategies count.
"""

from __future__ import annotations

from collections.abc import Callable

from slaunch.frozen import dataclass
from slaunch.tune.language.predicate import Predicate
from slaunch.tune.rules.considered import Considered
from slaunch.tune.space.candidates import Candidates, shown, tensor_problem
from slaunch.tune.space.grid import accumulation, whole
from slaunch.tune.values import Cluster, Setting, Study, Value


@dataclass(frozen=True)
class Case:
    """What the rules look at.

    Attributes:
        study, cluster: what the user wants, and the machine of the grid.
        values: the candidates of each dimension.
        accepted: the settings before this one that no rule dropped.
        invalid, constraints: the user's predicates, each with its text.
    """

    study: Study
    cluster: Cluster
    values: Candidates
    accepted: Considered
    invalid: tuple[tuple[str, Predicate], ...] = ()
    constraints: tuple[tuple[str, Predicate], ...] = ()


Rule = Callable[[Case, Setting], str]


def in_range(case: Case, setting: Setting) -> str:
    """A value is not one of those that the user allows."""
    for name, allowed in case.study.ranges.items():
        if name in setting and setting[name] not in allowed:
            return f"{name} {setting[name]} is not among {shown(allowed)}"
    return ""


def tensor(case: Case, setting: Setting) -> str:
    """mp_degree does not divide hidden_size, vocab_size, num_attention_heads, or, with sequence parallelism, seq_length."""
    degree = whole(setting, "mp_degree")
    problem = tensor_problem(case.study, degree)
    return f"mp_degree {degree} does not divide {problem}" if problem else ""


def pipeline(case: Case, setting: Setting) -> str:
    """pp_degree does not divide num_layers."""
    degree, layers = whole(setting, "pp_degree"), case.study.model.num_layers
    return f"pp_degree {degree} does not divide num_layers {layers}" if layers % degree else ""


def interleaving(case: Case, setting: Setting) -> str:
    """vpp_degree above 1 needs more than 2 stages, micro batches that these divide, and layers for all chunks."""
    stages, chunks = whole(setting, "pp_degree"), whole(setting, "vpp_degree")
    if case.study.model.num_layers % (stages * chunks):
        return f"num_layers {case.study.model.num_layers} are not divided by {stages} stages of {chunks} chunks"
    if chunks > 1 and stages <= 2:
        return f"vpp_degree {chunks} needs more than 2 pipeline stages"
    steps = accumulation(case.study, setting)
    if chunks > 1 and steps % stages:
        return f"vpp_degree {chunks} needs micro batches ({steps}) that pp_degree {stages} divides"
    return ""


def micro_batch(case: Case, setting: Setting) -> str:
    """Each replica needs a batch that micro_batch_size divides, with at least as many micro batches as pipeline stages."""
    batch = whole(setting, "global_batch_size", case.study.model.global_batch_size)
    local = batch // whole(setting, "dp_degree") // whole(setting, "sharding_degree")
    size, stages = whole(setting, "micro_batch_size"), whole(setting, "pp_degree")
    if not batch:
        return ""
    if not local:
        return f"global_batch_size {batch} leaves nothing for some replicas"
    if local % size:
        return f"micro_batch_size {size} does not divide the replica's batch of {local}"
    if local // size < stages:
        return f"{local // size} micro batches cannot fill {stages} pipeline stages"
    return ""


def sharding(case: Case, setting: Setting) -> str:
    """With pipelines only stage 1 can be sharded; without sharding the stage does not matter."""
    stage, degree = setting.get("sharding_stage"), whole(setting, "sharding_degree")
    if degree != 1 and whole(setting, "pp_degree") != 1 and stage != 1:
        return f"sharding_stage {stage} does not go with pipeline parallelism"
    if degree == 1 and case.accepted.beside(setting, "sharding_stage"):
        return "without sharding this stage is the same as another one"
    return ""


def recompute(case: Case, setting: Setting) -> str:
    """Without recomputation the granularity does not matter: one of them is enough."""
    if setting.get("use_recompute") is not False:
        return ""
    values = case.values.get("recompute_granularity", (None,))
    kept: Value = "full" if "full" in values else values[0]
    if setting.get("recompute_granularity") != kept:
        return "without recomputation this granularity is the same as another one"
    return ""


def device_count(case: Case, setting: Setting) -> str:
    """dp, mp, pp, sharding and cp degrees do not multiply to the number of devices."""
    wanted = whole(setting, "num_gpus", case.cluster.gpus)
    product = 1
    for name in ("dp_degree", "mp_degree", "pp_degree", "sharding_degree", "cp_degree"):
        product *= whole(setting, name)
    return f"the degrees make {product} devices, not {wanted}" if product != wanted else ""


def invalid_strategy(case: Case, setting: Setting) -> str:
    """It matches an entry of invalid_strategy."""
    scope = scope_of(case.study, case.cluster, setting)
    return next((f"it is invalid: {text}" for text, matches in case.invalid if matches(scope)), "")


def constraint(case: Case, setting: Setting) -> str:
    """It does not fulfil an entry of constraints."""
    scope = scope_of(case.study, case.cluster, setting)
    return next((f"it breaks the constraint {text}" for text, holds in case.constraints if not holds(scope)), "")


def refined_recompute(case: Case, setting: Setting) -> str:
    """Refined recomputation needs full recomputation in a pipeline, and operators spared one after another, within a stage."""
    values = [whole(setting, name, 0) for name in case.study.refined]
    if not any(values):
        return ""
    if not setting.get("use_recompute"):
        return "refined recomputation without recomputation"
    if (setting.get("recompute_granularity") or "full") != "full":
        return "refined recomputation goes with full recomputation only"
    if whole(setting, "pp_degree") == 1:
        return "refined recomputation needs a pipeline"
    return out_of_turn(case.study.refined, values, case.study.model.num_layers // whole(setting, "pp_degree"))


def out_of_turn(names: tuple[str, ...], values: list[int], most: int) -> str:
    """An operator spared in more layers than a stage has, or before the former one is spared in all of them; "" if none is."""
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        if value > most:
            return f"{name} {value} is more than the {most} layers of a stage"
        if place and value and values[place - 1] != most:
            return f"{name} comes after {names[place - 1]}, which is not spared in all {most} layers"
    return ""


def recomputed_layers(case: Case, setting: Setting) -> str:
    """recompute_layers: none without recomputation; with it at least one, and no more than a stage has."""
    if "recompute_layers" not in setting:
        return ""
    layers, on = whole(setting, "recompute_layers", 0), setting.get("use_recompute")
    if on is False and layers:
        return f"recompute_layers {layers} without recomputation"
    if on and not layers:
        return "recomputation of no layers is the same as none"
    most = case.study.model.num_layers // whole(setting, "pp_degree")
    return f"recompute_layers {layers} is more than the {most} layers of a stage" if layers > most else ""


def sequence_parallel(case: Case, setting: Setting) -> str:
    """sequence_parallel needs tensor parallelism that divides seq_length."""
    degree, length = whole(setting, "mp_degree"), case.study.model.seq_length
    if not setting.get("sequence_parallel"):
        return ""
    if degree == 1:
        return "sequence parallelism needs tensor parallelism"
    return f"mp_degree {degree} does not divide seq_length {length}" if length % degree else ""


def context_parallel(case: Case, setting: Setting) -> str:
    """cp_degree above 1 needs a seq_length that twice the degree divides."""
    degree, length = whole(setting, "cp_degree"), case.study.model.seq_length
    return f"twice cp_degree {degree} does not divide seq_length {length}" if degree > 1 and length % (2 * degree) else ""


def expert_parallel(case: Case, setting: Setting) -> str:
    """ep_degree does not divide num_experts, or the replicas that hold the experts."""
    degree, experts = whole(setting, "ep_degree"), case.study.model.num_experts
    if experts % degree:
        return f"ep_degree {degree} does not divide num_experts {experts}"
    replicas = whole(setting, "dp_degree") * whole(setting, "sharding_degree") * whole(setting, "cp_degree")
    return f"ep_degree {degree} does not divide the {replicas} replicas" if replicas % degree else ""


RULES: tuple[Rule, ...] = (
    in_range,
    tensor,
    pipeline,
    interleaving,
    micro_batch,
    sharding,
    recompute,
    device_count,
    invalid_strategy,
    constraint,
    refined_recompute,
    recomputed_layers,
    sequence_parallel,
    context_parallel,
    expert_parallel,
)


def why_not(case: Case, setting: Setting) -> tuple[str, str]:
    """The first rule that drops the setting, and its reason; ("", "") if none does."""
    for rule in RULES:
        reason = rule(case, setting)
        if reason:
            return rule.__name__, reason
    return "", ""


DEFAULTS: Setting = dict(cp_degree=1, ep_degree=1, sequence_parallel=False, optimizer_offload=False, recompute_layers=0)
"""What a setting without these dimensions means to a predicate."""


def scope_of(study: Study, cluster: Cluster, setting: Setting) -> Setting:
    """What predicates may name: the setting, and what follows from it."""
    model = study.model
    return {
        **DEFAULTS,
        "num_gpus": cluster.gpus,
        "nodes": cluster.nodes,
        "global_batch_size": model.global_batch_size,
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "num_attention_heads": model.num_attention_heads,
        "seq_length": model.seq_length,
        **setting,
        "acc_steps": accumulation(study, setting),
    }
