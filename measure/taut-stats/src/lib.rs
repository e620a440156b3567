//! Distributions and their tails: pure mathematics on slices. Knows nothing of recordings.

mod curves;
mod distribution;

pub use curves::{histogram, percentile_curve};
pub use distribution::{Distribution, rank};
