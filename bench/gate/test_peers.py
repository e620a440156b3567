"""The quick ways against the well-known ones."""

import numpy as np
import peers
from scipy import stats


def test_mann_whitney_from_counts_is_scipys() -> None:
    chance = np.random.default_rng(1)
    a, b = chance.poisson(20, 300), chance.poisson(21, 200)
    values = np.unique(np.concatenate((a, b)))
    count = [np.bincount(np.searchsorted(values, sample), minlength=len(values)) for sample in (a, b)]
    expected = stats.mannwhitneyu(b, a, alternative="greater", method="asymptotic").pvalue
    assert np.isclose(peers.mann_whitney(*count), expected)


def test_a_quantile_of_counts_is_the_nearest_rank() -> None:
    sample = np.arange(1, 1001)
    assert peers.quantile(sample, np.ones(1000, int), 0.99) == 990


def test_a_shift_of_a_third_is_found_by_all_and_none_is_found_by_most() -> None:
    chance = np.random.default_rng(2)
    trials = [chance.lognormal(6, 0.1, 400).astype(np.int64) for _ in range(40)]
    slower = [trial * 4 // 3 for trial in trials[20:]]
    values = np.unique(np.concatenate(trials + slower))
    a, same, worse = (peers.Trials.of(side, values) for side in (trials[:20], trials[20:], slower))
    assert all(peers.alarms(a, worse, np.arange(20), chance))
    assert sum(peers.alarms(a, same, np.arange(20), chance)) <= 1
