//! Figures of a metric over trials, with failures on the far side of every number.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::{Better, Proportion};

/// Rounds in which only one of two scenarios succeeded (McNemar's test, exact).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SuccessDifference {
    /// Trials compared.
    pub pairs: u32,
    /// The baseline succeeded, this did not.
    pub only_baseline: u32,
    /// This succeeded, the baseline did not.
    pub only_here: u32,
    /// Two-sided chance of at least such an imbalance, were there no difference.
    pub p: f64,
}

/// A metric over the valid trials of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricFigures {
    /// As trials report it.
    pub name: String,
    /// As the file says.
    pub about: String,
    /// As the file says.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// Valid trials.
    pub n: usize,
    /// Of them those that failed or lack the number, counted as worse than every number.
    pub failed: usize,
    /// What failed trials reported all the same; `None` where none did.
    pub failed_reported: Option<FailedReported>,
    /// The best trial.
    pub best: Option<Bound>,
    /// The median trial.
    pub median: Option<Bound>,
    /// 95 % interval of the median; `None` below 6 starts.
    pub interval: Option<(Bound, Bound)>,
    /// What one trial in ten is worse than; `None` where too few lie beyond.
    pub tenth_worst: Option<Bound>,
    /// What one trial in a hundred is worse than.
    pub hundredth_worst: Option<Bound>,
    /// The worst trial.
    pub worst: Option<Bound>,
    /// Beyond the deadline, or without the number.
    pub misses: Option<Proportion>,
    /// Against the baseline; `None` of the baseline itself.
    pub difference: Option<Difference>,
}

/// The numbers of trials that failed: in no other figure of the metric, where failures stand as worse than every number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FailedReported {
    /// Failed trials with the number.
    pub n: usize,
    /// The median of theirs.
    pub median: f64,
}

/// By how much a scenario differs from the baseline, over rounds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Rounds compared.
    pub pairs: usize,
    /// Rounds left out: invalid in one of the two, or failed in both.
    pub left_out: usize,
    /// `true`: this over the baseline. `false`: this less the baseline, as some number is not above 0.
    pub ratio: bool,
    /// Hodges & Lehmann's.
    pub estimate: Bound,
    /// 95 % interval; `None` below 6 rounds.
    pub interval: Option<(Bound, Bound)>,
    /// The estimate on each host by itself, where there are several: pairs never cross hosts.
    pub hosts: BTreeMap<String, Bound>,
    /// That of each round, in the order of the rounds; for plots.
    #[serde(skip)]
    pub each: Vec<Bound>,
}

/// A number, or further away than every number because trials failed. In JSON a number, "failed" or "failed less".
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A number.
    Number(f64),
    /// On the side of failures.
    Failed,
    /// On the other side: the baseline failed.
    FailedLess,
}

impl JsonSchema for Bound {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bound".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number, or further away than every number because trials failed.",
            "anyOf": [{ "type": "number" }, { "enum": ["failed", "failed less"] }]
        })
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bound::Number(value) => serializer.serialize_f64(*value),
            Bound::Failed => serializer.serialize_str("failed"),
            Bound::FailedLess => serializer.serialize_str("failed less"),
        }
    }
}
