//! The JSON form of a replay: the result itself with its sentences. The schema is `docs/guard-replay.schema.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_replay::{Found, Replay, Run};

use super::{GuardShown, sentences};
use crate::envelope::{self, Said};

/// What `taut guard replay --format json` prints.
pub fn guard_json(shown: &GuardShown<'_>) -> serde_json::Value {
    let guard = Guard {
        run: shown.run,
        command: shown.command,
        replay: shown.replay,
        runs: shown.replay.runs.iter().map(run).collect(),
        tuned: shown.tuned.map(|(tuned, toml)| Tuned {
            toml,
            evidence: tuned.evidence.iter().map(|of| (of.parameter, of.why.as_str())).collect(),
        }),
        damage: shown.damage,
    };
    envelope::json("guard", sentences::headline(shown.replay), guard)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Replay")]
struct Guard<'a> {
    /// The recording, as typed.
    run: &'a str,
    /// The command that makes the same again.
    command: &'a str,
    #[serde(flatten)]
    replay: &'a Replay,
    /// The taut guard first, then the others in the order of guard.toml.
    runs: Vec<RunShown<'a>>,
    /// Proposed parameters; null without --tune.
    tuned: Option<Tuned<'a>>,
    /// What could not be read of the recording.
    damage: &'a [String],
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
struct RunShown<'a> {
    #[serde(flatten)]
    of: &'a Run,
    /// The first hundred.
    trips: Vec<Said<&'a Found>>,
}

#[derive(Serialize, JsonSchema)]
struct Tuned<'a> {
    /// A whole guard.toml.
    toml: &'a str,
    /// What the stream showed, by parameter.
    evidence: BTreeMap<&'a str, &'a str>,
}

fn run(of: &Run) -> RunShown<'_> {
    let sentence = |trip: &Found| format!("{} {}", sentences::seconds(trip.at_ns), sentences::trip(trip));
    RunShown { of, trips: of.trips.iter().filter_map(|trip| Said::of(Some(trip), sentence)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{envelope::Envelope, guard::sample, json::assert_documented};

    #[test]
    fn the_schema_is_documented() {
        assert_documented(&schemars::schema_for!(Envelope<Guard<'_>>).to_value(), "guard-replay.schema.json");
    }

    #[test]
    fn trips_carry_what_proves_them() {
        sample::with(|shown| {
            let json = guard_json(shown);
            let naive = &json["runs"][1];
            assert!(naive["judgement"]["false_trips"].as_u64().unwrap() > 0);
            assert_eq!(naive["trips"][0]["is_false"], true);
            let [a, b] = [0, 1].map(|n| naive["trips"][0]["proof"][n]["t_ns"].as_i64().unwrap());
            assert!(b > a);
            let ours = &json["runs"][0];
            assert_eq!((&ours["name"], &ours["judgement"]["false_trips"]), (&"taut guard".into(), &0.into()));
            let trip = &ours["trips"][0];
            assert_eq!(trip["black_box"].as_array().unwrap().len(), 50);
            assert_eq!(trip["black_box"][49]["state"], "overspeed");
        });
    }
}
