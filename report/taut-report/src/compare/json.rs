//! The comparison for scripts, beside the reports of its recordings. The schema is documented in
//! `docs/comparison.schema.json`, generated from the types.

use serde_json::Value;

use super::Comparison;
use crate::Named;

/// What stands under "comparison" in the JSON of several recordings.
pub fn comparison_json(recordings: &[Named<'_>]) -> Value {
    serde_json::to_value(Comparison::new(recordings)).unwrap_or_default()
}

/// Its JSON schema.
pub fn comparison_schema() -> Value {
    schemars::schema_for!(Comparison).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&comparison_schema(), "comparison.schema.json");
    }
}
