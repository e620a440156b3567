//! Outcomes of known truth for the tests of all forms.

use taut_gate::{Asked, Error, Outcome, Settings, Void, gate};

use super::{GateShown, Terms};

#[path = "../../../../gate/taut-gate/tests/made/mod.rs"]
mod made;

use made::{Made, gated};

/// Worse, the same, the machine's doing, and too few pairs.
pub fn outcomes() -> Vec<(&'static str, Outcome)> {
    let a = Made::default();
    let of = |b: &Made, pairs| gated(&Settings::default(), &a, b, 1, pairs).outcome;
    vec![
        ("worse", of(&Made { work_ns: [48_000.0, 1e5, 6e4], ..a.clone() }, 40)),
        ("same", of(&a, 40)),
        ("machine", of(&Made { machine: (0.3, 2e6), ..a.clone() }, 40)),
        ("inconclusive", of(&Made { work_ns: [4e4, 1.3e5, 6e4], ..a.clone() }, 5)),
    ]
}

/// Of a program against itself on a machine that stalled in every trial of A.
pub fn stalled() -> Outcome {
    let mut random = rand::SeedableRng::seed_from_u64(1);
    let mut next = |_: Asked| -> Result<_, Error> {
        let (mut a, b) = (Made::default().trial(&mut random), Made::default().trial(&mut random));
        a.void = Some(Void::Stalled { stalled: 0.3 });
        Ok(Some((a, b)))
    };
    gate(&Settings::default(), &mut next).unwrap().outcome
}

/// Two pairs, which can only describe.
pub fn described() -> Outcome {
    let slower = Made { work_ns: [4e4, 1.3e5, 6e4], ..Made::default() };
    gated(&Settings::default(), &Made::default(), &slower, 1, 2).outcome
}

pub fn shown(outcome: &Outcome) -> GateShown<'_> {
    GateShown {
        kind: "gate",
        a: "main",
        b: "HEAD",
        outcome,
        noise: &[],
        elapsed_s: Some(60.0),
        seed: Some(7),
        terms: Terms::default(),
    }
}
