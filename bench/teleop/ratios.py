"""Ratios between two arrangements that ran in turn: the round is the unit."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES, SHARE, SEED = 5000, 0.9, 1


@dataclass(frozen=True)
class Ratio:
    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"×{_digits(self.median)} ({_digits(self.low)} to {_digits(self.high)})"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio | None:
    """Median of the rounds' ratios with its 90 % percentile bootstrap interval; nothing where a figure is zero."""
    if min([*ours, *theirs]) <= 0:
        return None
    each = [a / b for a, b in zip(ours, theirs, strict=True)]
    chance = random.Random(SEED)
    medians = sorted(statistics.median(chance.choices(each, k=len(each))) for _ in range(RESAMPLES))
    cut = round(RESAMPLES * (1 - SHARE) / 2)
    return Ratio(statistics.median(each), medians[cut], medians[-1 - cut], len(each))


def rounds(first: Sequence[float]) -> list[float]:
    """Each round runs an arrangement twice (ABBA): the geometric mean of the two, where there is one."""
    pairs = zip(first[::2], first[1::2], strict=True)
    return [math.sqrt(a * b) if a > 0 and b > 0 else (a + b) / 2 for a, b in pairs]


def _digits(value: float) -> str:
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
