//! Steps that have a deadline together, as the file names them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steps that have a deadline together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Unique.
    pub name: String,
    /// Metrics whose sum is its length.
    pub metrics: Vec<String>,
    /// In their unit.
    pub deadline: f64,
    /// What a miss means.
    #[serde(default)]
    pub criticality: Criticality,
}

/// What a miss of a deadline means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Criticality {
    /// Damage: no score makes up for it.
    Hard,
    /// The result is worth nothing.
    #[default]
    Firm,
    /// The result is worth less.
    Soft,
}
