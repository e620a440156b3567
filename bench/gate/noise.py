"""How noisy each figure of a trial is: from pairs of a program with itself. And the hypothesis that a gate was to rest on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 4000
SAME = 1.25
"""Up to this ratio, noise counts as the same."""
CARRIES_P99 = 1000
"""Messages. Trials that follow each other are merged until they have so many: then 10 and more are beyond their p99."""


@dataclass(frozen=True)
class Noise:
    """Of one figure. Logarithms of B/A for times, differences in ‰ of messages for shares."""

    name: str
    typical: float
    """Median over trials: µs, or ‰."""
    pairs: int
    sd: float
    robust: float
    """As a standard deviation would be, from the median of absolute deviations: what the middle of the pairs does."""


SIDES = ("total", "own", "work")
STATISTICS = ("p50", "p90", "p95", "p99", "tail5", "tail1", "mean", "slow")


def table(pairs: list[dict]) -> list[Noise]:
    """All figures that at least four fifths of the pairs carry."""
    return [noise for name, of in figures(pairs[0]["a"]["trial"]) if (noise := one(name, of, pairs))]


Figure = Callable[[dict], float | None]


def figures(trial: dict) -> Iterator[tuple[str, Figure]]:
    for side in SIDES:
        for statistic in STATISTICS:
            yield f"end to end · {side} · {statistic}", lambda t, s=side, q=statistic: t["way"][s].get(q)
    for hop, names in enumerate(trial["hops"]):
        for side in ("total", "own", "work"):
            for statistic in ("p50", "p90", "tail1", "slow"):
                name = f"{names['from']} → {names['to']} · {side} · {statistic}"
                yield name, lambda t, h=hop, s=side, q=statistic: t["hops"][h]["times"][s].get(q)


def one(name: str, of: Figure, pairs: list[dict]) -> Noise | None:
    numbers = [(of(pair["a"]["trial"]), of(pair["b"]["trial"])) for pair in pairs]
    carried = np.array([(a, b) for a, b in numbers if a is not None and b is not None], float)
    if len(carried) * 5 < len(pairs) * 4:
        return None
    if name.endswith("slow"):
        differences, typical = 1000 * (carried[:, 1] - carried[:, 0]), 1000 * float(np.median(carried))
    else:
        carried = np.maximum(carried, 100.0)
        differences, typical = np.log(carried[:, 1] / carried[:, 0]), float(np.median(carried)) / 1000
    return Noise(name, typical, len(carried), sd(differences), robust(differences))


def sd(differences: Array) -> float:
    """About 0, which is what a program differs from itself by."""
    return float(np.sqrt(np.mean(differences**2)))


def robust(differences: Array) -> float:
    return float(np.median(np.abs(differences)) / 0.6745)


@dataclass(frozen=True)
class Hypothesis:
    """Is the p99 of a part of a message's time as quiet as its p50?"""

    pairs: int
    merged: int
    """Trials to one of these."""
    noise: dict[str, tuple[float, float]]
    """sd and robust of p50 and p99 of "total", "own" and "work"."""
    by_median: dict[str, tuple[float, float, float]]
    """Noise of each one's p99 by that of its p50, and its 95 % bounds."""
    gained: dict[str, tuple[float, float, float]]
    """For "own" and "work": noise of the total p99 by that of its p99."""

    def word(self, side: str) -> str:
        ratio = self.by_median[side]
        if ratio[1] > SAME:
            return "refuted"
        return "holds" if ratio[2] <= SAME else "open"


def hypothesis(pairs: list[dict]) -> Hypothesis:
    merged = int(np.ceil(CARRIES_P99 / np.median([len(pair["a"]["total_us"]) for pair in pairs])))
    chance = np.random.default_rng(1)
    groups = [pairs[at : at + merged] for at in range(0, len(pairs) - merged + 1, merged)]

    def differences(of: str, q: float) -> Array:
        def quantile(side: str, group: list[dict]) -> float:
            return float(np.quantile(np.concatenate([pair[side][of] for pair in group]), q, method="inverted_cdf"))

        return np.log([quantile("b", group) / quantile("a", group) for group in groups])

    columns = {
        f"{of[:-3]} p{100 * q:.0f}": differences(of, q) for of in ("total_us", "own_us", "work_us") for q in (0.5, 0.99)
    }
    drawn = chance.integers(0, len(groups), (RESAMPLES, len(groups)))

    def ratio(one: str, other: str) -> tuple[float, float, float]:
        def of(rows: NDArray[np.int64]) -> float:
            return robust(columns[one][rows]) / max(robust(columns[other][rows]), 1e-9)

        low, high = np.quantile([of(rows) for rows in drawn], (0.025, 0.975))
        return of(np.arange(len(groups))), float(low), float(high)

    return Hypothesis(
        pairs=len(groups),
        merged=merged,
        noise={name: (sd(column), robust(column)) for name, column in columns.items()},
        by_median={side: ratio(f"{side} p99", f"{side} p50") for side in ("total", "own", "work")},
        gained={side: ratio("total p99", f"{side} p99") for side in ("own", "work")},
    )
