//! A recorded state stream once more, through the speed guard and through the estimators that people use in its place:
//! what would have tripped, when and why; and, where the true speed is known, which trips were false, which overspeeds
//! were missed, and how late the others were found. And the parameters that the stream itself asks for (`tune`).
//!
//! On the way of the data: records of a recording (or the numbers of a channel) → [`Stream`] → [`replay`] → [`Replay`].
//! Opens no file and reads no clock.

mod config;
mod error;
pub mod estimators;
mod replay;
mod stream;
mod truth;
mod tune;

pub use config::{Against, Config, Mapping, Source, StreamConfig, usual};
pub use error::Error;
pub use replay::{Found, Point, Proof, Replay, Run, replay};
pub use stream::{Recorded, Stream, StreamBuilder, choose};
pub use truth::{Detected, Judgement, Overspeed, Truth};
pub use tune::{Evidence, Tuned, tune};
