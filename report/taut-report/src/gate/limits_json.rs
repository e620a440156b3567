//! The JSON form of limits. The schema is documented in
//! `docs/schemas/limits.schema.json`, generated from these types.

use schemars::JsonSchema;
use serde::Serialize;
use taut_gate::{LimitFigure, LimitFinding};

use super::limits::{self, LimitsShown};

/// What `taut gate --limits --format json` prints.
pub fn limits_json(shown: &LimitsShown<'_>) -> serde_json::Value {
    let outcome = shown.outcome;
    let json = Limits {
        schema_version: crate::SCHEMA_VERSION,
        kind: "limits",
        verdict: limits::word(outcome.verdict),
        headline: limits::headline(shown),
        subject: shown.subject.to_owned(),
        failed_runs: outcome.failures.failed,
        trials: outcome.trials,
        fewest_trials: outcome.fewest,
        limits: outcome.findings.iter().map(limit).collect(),
        notes: shown.terms.notes.to_vec(),
    };
    serde_json::to_value(json).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Limits {
    /// Version of this schema.
    schema_version: u32,
    /// "limits".
    kind: &'static str,
    /// The gravest of all limits' results: "kept", "broken", "broken by the machine", "not enough evidence", "not carried".
    verdict: &'static str,
    /// The verdict in one line.
    headline: String,
    /// What was held against the limits: a command, a file.
    subject: String,
    /// Runs that failed: then the verdict is "broken".
    failed_runs: usize,
    /// Sound trials.
    trials: usize,
    /// The fewest that can settle anything.
    fewest_trials: usize,
    limits: Vec<Limit>,
    /// What a reader must know.
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Limit {
    /// E.g. "arm: plan → send, own p99".
    name: String,
    /// The chain's name.
    chain: String,
    /// "from → to"; null for the whole way and for shares.
    hop: Option<String>,
    /// "ns" or "share".
    unit: &'static str,
    limit: f64,
    /// As the whole gate's.
    verdict: &'static str,
    /// Median over trials; null where the trials do not carry the figure.
    typical: Option<f64>,
    /// Its lower bound; null below the fewest trials.
    low: Option<f64>,
    /// Its upper bound.
    high: Option<f64>,
    /// Messages beyond the limit, where the trials are too few to decide by the typical one; else null.
    messages: Option<Messages>,
    /// The same as `typical` without the machine's part; null where the limit is not on all of the time.
    typical_own: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Messages {
    all: u64,
    beyond: u64,
    /// Runs of consecutive messages beyond the limit.
    bursts: u64,
    /// Bounds of the share beyond, bursts being the units.
    share_low: f64,
    share_high: f64,
    /// The share that may be beyond: 0.01 for a limit on p99.
    allowed: f64,
}

fn limit(finding: &LimitFinding) -> Limit {
    let interval = finding.typical.as_ref().and_then(|typical| typical.interval);
    Limit {
        name: limits::name(finding),
        chain: finding.limit.chain.clone(),
        hop: finding.limit.hop.clone(),
        unit: if matches!(finding.limit.figure, LimitFigure::Time(..)) { "ns" } else { "share" },
        limit: finding.limit.value,
        verdict: limits::word(finding.verdict),
        typical: finding.typical.as_ref().map(|typical| typical.value),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        messages: finding.beyond.map(|beyond| Messages {
            all: beyond.bursts.samples,
            beyond: beyond.bursts.beyond,
            bursts: beyond.bursts.bursts,
            share_low: beyond.share.low,
            share_high: beyond.share.high,
            allowed: beyond.allowed,
        }),
        typical_own: finding.own.as_ref().map(|own| own.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&schemars::schema_for!(Limits).to_value(), "schemas/limits.schema.json");
    }
}
