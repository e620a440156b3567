//! What every JSON form shares: its version, and the figures of a distribution.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::Distribution;

/// Of every JSON form; raised when a field is renamed, removed, or changes its meaning.
pub const SCHEMA_VERSION: u32 = 2;

/// Quantiles are null where fewer than ten bursts of exceedances lie beyond them.
#[derive(Serialize, JsonSchema)]
pub struct Figures {
    pub n: u64,
    pub min_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p95_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    pub mean_ns: Option<f64>,
    pub sd_ns: Option<f64>,
    /// Quantiles that are null above, where three to nine bursts lie beyond them: [low, value, high] by field name, with
    /// the bounds of a 95 % interval; high is null where the data have no upper bound.
    pub estimates: BTreeMap<&'static str, (u64, u64, Option<u64>)>,
}

/// In the order of `taut_stats::QUANTILES`.
const QUANTILE_FIELDS: [&str; 5] = ["p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns"];

pub fn figures(d: &Distribution) -> Figures {
    let Distribution { n, min_ns, p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns, mean_ns, sd_ns, estimates } = *d;
    let estimated = QUANTILE_FIELDS.into_iter().zip(estimates);
    let estimates =
        estimated.filter_map(|(name, found)| found.map(|of| (name, (of.low_ns, of.value_ns, of.high_ns)))).collect();
    Figures { n, min_ns, p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns, mean_ns, sd_ns, estimates }
}
