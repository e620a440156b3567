"""Intervals whose unit is the robot: messages of one robot are not independent of each other, robots nearly are.

Distribution-free, by order statistics (David & Nagaraja, Order Statistics, 3rd ed., section 7.1): between the k-th smallest and the
k-th largest of n values lies the median of what they are drawn from, unless fewer than k of them fall on one side of it, of which the
binomial distribution says how rarely that is.
"""

from dataclasses import dataclass
from functools import cache
from statistics import median


@dataclass(frozen=True)
class Change:
    """A change between two groups of robots, as a factor."""

    factor: float
    """Of the median robot."""
    low: float | None
    """95 % interval; none with too few robots."""
    high: float | None
    robots: tuple[int, int]
    """How many of A and of B; of pairs twice the same."""
    paired: bool
    """The same robots before and after, each compared with itself."""


def of_pairs(a: dict[str, float], b: dict[str, float]) -> Change:
    """Each robot with itself."""
    both = sorted(a.keys() & b.keys())
    factors = sorted(b[robot] / a[robot] for robot in both)
    bounds = median_interval(factors, 0.05)
    low, high = bounds or (None, None)
    return Change(median(factors), low, high, (len(both), len(both)), True)


def of_groups(a: dict[str, float], b: dict[str, float]) -> Change:
    """Different robots: both medians with an interval of 97.5 %, so that both hold with 95 % (Bonferroni)."""
    groups = [sorted(values.values()) for values in (a, b)]
    bounds = [median_interval(values, 0.025) for values in groups]
    factor = median(groups[1]) / median(groups[0])
    low = high = None
    if bounds[0] and bounds[1]:
        low, high = bounds[1][0] / bounds[0][1], bounds[1][1] / bounds[0][0]
    return Change(factor, low, high, (len(a), len(b)), False)


def change(a: dict[str, float], b: dict[str, float]) -> Change | None:
    """By pairs where at least half of the smaller group is in both; values of 0 have no factor and are left out."""
    a, b = ({robot: value for robot, value in side.items() if value > 0} for side in (a, b))
    if not a or not b:
        return None
    pairs = len(a.keys() & b.keys())
    return of_pairs(a, b) if pairs * 2 >= min(len(a), len(b)) else of_groups(a, b)


def median_interval(ordered: list[float], alpha: float) -> tuple[float, float] | None:
    """The narrowest pair of order statistics that misses the median with at most `alpha`; none where even the extremes miss it more
    often: below 6 values at 0.05."""
    k = rank(len(ordered), alpha)
    return (ordered[k - 1], ordered[-k]) if k > 0 else None


@cache
def rank(n: int, alpha: float) -> int:
    """The largest k with 2 · P(fewer than k of n fall on one side) <= alpha; in whole numbers of 2^-n."""
    allowed, term, total, k = int(alpha * 2**60) * 2**n >> 61, 1, 0, 0
    while total + term <= allowed:
        total += term
        k += 1
        term = term * (n - k + 1) // k
    return k
