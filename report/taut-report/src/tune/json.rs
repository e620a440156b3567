//! The JSON form of a tuning: the result itself with its answer. The schema is `docs/schemas/tune.schema.json`.

use schemars::JsonSchema;
use serde::Serialize;
use taut_tune::{Answer, Tuned};

use super::sentences;
use crate::envelope;

/// What `taut tune --format json` prints.
pub fn tune_json(tuned: &Tuned) -> serde_json::Value {
    envelope::json("tune", sentences::headline(tuned), Tune { answer: tuned.answer(), tuned })
}

#[derive(Serialize, JsonSchema)]
struct Tune<'a> {
    /// "recommended", "nothing helps", "not permitted", "not enough evidence", "interrupted".
    #[schemars(with = "String")]
    answer: Answer,
    #[serde(flatten)]
    tuned: &'a Tuned,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{envelope::Envelope, json::assert_documented, tune::sample};

    #[test]
    fn a_script_finds_the_recommendation_and_its_gain() {
        let value = tune_json(&sample::all().remove(0).1);
        assert_eq!(value["answer"], "recommended");
        assert_eq!(value["recommended"]["remedies"], serde_json::json!(["place"]));
        assert!(value["recommended"]["tail"]["change"].as_f64().unwrap() < -0.5);
        assert_eq!(value["tried"][0]["standing"], "confirmed");
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schemars::schema_for!(Envelope<Tune<'_>>).to_value(), "schemas/tune.schema.json");
    }
}
