"""What the usual ways of comparing two programs would say of the same pairs: from end-to-end latencies, since none of them
knows of causes. Each gets the pairs as they were run, back to back and in random order, which is better than it is used to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ALPHA = 0.05
"""Of every test here, one-sided: only slower is an alarm."""
THRESHOLD = 0.10
CRITERION_SAMPLES, CRITERION_NOISE, CRITERION_RESAMPLES = 100, 0.01, 1000
"""criterion.rs compares 100 samples, each the mean of a batch, and ignores changes within 1 %; its 100 000 resamples are fewer
here, which moves a bound of 95 % by a thousandth of its width."""
WAYS = (
    "mean ± 2 sd: one run of B against the runs of A",
    "Welch's t-test on the means of runs",
    "p99 of all messages over + 10 %",
    "Mann–Whitney on all messages",
    "criterion-style: bootstrap of the mean",
)


@dataclass
class Trials:
    """All trials of one side, of all pairs of a kind: latencies in order of time, and how often each value was seen."""

    latencies: list[NDArray[np.int64]]
    counts: NDArray[np.int64]
    """Trials × values."""
    values: NDArray[np.int64]

    @staticmethod
    def of(latencies: list[NDArray[np.int64]], values: NDArray[np.int64]) -> "Trials":
        count = [np.bincount(np.searchsorted(values, trial), minlength=len(values)) for trial in latencies]
        return Trials(latencies, np.array(count), values)


def alarms(a: Trials, b: Trials, drawn: NDArray[np.int64], chance: np.random.Generator) -> list[bool]:
    """Which of the ways call B slower, given the numbers of the pairs of a gate."""
    mean_a = np.array([a.latencies[pair].mean() for pair in drawn])
    mean_b = np.array([b.latencies[pair].mean() for pair in drawn])
    count_a, count_b = a.counts[drawn].sum(axis=0), b.counts[drawn].sum(axis=0)
    return [
        bool(mean_b[0] > mean_a.mean() + 2 * mean_a.std(ddof=1)),
        bool(stats.ttest_ind(mean_b, mean_a, equal_var=False, alternative="greater").pvalue < ALPHA),
        bool(quantile(a.values, count_b, 0.99) > (1 + THRESHOLD) * quantile(a.values, count_a, 0.99)),
        mann_whitney(count_a, count_b) < ALPHA,
        criterion([a.latencies[pair] for pair in drawn], [b.latencies[pair] for pair in drawn], chance),
    ]


def quantile(values: NDArray[np.int64], counts: NDArray[np.int64], q: float) -> float:
    """Nearest rank."""
    reached = np.cumsum(counts)
    return float(values[np.searchsorted(reached, np.ceil(q * reached[-1]))])


def mann_whitney(count_a: NDArray[np.int64], count_b: NDArray[np.int64]) -> float:
    """p of "B is not slower": the normal approximation with ties and continuity, as scipy's, from counts of values."""
    n_a, n_b = int(count_a.sum()), int(count_b.sum())
    n = n_a + n_b
    below = np.cumsum(count_a) - count_a
    u = float((count_b * (below + count_a / 2)).sum())
    ties = count_a + count_b
    tied = float((ties.astype(float) ** 3 - ties).sum()) / (n * (n - 1))
    sd = np.sqrt(n_a * n_b / 12 * (n + 1 - tied))
    return float(stats.norm.sf((u - n_a * n_b / 2 - 0.5) / sd))


def criterion(a: list[NDArray[np.int64]], b: list[NDArray[np.int64]], chance: np.random.Generator) -> bool:
    """Whether the bootstrapped change of the mean is beyond the noise threshold with 95 %."""
    sample_a, sample_b = batches(a), batches(b)
    means_a = chance.choice(sample_a, (CRITERION_RESAMPLES, len(sample_a))).mean(axis=1)
    means_b = chance.choice(sample_b, (CRITERION_RESAMPLES, len(sample_b))).mean(axis=1)
    return bool(np.quantile(means_b / means_a - 1, 0.025) > CRITERION_NOISE)


def batches(trials: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """The latencies one after the other, as means of batches."""
    return np.array([batch.mean() for batch in np.array_split(np.concatenate(trials), CRITERION_SAMPLES)])
