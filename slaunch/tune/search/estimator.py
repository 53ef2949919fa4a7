"""The user's program that estimates the memory of a setting: asked for every setting that the rules left, several at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from slaunch.errors import UsageError
from slaunch.frozen import asdict
from slaunch.tune.space.make import Space
from slaunch.tune.values import Dropped, Setting, Study

SETTING = (
    *("dp_degree", "mp_degree", "pp_degree", "vpp_degree", "sharding_degree", "sharding_stage"),
    *("use_recompute", "micro_batch_size", "recompute_granularity"),
)
MODEL = ("hidden_size", "num_attention_heads", "num_layers", "max_sequence_length", "vocab_size", "intermediate_size")
LIMIT_S = 60.0
"""What one estimate may take."""
WANTED = "estimate the memory of a setting"


def command(study: Study, setting: Setting) -> tuple[str, ...]:
    """The command that estimates one setting; it prints MiB."""
    words = [sys.executable, study.pruning.estimator]
    for name in SETTING:
        words += [f"--{name}", str(setting.get(name))]
    measures = asdict(study.model)
    for name in MODEL:
        words += [f"--{name}", str(measures[name])] if measures[name] else []
    return tuple(words)


def sift(study: Study, space: Space) -> tuple[Space, dict[int, int]]:
    """The space without settings that need too much memory, and the estimate of each that stays, by its place.

    Raises:
        UsageError: the program is not there, fails, or prints no number.
    """
    tool, most = study.pruning.estimator, study.pruning.estimator_limit_mib
    if not tool:
        return space, {}
    if not os.path.exists(tool):
        raise UsageError(WANTED, f"memory_estimation_tool {tool} is not there", "mend its path")
    estimates = estimate(tuple(command(study, setting) for setting in space.settings))
    kept: list[Setting] = []
    dropped, found = list(space.dropped), {}
    for setting, needed in zip(space.settings, estimates, strict=True):
        if needed > most:
            dropped.append(Dropped(setting, "memory_estimation", f"it is estimated to need {needed} MiB of {most:.0f}"))
        else:
            found[len(kept)] = needed
            kept.append(setting)
    return Space(tuple(kept), tuple(dropped)), found


def estimate(commands: Sequence[tuple[str, ...]]) -> list[int]:
    """What each command prints, in MiB; equal commands are run once, as many at a time as there are CPUs."""
    from concurrent.futures import ThreadPoolExecutor

    unique = list(dict.fromkeys(commands))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = dict(zip(unique, pool.map(ask, unique), strict=True))
    return [found[each] for each in commands]


def ask(words: Sequence[str]) -> int:
    """Run one command.

    Raises:
        UsageError: it fails, takes too long, or prints no number.
    """
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(WANTED, f"`{' '.join(words)}` took more than {LIMIT_S:.0f} s", "mend it") from None
    if done.returncode:
        raise UsageError(WANTED, f"`{' '.join(words)}`: {done.stderr.strip() or f'exit code {done.returncode}'}", "mend it")
    try:
        return int(round(float(done.stdout), 2))
    except (ValueError, OverflowError):
        raise UsageError(WANTED, f"`{' '.join(words)}` printed {done.stdout.strip()!r}", "have it print MiB alone") from None
