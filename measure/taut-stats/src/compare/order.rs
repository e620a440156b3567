//! The order of the two trials of each pair, drawn by a seed in balanced blocks.

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use serde::Serialize;

/// Which program's trial of a pair runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Order {
    /// The baseline's, then the candidate's.
    AB,
    /// The candidate's, then the baseline's.
    BA,
}

/// Pairs of a block; gates look after whole blocks.
pub const BLOCK: usize = 4;

/// Balanced blocks in random order: of each four pairs two run A first. More pairs from the same seed continue the same row.
///
/// Where the second trial of a pair is slower or faster than the first as such (caches, clocks that ramp up), a row of independent coins
/// leaves that in the difference whenever the coins are not even; a balanced block takes it out of the estimate (Fisher 1935, restricted
/// randomisation). The signed-rank test then asks that differences scatter symmetrically, which those of two trials of one program do.
pub fn pair_order(seed: u64, pairs: usize) -> Vec<Order> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut row = Vec::new();
    while row.len() < pairs {
        let mut block = [Order::AB, Order::AB, Order::BA, Order::BA];
        block.shuffle(&mut random);
        row.extend(block);
    }
    row.truncate(pairs);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Shift;

    #[test]
    fn a_seed_is_a_row_that_only_grows() {
        assert_eq!(pair_order(7, 40)[..13], pair_order(7, 13));
        assert_ne!(pair_order(7, 40), pair_order(8, 40));
    }

    #[test]
    fn whole_blocks_are_balanced_for_every_seed_and_all_orders_come() {
        let mut blocks = std::collections::HashSet::new();
        for seed in 0..200 {
            let row = pair_order(seed, 40);
            for block in row.chunks(BLOCK) {
                assert_eq!(block.iter().filter(|order| **order == Order::AB).count(), BLOCK / 2, "seed {seed}");
                blocks.insert(block.iter().map(|order| *order == Order::AB).collect::<Vec<_>>());
            }
        }
        assert_eq!(blocks.len(), 6);
    }

    /// The second trial of each pair is a tenth slower: nothing of it is left in the change of B.
    #[test]
    fn what_the_second_trial_of_a_pair_suffers_cancels() {
        for seed in 0..100 {
            let sign = |order: &Order| if *order == Order::AB { 1.0 } else { -1.0 };
            let differences: Vec<f64> = pair_order(seed, 8).iter().map(|order| 0.1 * sign(order)).collect();
            assert!(Shift::of(&differences).unwrap().estimate().abs() < 1e-12, "seed {seed}");
        }
    }
}
