//! What a sweep goes over, as the file names it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Value;

/// What `taut lab sweep` goes over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The scenario that is varied.
    pub scenario: String,
    /// Measured trials of each point; without it as many as the lab's.
    pub trials: Option<u32>,
    /// By key below the scenario, "load.0.rate_hz" or "environment.DEPTH", its values.
    pub vary: BTreeMap<String, Vec<Value>>,
}
