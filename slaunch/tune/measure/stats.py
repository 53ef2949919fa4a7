"""From samples to a figure: warm-up left out, mean, confidence. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from slaunch.frozen import dataclass
from slaunch.tune.values import Metric

WARMUP, FEW = 9, 10
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
"""Quantile 0.975 of Student's distribution, by degrees of freedom from 1; 2 beyond."""


@dataclass(frozen=True)
class Figure:
    """A measured value.

    Attributes:
        value: the mean, to 5 decimals.
        error: half the width of its 95 % confidence interval; None if one sample alone cannot tell.
        samples: how many were averaged.
    """

    value: float
    error: float | None
    samples: int


def window(samples: Sequence[float], warmup: int, width: int) -> Sequence[float]:
    """The samples that count: after the warm-up, the last `width` of them.

    Warm-up -1 is the rule of Paddle's tuner: of fewer than 10 samples the last one, else those after the ninth.
    """
    if warmup < 0 and len(samples) < FEW:
        return samples[-1:]
    return samples[WARMUP if warmup < 0 else warmup :][-width:]


def figure(samples: Sequence[float]) -> Figure | None:
    """Mean and confidence of samples; None if there are none."""
    if not samples:
        return None
    mean = math.fsum(samples) / len(samples) if all(map(math.isfinite, samples)) else math.nan
    return Figure(round(mean, 5), half_width(samples, mean), len(samples))


def half_width(samples: Sequence[float], mean: float) -> float | None:
    """Half the width of the mean's 95 % confidence interval; None for fewer than two samples."""
    free = len(samples) - 1
    if free < 1:
        return None
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in samples) / free)
    return (T95[free - 1] if free <= len(T95) else 2.0) * deviation / math.sqrt(len(samples))


def over_ranks(metric: Metric, ranks: Sequence[Sequence[float]]) -> Figure | None:
    """The figure of all ranks that told samples, combined as the user wants; None if none did."""
    kept = (window(samples, metric.warmup, metric.window) for samples in ranks)
    figures = [found for found in map(figure, kept) if found]
    if not figures:
        return None
    values = [each.value for each in figures]
    combined = {"mean": lambda: math.fsum(values) / len(values), "sum": lambda: math.fsum(values), "min": lambda: min(values)}
    value = combined.get(metric.combine, lambda: max(values))() if all(map(math.isfinite, values)) else math.nan
    errors = [each.error for each in figures if each.error is not None]
    return Figure(round(value, 5), max(errors) if errors else None, min(each.samples for each in figures))
