//! The JSON form of budgets: serialisable twins, made here at the edge. The schema is documented in
//! `docs/schemas/budgets.schema.json`, generated from these types.

use schemars::JsonSchema;
use serde::Serialize;
use taut_gate::{BudgetFigure, BudgetFinding};

use super::budgets::{self, BudgetsShown};

/// Raised when a field is renamed, removed, or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// What `taut gate --budgets --format json` prints.
pub fn budgets_json(shown: &BudgetsShown<'_>) -> serde_json::Value {
    let budgeted = shown.budgeted;
    let json = Budgets {
        schema_version: SCHEMA_VERSION,
        kind: "budgets",
        verdict: budgets::word(budgeted.verdict),
        headline: budgets::headline(shown),
        subject: shown.subject.to_owned(),
        failed_runs: budgeted.failures.failed,
        trials: budgeted.trials,
        fewest_trials: budgeted.fewest,
        budgets: budgeted.findings.iter().map(budget).collect(),
        notes: shown.terms.notes.to_vec(),
    };
    serde_json::to_value(json).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Budgets {
    /// Version of this schema.
    schema_version: u32,
    /// "budgets".
    kind: &'static str,
    /// The gravest of all budgets: "kept", "broken", "broken by the machine", "not enough evidence", "not carried".
    verdict: &'static str,
    /// The verdict in one line.
    headline: String,
    /// What was held against the budgets: a command, a file.
    subject: String,
    /// Runs that failed: then the verdict is "broken".
    failed_runs: usize,
    /// Sound trials.
    trials: usize,
    /// The fewest that can settle anything.
    fewest_trials: usize,
    budgets: Vec<Budget>,
    /// What a reader must know.
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Budget {
    /// E.g. "arm: plan → send, own p99".
    budget: String,
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

fn budget(finding: &BudgetFinding) -> Budget {
    let interval = finding.typical.as_ref().and_then(|typical| typical.interval);
    Budget {
        budget: budgets::name(finding),
        chain: finding.budget.chain.clone(),
        hop: finding.budget.hop.clone(),
        unit: if matches!(finding.budget.figure, BudgetFigure::Time(..)) { "ns" } else { "share" },
        limit: finding.budget.limit,
        verdict: budgets::word(finding.verdict),
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
        crate::json::assert_documented(&schemars::schema_for!(Budgets).to_value(), "schemas/budgets.schema.json");
    }
}
