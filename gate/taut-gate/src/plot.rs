//! A distribution small enough to store with every trial, on edges that all trials share, so that they add up.

use serde::{Deserialize, Serialize};

/// Bins for each doubling: an edge is 4.4 % above the one before.
const PER_DOUBLING: f64 = 16.0;

/// Counts of messages on logarithmic bins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plot(Vec<(u16, u64)>);

impl Plot {
    /// Of these times.
    pub fn of(times_ns: &[u64]) -> Plot {
        let mut bins: Vec<u16> = times_ns.iter().map(|ns| bin(*ns)).collect();
        bins.sort_unstable();
        Plot(bins.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect())
    }

    /// The sum of several.
    pub fn sum<'a>(plots: impl Iterator<Item = &'a Plot>) -> Plot {
        let mut sum = std::collections::BTreeMap::new();
        for (bin, count) in plots.flat_map(|plot| &plot.0) {
            *sum.entry(*bin).or_default() += count;
        }
        Plot(sum.into_iter().collect())
    }

    /// (lower edge, upper edge, count) in ns, ascending; bins without messages are left out.
    pub fn bins(&self) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
        self.0.iter().map(|(bin, count)| (edge(*bin), edge(bin + 1), *count))
    }

    /// Messages.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

fn bin(ns: u64) -> u16 {
    ((ns.max(1) as f64).log2() * PER_DOUBLING) as u16
}

fn edge(bin: u16) -> f64 {
    (f64::from(bin) / PER_DOUBLING).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_bin_and_sums_lose_none() {
        let times = [0, 1, 2, 999, 1000, 1_000_000, 999_999_999];
        let plot = Plot::of(&times);
        for ns in &times[1..] {
            let own = plot.bins().find(|(from, to, _)| (*from..*to).contains(&(*ns as f64 + 1e-9)));
            assert!(own.is_some(), "{ns}");
        }
        assert_eq!(Plot::sum([&plot, &plot].into_iter()).count(), 14);
    }
}
