"""The parsers, definitions and joins of the proof, on texts and wakes made by hand."""

import blame
import cyclictest
import jhiccup
import pytest

PRINTED = """# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000
000014 000006
000016 000003
000999 000000
# Total: 000000009
# Min Latencies: 00014
# Avg Latencies: 00015
# Max Latencies: 01234
# Histogram Overflows: 00001
# Histogram Overflow at cycle number:
# Thread 0: 00007
"""


def test_wakes_beyond_cyclictests_histogram_count_in_its_quantiles() -> None:
    histogram = cyclictest.read(PRINTED, unit_ns=1000)
    assert (histogram.n, histogram.overflow, histogram.max_ns) == (10, 1, 1_234_000)
    assert [histogram.quantile_ns(q) for q in (0.5, 0.6, 0.61, 0.9, 0.91)] == [14_000, 14_000, 16_000, 16_000, None]


def test_other_output_of_cyclictest_is_refused() -> None:
    with pytest.raises(SystemExit, match="Overflows"):
        cyclictest.read("# Histogram\n", unit_ns=1)


def test_a_hiccup_is_what_a_wake_lost_against_the_shortest_time_so_far() -> None:
    assert jhiccup.hiccups([0, 1_060, 2_110, 3_400]) == [0, 0, 240]
    assert jhiccup.corrected([3_500, 900], 1_000) == [3_500, 2_500, 1_500, 900]


def test_jhiccups_buckets_are_those_of_its_recorder() -> None:
    # As HdrHistogram(20_000, an hour, 2) answers.
    assert [jhiccup.bucket_top(ns) for ns in (0, 16_384, 4_194_303, 4_194_304)] == [
        16_383,
        32_767,
        4_194_303,
        4_227_071,
    ]
    assert jhiccup.quantile([1, 2, 70_000], 0.5) == 16_383
    assert jhiccup.buckets_apart(16_383, 49_151) == 2


MS = 1_000_000


def wake(due_ns: int, late_ns: int, culprit: str) -> blame.Wake:
    return blame.Wake(due_ns, late_ns, {culprit: late_ns - 20_000, "syscall: clock_nanosleep": 20_000})


def test_a_burst_is_named_by_the_wake_that_it_held_up() -> None:
    burst = (10 * MS - 300_000, 12 * MS - 300_000)
    usual = [wake(at * MS, 30_000, "timer_slack: ") for at in range(20) if at not in (10, 11)]
    for culprit, named in (("wakeup: by hog/7", 1), ("wakeup: by hog/71", 0), ("irq: local timer", 0)):
        held = wake(10 * MS, 1_720_000, culprit)
        wakes = sorted([*usual, held], key=lambda w: w.due_ns)
        verdict = blame.judge([burst], wakes, "hog/7", MS)
        assert (verdict.hits, verdict.named, verdict.others) == (1, named, 0), culprit
    assert blame.judge([burst], usual, "hog/7", MS).wrong


def test_a_burst_that_catches_a_wake_on_its_way_hits_it() -> None:
    """Due just before the burst, held up by all of it; the cycles that fall due in it never wake."""
    burst = (10 * MS + 10_000, 12 * MS + 10_000)
    wakes = [wake(9 * MS, 30_000, "x"), wake(10 * MS, 2_020_000, "wakeup: by hog/7"), wake(13 * MS, 30_000, "x")]
    verdict = blame.judge([burst], wakes, "hog/7", MS)
    assert (verdict.hits, verdict.named, verdict.late) == (1, 1, 1)


def test_a_late_wake_far_from_every_burst_must_not_be_the_hogs() -> None:
    wakes = [wake(MS, 30_000, "x"), wake(2 * MS, 400_000, "wakeup: by hog/7"), wake(3 * MS, 30_000, "x")]
    verdict = blame.judge([(9 * MS, 11 * MS)], wakes, "hog/7", MS)
    assert (verdict.hits, verdict.others, verdict.slandered) == (0, 1, 1)
