//! The order of the two trials of each pair, drawn by a seed.

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use serde::Serialize;

/// Which program's trial of a pair runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Order {
    /// The baseline's, then the candidate's.
    AB,
    /// The candidate's, then the baseline's.
    BA,
}

/// One fair coin a pair; more pairs from the same seed continue the same row.
///
/// The coins are independent and not balanced, because that makes the signed-rank test exact without any assumption
/// on the machine's noise: where A and B are the same, the coin alone decides the sign of each difference (Fisher's
/// randomisation argument).
pub fn pair_order(seed: u64, pairs: usize) -> Vec<Order> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..pairs).map(|_| if random.random::<bool>() { Order::AB } else { Order::BA }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_row_that_only_grows() {
        assert_eq!(pair_order(7, 40)[..12], pair_order(7, 12));
        assert_ne!(pair_order(7, 40), pair_order(8, 40));
        use Order::{AB, BA};
        assert_eq!(pair_order(1, 8), [AB, AB, BA, AB, BA, AB, AB, AB], "recorded seeds keep their meaning");
    }

    #[test]
    fn both_orders_come_and_neither_follows_from_the_last() {
        let row = pair_order(1, 10_000);
        let first = row.iter().filter(|o| **o == Order::AB).count();
        let repeats = row.windows(2).filter(|two| two[0] == two[1]).count();
        assert!((4800..5200).contains(&first) && (4800..5200).contains(&repeats), "{first} {repeats}");
    }
}
