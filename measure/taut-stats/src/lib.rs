//! Distributions and their tails: pure functions on slices, without recordings.

mod bursts;
pub mod compare;
mod curves;
mod distribution;
mod exponential;
mod modes;
mod sketch;

pub use bursts::Bursts;
pub use curves::{histogram, percentile_curve};
pub use distribution::{Distribution, Estimate, Estimates, QUANTILES, rank};
pub use exponential::Exponential;
pub use hdrhistogram::Histogram;
pub use modes::modes;
pub use sketch::Sketch;
