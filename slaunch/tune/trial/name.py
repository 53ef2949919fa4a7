"""Names of trials: folder, job id. Pure."""

from __future__ import annotations

import re

from slaunch.tune.space.dimensions import OPTIONAL
from slaunch.tune.space.grid import accumulation, whole
from slaunch.tune.values import Setting, Study

LONGEST = 200
"""Characters of a folder's name; file systems take 255, and files in it need room for suffixes."""


def folder_name(study: Study, number: int, setting: Setting, phase: str = "") -> str:
    """The name of a trial's folder, which tells its whole setting. `phase`: "GBSSearch" puts it one level deeper."""
    text = "_".join((strategy(study, setting), f"AccStep{accumulation(study, setting)}", *further(study, setting)))
    job = f"Job{number}_{phase}/" if phase else f"Job{number}_"
    return job + shortened(re.sub(r"[^\w.+=-]", "-", f"GBS{batch(study, setting)}_{text}"))


def strategy(study: Study, setting: Setting) -> str:
    """The parallel setting, as Paddle's tuner writes it."""
    names = {
        "DP": "dp_degree",
        "MP": "mp_degree",
        "PP": "pp_degree",
        "VPP": "vpp_degree",
        "Sharding": "sharding_degree",
        "Stage": "sharding_stage",
        "MBS": "micro_batch_size",
        "Recompute_": "use_recompute",
        "Granularity_": "recompute_granularity",
    }
    return "_".join(f"{short}{setting.get(name)}" for short, name in names.items())


def further(study: Study, setting: Setting) -> list[str]:
    """The dimensions that are there only if wanted."""
    names = [*OPTIONAL, *study.refined, *(each.name for each in study.own)]
    overlap = [f"Overlap_{setting['sharding_overlap']}"] if "sharding_overlap" in setting else []
    return overlap + [f"{camel(name)}{setting[name]}" for name in names if name in setting]


def camel(name: str) -> str:
    """flash_attn -> FlashAttn."""
    return "".join(part.capitalize() for part in name.split("_"))


def batch(study: Study, setting: Setting) -> int:
    """The trial's global batch."""
    return whole(setting, "global_batch_size", study.model.global_batch_size)


def shortened(name: str) -> str:
    """The name; a very long one cut, with a hash of the rest."""
    if len(name) <= LONGEST:
        return name
    import hashlib

    return f"{name[: LONGEST - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def whole_text(study: Study, setting: Setting) -> str:
    """A setting in one line, for people."""
    return "_".join((strategy(study, setting), *further(study, setting)))
