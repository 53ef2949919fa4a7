"""A made-up machine for tests of the tuner: how fast a setting is, and whether its memory suffices, by formula."""

from __future__ import annotations

from collections.abc import Mapping


def memory(setting: Mapping[str, object]) -> float:
    """GiB on a device."""
    mp, pp, stage = number(setting, "mp_degree"), number(setting, "pp_degree"), number(setting, "sharding_stage")
    shards = number(setting, "sharding_degree")
    states = 64 / (mp * pp) * (1 / shards if stage == 3 else 0.3 + 0.7 / shards if stage == 2 else 0.5 + 0.5 / shards)
    kept = {0: 1.0, 1: 0.7, 2: 0.5, 3: 0.2}[level(setting)]
    spared = sum(number(setting, name, 0) for name in ("op_a", "op_b"))
    chunks = 1 + (pp - 1) / (pp * number(setting, "vpp_degree")) if number(setting, "vpp_degree") > 1 else 1
    return states + 6 * number(setting, "micro_batch_size") / mp * kept * chunks + 0.1 * spared


def speed(setting: Mapping[str, object]) -> float:
    """Tokens per second, rounded as in a log."""
    size, pp = number(setting, "micro_batch_size"), number(setting, "pp_degree")
    slow = 1 + 0.05 * number(setting, "mp_degree") + 0.1 * pp / number(setting, "vpp_degree") + 0.08 * level(setting)
    slow += 0.02 * number(setting, "sharding_stage") + 0.3 / size
    return round(10000 / slow + number(setting, "op_a", 0) + number(setting, "op_b", 0), 3)


def level(setting: Mapping[str, object]) -> int:
    """How much is recomputed: 0 nothing … 3 all."""
    if not setting.get("use_recompute"):
        return 0
    return {"core_attn": 1, "full_attn": 2, "full": 3, None: 3}[setting.get("recompute_granularity")]  # type: ignore[index]


def number(setting: Mapping[str, object], name: str, default: int = 1) -> int:
    """A whole number of the setting."""
    value = setting.get(name, default)
    return value if isinstance(value, int) else default
