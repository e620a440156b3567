"""Statistics over rounds of a proof: the round is the unit, for what was measured within one round depends on each other."""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES, SHARE, SEED = 5000, 0.9, 1


@dataclass(frozen=True)
class Estimate:
    median: float
    low: float
    high: float

    def is_within(self, limit: float) -> bool:
        """Whether a ratio's whole interval lies within 1 ± limit."""
        return 1 - limit <= self.low and self.high <= 1 + limit

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


def estimate(values: Sequence[float]) -> Estimate:
    """Median over rounds with its 90 % percentile bootstrap interval."""
    chance = random.Random(SEED)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = round(RESAMPLES * (1 - SHARE) / 2)
    return Estimate(statistics.median(values), medians[cut], medians[-1 - cut])


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def middle(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Geometric mean of a round's two runs."""
    return [math.sqrt(a * b) for a, b in zip(first, second, strict=True)]


@dataclass(frozen=True)
class Band:
    """How far a tool is from itself, as factors ≥ 1."""

    typical: float
    worst: float

    def holds(self, ratio: float) -> bool:
        """Whether a ratio is no further from 1 than the tool typically is from itself."""
        return 1 / self.typical <= ratio <= self.typical


def against_itself(first: Sequence[float], second: Sequence[float]) -> Band:
    """Each round's two runs: what the tool's figure is worth on this machine."""
    factors = [math.exp(abs(math.log(a / b))) for a, b in zip(first, second, strict=True)]
    return Band(statistics.median(factors), max(factors))
