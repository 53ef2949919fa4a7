"""Rules over what earlier trials showed: settings that would lack memory, or be slower than one that ran. Pure.

Each rule returns what it expects of the setting and why, None if it expects nothing. A setting that is skipped counts as if it
had been tried, with the expected end, so that one trial spares many (`Outcome`). "The same but" compares exactly the named
dimensions. `assume_slower: false` switches off all guesses of speed; guesses of memory stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slaunch.frozen import dataclass
from slaunch.tune.rules.considered import Considered
from slaunch.tune.space.grid import whole
from slaunch.tune.values import Outcome, OwnDimension, Setting, Study, Value

LEVELS = {"core_attn": 1, "full_attn": 2, "full": 3, None: 3}


@dataclass(frozen=True)
class Expected:
    """What is expected of a setting: it lacks memory (`oom`), or is slower than one that ran."""

    oom: bool
    reason: str


Found = Expected | None
Rule = Callable[[Study, Setting, Considered], Found]


def tensor_or_pipeline(study: Study, setting: Setting, seen: Considered) -> Found:
    """Memory: without recomputation, more tensor parallelism with the same mp · pp lacked memory."""
    if setting.get("use_recompute") is not False:
        return None
    mp, pp = whole(setting, "mp_degree"), whole(setting, "pp_degree")
    for old in seen.beside(setting, "mp_degree", "pp_degree"):
        old_mp, old_pp = whole(old.setting, "mp_degree"), whole(old.setting, "pp_degree")
        if old.oom and old_mp > mp and old_mp * old_pp == mp * pp:
            return Expected(True, f"mp_degree {old_mp} with pp_degree {old_pp} lacked memory")
    return None


def interleaving(study: Study, setting: Setting, seen: Considered) -> Found:
    """Memory: more chunks lacked memory, of which fewer need more; but a pipeline without interleaving needs least."""
    chunks = whole(setting, "vpp_degree")
    for old in seen.beside(setting, "vpp_degree"):
        if old.oom and whole(old.setting, "vpp_degree") > chunks > 1:
            return Expected(True, f"vpp_degree {whole(old.setting, 'vpp_degree')} lacked memory")
    return None


def micro_batch(study: Study, setting: Setting, seen: Considered) -> Found:
    """Speed: a larger micro batch ran. Memory: a smaller one lacked it."""
    size = whole(setting, "micro_batch_size")
    for old in seen.beside(setting, "micro_batch_size"):
        other = whole(old.setting, "micro_batch_size")
        if old.ran and other > size:
            return Expected(False, f"micro_batch_size {other} ran and is thought to be faster")
        if old.oom and other < size:
            return Expected(True, f"micro_batch_size {other} lacked memory")
    return None


def sharding(study: Study, setting: Setting, seen: Considered) -> Found:
    """Speed: a lower stage ran. Memory: a higher one lacked it."""
    stage = whole(setting, "sharding_stage")
    for old in seen.beside(setting, "sharding_stage"):
        other = whole(old.setting, "sharding_stage")
        if old.ran and other < stage:
            return Expected(False, f"sharding_stage {other} ran and is thought to be faster")
        if old.oom and other > stage:
            return Expected(True, f"sharding_stage {other} lacked memory")
    return None


def recompute(study: Study, setting: Setting, seen: Considered) -> Found:
    """Speed: less recomputation ran. Memory: more of it lacked memory."""
    level = recompute_level(setting)
    if level is None:
        return None
    for old in seen.beside(setting, "use_recompute", "recompute_granularity"):
        other = recompute_level(old.setting)
        if other is None:
            continue
        if old.ran and other < level:
            return Expected(False, f"{shown(old.setting)} ran and is thought to be faster")
        if old.oom and other > level:
            return Expected(True, f"{shown(old.setting)} lacked memory")
    return None


def refined_recompute(study: Study, setting: Setting, seen: Considered) -> Found:
    """Speed: it ran without recomputation, or with an operator spared in more layers. Memory: sparing fewer layers lacked it."""
    if not study.refined:
        return None
    for old in seen.beside(setting, *study.refined, "use_recompute"):
        if old.ran and not old.setting.get("use_recompute"):
            return Expected(False, "without recomputation it ran and is thought to be faster")
        if not (old.setting.get("use_recompute") and setting.get("use_recompute")):
            continue
        for name in study.refined:
            other, value = whole(old.setting, name, 0), whole(setting, name, 0)
            if old.ran and other > value:
                return Expected(False, f"{name} {other} ran and is thought to be faster")
            if old.oom and other < value:
                return Expected(True, f"{name} {other} lacked memory")
    return None


def own_dimension(study: Study, setting: Setting, seen: Considered) -> Found:
    """Speed: an earlier value of an own dimension with `prune` ran."""
    for each in study.own:
        if each.prune and each.name in setting:
            place = place_of(each, setting[each.name])
            for old in seen.beside(setting, each.name):
                if old.ran and place_of(each, old.setting[each.name]) < place:
                    return Expected(False, f"{each.name} {old.setting[each.name]} ran and comes before")
    return None


def recomputed_layers(study: Study, setting: Setting, seen: Considered) -> Found:
    """Speed: recomputing fewer layers ran. Memory: recomputing more lacked it."""
    if "recompute_layers" not in setting:
        return None
    layers = whole(setting, "recompute_layers", 0)
    for old in seen.beside(setting, "recompute_layers", "use_recompute"):
        other = whole(old.setting, "recompute_layers", 0)
        if old.ran and other < layers:
            return Expected(False, f"recompute_layers {other} ran and is thought to be faster")
        if old.oom and other > layers:
            return Expected(True, f"recompute_layers {other} lacked memory")
    return None


def optimizer_offload(study: Study, setting: Setting, seen: Considered) -> Found:
    """Speed: it ran without offload. Memory: with offload it lacked memory."""
    if "optimizer_offload" not in setting:
        return None
    on = bool(setting["optimizer_offload"])
    for old in seen.beside(setting, "optimizer_offload"):
        if old.ran and on and not old.setting["optimizer_offload"]:
            return Expected(False, "without optimizer_offload it ran and is thought to be faster")
        if old.oom and not on and old.setting["optimizer_offload"]:
            return Expected(True, "with optimizer_offload it lacked memory")
    return None


PARTNERS = (
    *("dp_degree", "mp_degree", "pp_degree", "vpp_degree", "micro_batch_size"),
    *("use_recompute", "recompute_granularity", "sharding_stage"),
)
"""Dimensions in which an overlap trial and the trial that it belongs to agree."""


def overlap(study: Study, setting: Setting, seen: Considered) -> Found:
    """Overlap trials say something only of settings that ran without them."""
    if "sharding_overlap" not in setting:
        return None
    partners = [old for old in seen.outcomes if agree(old.setting, setting, PARTNERS) and "sharding_overlap" not in old.setting]
    if any(old.ran for old in partners):
        return None
    return Expected(False, "the same setting without sharding had no result")


RULES: tuple[Rule, ...] = (
    tensor_or_pipeline,
    interleaving,
    micro_batch,
    sharding,
    recompute,
    overlap,
    refined_recompute,
    own_dimension,
    recomputed_layers,
    optimizer_offload,
)
GUESSES = tuple(rule for rule in RULES if rule is not overlap)
"""Rules whose guesses of speed the user can switch off."""


def expect(study: Study, setting: Setting, seen: Considered, rules: Sequence[Rule] = RULES) -> tuple[str, Expected] | None:
    """The first rule that expects something of the setting, and what; None: it has to be tried."""
    for rule in rules:
        found = rule(study, setting, seen)
        if found and (found.oom or study.pruning.assume_slower or rule not in GUESSES):
            return rule.__name__, found
    return None


def inherit(setting: Setting, rule: str, expected: Expected) -> Outcome:
    """What a skipped setting counts as."""
    return Outcome(setting, ran=not expected.oom and rule != overlap.__name__, oom=expected.oom)


def recompute_level(setting: Setting) -> int | None:
    """How much is recomputed: 0 nothing … 3 everything; None: not told."""
    on = setting.get("use_recompute")
    if on is None:
        return None
    granularity = setting.get("recompute_granularity")
    return LEVELS.get(granularity if isinstance(granularity, str) else None, 3) if on else 0


def shown(setting: Setting) -> str:
    """The recomputation of a setting, in words."""
    granularity = setting.get("recompute_granularity") or "full"
    return f"recomputation ({granularity})" if setting.get("use_recompute") else "no recomputation"


def place_of(dimension: OwnDimension, value: Value) -> int:
    """Where a value stands in the user's list."""
    return [repr(each) for each in dimension.values].index(repr(value))


def agree(one: Setting, other: Setting, names: tuple[str, ...]) -> bool:
    """Whether two settings have the same values in these dimensions."""
    return all(one.get(name) == other.get(name) for name in names)
