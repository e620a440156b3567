//! How a metric is compared: as a ratio or a difference, and from which effect on it counts.

use serde::{Deserialize, Serialize};

use super::{Pair, Shift, shift::median_of_sorted};

/// On which scale the two trials of a pair are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// ln(B/A): durations and whatever else is always above zero.
    Ratio,
    /// B − A, in the metric's unit: what may be zero.
    Difference,
    /// B − A of shares of messages, by their mean: most trials may have none of what is rare.
    Share,
}

impl Scale {
    /// What to rank for one pair; not finite where the scale does not fit the numbers.
    pub fn difference(self, pair: Pair) -> f64 {
        match self {
            Scale::Ratio => (pair.b / pair.a).ln(),
            Scale::Difference | Scale::Share => pair.b - pair.a,
        }
    }

    /// The shift of so many differences on this scale; `None` without any.
    pub fn shift(self, differences: &[f64]) -> Option<Shift> {
        match self {
            Scale::Ratio | Scale::Difference => Shift::of(differences),
            Scale::Share => Shift::of_mean(differences),
        }
    }

    /// A shift on this scale as a change people read: 0.1 for +10 % of a ratio, else in the metric's unit.
    pub fn change(self, shift: f64) -> f64 {
        match self {
            Scale::Ratio => shift.exp_m1(),
            Scale::Difference | Scale::Share => shift,
        }
    }
}

/// An effect, given relative to the level or in the metric's unit: the larger of the two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Margin {
    /// Share of the level: 0.05 is 5 %.
    pub relative: f64,
    /// In the metric's unit, so that 2 µs that became 3 µs are no news: 20 000 for 20 µs in ns.
    pub absolute: f64,
}

impl Margin {
    /// The margin as a shift on a scale, the same whichever of A and B is called the baseline.
    ///
    /// The level is the median over pairs of the middle of the two trials; with g their geometric mean,
    /// b − a = 2g·sinh(ln(b/a)/2), which turns an absolute margin into a ratio's.
    pub fn on(self, scale: Scale, pairs: &[Pair]) -> f64 {
        let level = level(scale, pairs);
        match scale {
            Scale::Ratio if level > 0.0 => self.relative.ln_1p().max(2.0 * (self.absolute / (2.0 * level)).asinh()),
            Scale::Ratio => self.relative.ln_1p(),
            Scale::Difference | Scale::Share => (self.relative * level.abs()).max(self.absolute),
        }
    }
}

/// How a metric is judged. Larger is worse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// Ratio or difference.
    pub scale: Scale,
    /// Only a change proven to be beyond this is worse, or better.
    pub minimum_effect: Margin,
    /// A change proven to be within this, and estimated below the minimum effect, is no relevant difference.
    pub equivalence: Margin,
}

impl Default for Rule {
    /// Ratios; worse beyond 5 %, no relevant difference within 10 %.
    fn default() -> Rule {
        let relative = |relative| Margin { relative, absolute: 0.0 };
        Rule { scale: Scale::Ratio, minimum_effect: relative(0.05), equivalence: relative(0.1) }
    }
}

fn level(scale: Scale, pairs: &[Pair]) -> f64 {
    let middle = |pair: &Pair| match scale {
        Scale::Ratio => (pair.a * pair.b).sqrt(),
        Scale::Difference | Scale::Share => (pair.a + pair.b) / 2.0,
    };
    let mut levels: Vec<f64> = pairs.iter().map(middle).collect();
    levels.sort_unstable_by(f64::total_cmp);
    if levels.is_empty() { 0.0 } else { median_of_sorted(&levels) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_margin_is_met_exactly_at_its_distance() {
        let margin = Margin { relative: 0.05, absolute: 20.0 };
        let pairs = [Pair { a: 100.0, b: 120.0 }];
        let shift = Scale::Ratio.difference(pairs[0]);
        assert!((margin.on(Scale::Ratio, &pairs) - shift).abs() < 1e-12);
        assert_eq!(margin.on(Scale::Difference, &pairs), 20.0);
    }

    #[test]
    fn the_larger_margin_counts_and_neither_side_is_the_baseline() {
        let margin = Margin { relative: 0.05, absolute: 20.0 };
        let high = [Pair { a: 1e6, b: 1.3e6 }];
        let turned = [Pair { a: 1.3e6, b: 1e6 }];
        assert_eq!(margin.on(Scale::Ratio, &high), 0.05f64.ln_1p());
        assert_eq!(margin.on(Scale::Ratio, &high), margin.on(Scale::Ratio, &turned));
    }
}
