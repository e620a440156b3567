//! Signals over time, and how closely an actual one follows its commanded one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The end of the name of a signal that was asked for; the same name ending in [`ACTUAL`] is what came of it.
const COMMANDED: &str = ".commanded";
const ACTUAL: &str = ".actual";

/// A named value over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signal {
    /// As stamped.
    pub name: String,
    /// Nanoseconds since the recording's start, and the value; in the order of time.
    pub points: Vec<(u64, f64)>,
}

/// How far `NAME.actual` was from `NAME.commanded`, at each actual value against the last command before it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tracking {
    /// What both names begin with.
    pub name: String,
    /// Values compared.
    pub n: u64,
    /// Of the distances without sign, in the signal's unit.
    pub p50: f64,
    /// The same.
    pub p99: f64,
    /// The same.
    pub max: f64,
}

/// Signals by name; values that are not finite are left out.
pub(crate) fn signals(values: impl Iterator<Item = (String, u64, f64)>) -> Vec<Signal> {
    let mut all: BTreeMap<String, Vec<(u64, f64)>> = BTreeMap::new();
    for (name, ns, value) in values.filter(|(.., value)| value.is_finite()) {
        all.entry(name).or_default().push((ns, value));
    }
    all.into_iter()
        .map(|(name, mut points)| {
            points.sort_by_key(|(ns, _)| *ns);
            Signal { name, points }
        })
        .collect()
}

/// Every pair of commanded and actual.
pub(crate) fn tracking(signals: &[Signal]) -> Vec<Tracking> {
    let find = |name: &str| signals.iter().find(|signal| signal.name == name);
    signals
        .iter()
        .filter_map(|actual| {
            let name = actual.name.strip_suffix(ACTUAL)?;
            let commanded = &find(&format!("{name}{COMMANDED}"))?.points;
            let mut off: Vec<f64> = actual
                .points
                .iter()
                .filter_map(|(ns, value)| {
                    let before = commanded.partition_point(|(at, _)| at <= ns).checked_sub(1)?;
                    Some((value - commanded[before].1).abs())
                })
                .collect();
            off.sort_by(f64::total_cmp);
            let rank = |q: f64| off.get(((off.len() as f64 * q).ceil() as usize).saturating_sub(1)).copied();
            Some(Tracking {
                name: name.into(),
                n: off.len() as u64,
                p50: rank(0.5)?,
                p99: rank(0.99)?,
                max: rank(1.0)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, points: &[(u64, f64)]) -> Vec<(String, u64, f64)> {
        points.iter().map(|(ns, value)| (name.to_owned(), *ns, *value)).collect()
    }

    #[test]
    fn values_are_put_in_order_and_what_is_no_number_is_left_out() {
        let found = signals(of("a", &[(2, 1.0), (1, f64::NAN), (1, 0.5)]).into_iter());
        assert_eq!(found, [Signal { name: "a".into(), points: vec![(1, 0.5), (2, 1.0)] }]);
    }

    #[test]
    fn the_actual_is_compared_with_the_command_in_force() {
        let commanded = of("knee.commanded", &[(10, 1.0), (20, 2.0), (30, 5.0)]);
        // Before the first command there is nothing to follow.
        let actual = of("knee.actual", &[(5, 9.0), (12, 1.25), (20, 1.5), (29, 2.0)]);
        let found = tracking(&signals(commanded.into_iter().chain(actual)));
        assert_eq!(found, [Tracking { name: "knee".into(), n: 3, p50: 0.25, p99: 0.5, max: 0.5 }]);
    }

    #[test]
    fn without_a_command_there_is_nothing_to_follow() {
        assert_eq!(tracking(&signals(of("knee.actual", &[(1, 1.0)]).into_iter())), []);
    }
}
