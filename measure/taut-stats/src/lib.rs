//! Distributions and their tails: pure mathematics on slices. Knows nothing of recordings.

mod distribution;

pub use distribution::Distribution;
