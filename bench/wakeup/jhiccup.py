"""jHiccup's definition of a hiccup, re-computed from wakes: the published one (github.com/giltene/jHiccup, HiccupMeter), not its code.

It sleeps 1 ms from now, again and again; a hiccup is the time between two wakes less the shortest such time so far; a hiccup longer
than the 1 ms stands for the samples that were not taken meanwhile, too; and the recorder's buckets are 16.4 µs wide at first.
"""

import itertools
from collections.abc import Iterable, Sequence

# HdrHistogram with lowest value 20 µs and two digits: units of 2^14 ns, 256 of them before they double.
UNIT_BITS, SUB_BUCKET_BITS = 14, 8
BUCKET_NS = 1 << UNIT_BITS


def hiccups(woke_ns: Sequence[int]) -> list[int]:
    """From the moments of wakes, in order."""
    found, shortest = [], None
    for before, after in itertools.pairwise(woke_ns):
        delta = after - before
        shortest = delta if shortest is None else min(shortest, delta)
        found.append(delta - shortest)
    return found


def corrected(hiccups_ns: Iterable[int], interval_ns: int) -> list[int]:
    """With the synthetic samples: v − T, v − 2T … down to T."""
    found = []
    for value in hiccups_ns:
        found.append(value)
        found.extend(range(value - interval_ns, interval_ns - 1, -interval_ns))
    return found


def bucket_top(ns: int) -> int:
    """What the recorder says for a value: the top of its bucket."""
    doublings = max(0, (ns >> UNIT_BITS).bit_length() - SUB_BUCKET_BITS)
    width = BUCKET_NS << doublings
    return (ns // width + 1) * width - 1


def quantile(values: Sequence[int], q: float) -> int:
    """As the recorder counts: the bucket in which the share q is reached."""
    ordered = sorted(values)
    return bucket_top(ordered[max(0, -int(-q * len(ordered) // 1) - 1)])


def buckets_apart(a_ns: int, b_ns: int) -> int:
    return abs(a_ns // BUCKET_NS - b_ns // BUCKET_NS)
