//! Named sets of weights.

use serde::{Deserialize, Serialize};

/// A named set of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// Of ldos_manip_tracing (its `objectives.yaml` has others; these are those its scores are made with).
    Manipulation,
}
