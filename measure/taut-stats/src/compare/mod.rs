//! Has a change made it worse? From trials of two programs, run back to back in pairs, to a verdict. The methods and
//! where they come from are in `docs/explanation/statistics.md`, their measured properties in `docs/proof/statistics.md`.
//!
//! The order of use: [`pair_order`] says how to run the pairs; each trial becomes one number ([`Quantile`]); the pairs
//! of every metric go to [`judge`] at each look of a [`Plan`], until it says stop or asks for fresh pairs to
//! [`confirm`] an accusation with. [`noise_floor`] judges the program against itself first.

mod changes;
mod complete;
mod confirm;
mod detect;
mod flips;
mod holm;
mod interval;
mod judge;
mod looks;
mod margin;
mod metric;
mod order;
mod pair;
mod shift;
mod signed_rank;
mod typical;
mod verdict;

pub use changes::{ChangePoint, FEWEST as FEWEST_BETWEEN_CHANGES, change_points};
pub use confirm::confirm;
pub use detect::{NoiseFloor, noise_floor, smallest_detectable};
pub use holm::holm;
pub use interval::Interval;
pub use judge::judge;
pub use looks::{LookAlpha, Plan, Spending};
pub use margin::{Margin, Rule, Scale};
pub use metric::Metric;
pub use order::{BLOCK, Order, pair_order};
pub use pair::{Pair, Quantile};
pub use shift::Shift;
pub use signed_rank::{SignedRank, fewest_pairs};
pub use typical::{Typical, fewest_trials, serial_p, typical};
pub use verdict::{ChangeFigures, Finding, InvalidReason, Judgement, Next, Verdict};
