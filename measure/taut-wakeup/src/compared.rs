//! Variants side by side: by how much each differs from the first, over the rounds in which they took turns. One figure
//! of a whole run is no evidence: on a busy machine the same thing measured twice differs by a quarter and more.

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::compare::Shift;

use crate::Variant;

/// All intervals of a comparison hold together with this confidence.
const CONFIDENCE: f64 = 0.95;

/// A variant against the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Against")]
pub struct Compared {
    /// "p99", or "p50" where some variant has too few wakes for that.
    pub figure: &'static str,
    /// This over the first: Hodges and Lehmann's estimate over the rounds.
    pub ratio: f64,
    /// All of them hold together with 95 %; null with too few rounds. A difference is shown where it does not include 1.
    pub interval: Option<(f64, f64)>,
    /// Rounds in which both were measured.
    pub rounds: usize,
}

impl Compared {
    /// Whether the whole interval is below the first.
    pub fn is_earlier(&self) -> bool {
        self.interval.is_some_and(|(_, high)| high < 1.0)
    }

    /// Whether the whole interval is above the first.
    pub fn is_later(&self) -> bool {
        self.interval.is_some_and(|(low, _)| low > 1.0)
    }
}

/// Each variant but the first against the first; `None` of one without rounds, as of those read from files.
pub fn compared(variants: &[Variant]) -> Vec<Option<Compared>> {
    let Some((first, others)) = variants.split_first() else { return Vec::new() };
    let has_p99 = variants.iter().all(|variant| variant.all.wakeups.distribution().p99_ns.is_some());
    // Each side of each interval, so that all of them are right together (Bonferroni).
    let alpha = (1.0 - CONFIDENCE) / 2.0 / others.len().max(1) as f64;
    let one = |other: &Variant| {
        let pairs = first.turns.iter().zip(&other.turns);
        let ratio = |(a, b): (&crate::Turn, &crate::Turn)| {
            let (a, b) = if has_p99 { (a.p99_ns, b.p99_ns) } else { (a.p50_ns, b.p50_ns) };
            Some((b?.max(1) as f64 / a?.max(1) as f64).ln())
        };
        let ratios: Vec<f64> = pairs.filter_map(ratio).collect();
        let shift = Shift::of(&ratios)?;
        Some(Compared {
            figure: if has_p99 { "p99" } else { "p50" },
            ratio: shift.estimate().exp(),
            interval: shift.lower(alpha).zip(shift.upper(alpha)).map(|(low, high)| (low.exp(), high.exp())),
            rounds: ratios.len(),
        })
    };
    others.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Turn;

    fn variant(p50s: &[u64]) -> Variant {
        let turn = |p50: &u64| Turn { p50_ns: Some(*p50), p99_ns: Some(10 * p50) };
        Variant { turns: p50s.iter().map(turn).collect(), ..Variant::default() }
    }

    #[test]
    fn noise_is_no_difference_and_twice_is_one() {
        // The first rounds of the second are at × 0.74, which was named best once; the others are not.
        let first = variant(&[100, 104, 97, 101, 99, 103, 100, 98, 102, 100]);
        let noise = variant(&[74, 77, 130, 75, 121, 76, 119, 72, 110, 74]);
        let twice = variant(&[200, 205, 199, 203, 201, 204, 198, 200, 202, 199]);
        let found = compared(&[first, noise, twice]);
        let [Some(noise), Some(twice)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((noise.figure, noise.rounds), ("p50", 10));
        assert!(noise.ratio < 1.0 && !noise.is_earlier() && !noise.is_later(), "{noise:?}");
        assert!((twice.ratio - 2.0).abs() < 0.05 && twice.is_later(), "{twice:?}");
    }

    #[test]
    fn few_rounds_carry_no_interval() {
        let found = compared(&[variant(&[100; 4]), variant(&[50; 4])]);
        assert_eq!(found[0].map(|found| (found.interval, found.is_earlier())), Some((None, false)));
        assert_eq!(compared(&[variant(&[]), variant(&[])]), [None]);
        assert!(compared(&[]).is_empty());
    }
}
