//! Quantiles of a sample, each printed only when the data carry it.

/// Quantiles of a set of durations in nanoseconds. A quantile is `None` when fewer
/// than ten bursts of exceedances lie beyond it: not enough data to name it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Samples.
    pub n: u64,
    /// Smallest, exact.
    pub min_ns: Option<u64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 95th percentile.
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// Largest, exact.
    pub max_ns: Option<u64>,
    /// Mean; shown, never used to decide.
    pub mean_ns: Option<f64>,
    /// Standard deviation; shown, never used to decide.
    pub sd_ns: Option<f64>,
}
