//! The JSON form of a gate: its outcome, with the figures that were judged by name. The schema is `docs/schemas/gate.schema.json`.

use schemars::JsonSchema;
use serde::Serialize;
use taut_gate::{Ballot, Outcome};
use taut_stats::compare::Verdict;

use super::{GateShown, figure::GateFigure, sentences};
use crate::envelope;

/// What `taut gate --format json` and `taut compare --format json` print.
pub fn gate_json(shown: &GateShown<'_>) -> serde_json::Value {
    let outcome = shown.outcome;
    let more_pairs = match outcome.verdict {
        Verdict::NotEnoughEvidence { more_pairs } => more_pairs,
        _ => None,
    };
    let voted = |all: &[Ballot]| all.iter().map(|ballot| GateFigure::voted(shown, ballot)).collect();
    let gate = Gate {
        verdict: sentences::word(&outcome.verdict),
        more_pairs,
        a: shown.a,
        b: shown.b,
        elapsed_s: shown.elapsed_s,
        seed: shown.seed,
        startup: voted(&outcome.startup),
        hop: outcome.blamed.and_then(|at| outcome.hops.get(at)).map(|hop| format!("{} → {}", hop.from, hop.to)),
        decides: voted(&outcome.ballots),
        described: outcome.described.iter().map(|one| GateFigure::described(shown, one)).collect(),
        notes: sentences::notes(shown),
        outcome,
    };
    envelope::json(shown.kind, sentences::headline(shown), gate)
}

#[derive(Serialize, JsonSchema)]
struct Gate<'a> {
    /// "worse", "better", "no relevant difference", "not enough evidence", "invalid": on the program.
    verdict: &'static str,
    /// About how many more pairs would settle it; null where it is settled, or where no number is sure to.
    more_pairs: Option<usize>,
    /// The baseline: a command, a revision, a file.
    a: &'a str,
    /// The candidate.
    b: &'a str,
    /// Null for stored trials.
    elapsed_s: Option<f64>,
    /// What the order within pairs was drawn from; null for stored trials.
    seed: Option<u64>,
    /// The first messages, judged by themselves: their slowest, and the deadlines that they missed.
    startup: Vec<GateFigure>,
    /// The hop that got worse: "from → to"; null unless the verdict is worse and a hop is to blame.
    hop: Option<String>,
    /// The figures that decide.
    decides: Vec<GateFigure>,
    /// Further figures, each judged by itself.
    described: Vec<GateFigure>,
    /// What a reader must know.
    notes: Vec<String>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{envelope::Envelope, gate::sample, json::assert_documented};

    #[test]
    fn a_script_finds_the_verdict_the_hop_and_the_figures() {
        let (_, outcome) = sample::outcomes().remove(0);
        let value = gate_json(&sample::shown(&outcome));
        assert_eq!((&value["verdict"], &value["hop"]), (&"worse".into(), &"read → plan".into()));
        assert_eq!(value["decides"].as_array().unwrap().len(), outcome.ballots.len());
        assert!(value["distributions"]["a_total"].as_array().unwrap().len() > 2);
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schemars::schema_for!(Envelope<Gate<'_>>).to_value(), "schemas/gate.schema.json");
    }
}
