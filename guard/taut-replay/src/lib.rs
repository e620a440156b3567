//! Replays a recorded state stream through the speed guard and through the estimators that people use in its place:
//! what would have tripped, when and why; and, where the true speed is known, which trips were false, which overspeeds
//! were missed, and how late the others were found. And the parameters that the stream itself asks for (`tune`).
//!
//! On the way of the data: records of a recording (or the numbers of a channel) → [`Stream`] → [`replay`] → [`Replay`].
//! Opens no file and reads no clock.

mod against;
mod config;
mod error;
pub mod estimators;
mod judgement;
mod replay;
mod replay_run;
mod serialized;
mod stream;
mod truth;
mod tune;

pub use against::{Against, Source};
pub use config::{Config, Mapping, StreamConfig, usual};
pub use error::Error;
pub use judgement::Judgement;
pub use replay::{Replay, replay};
pub use replay_run::{Entry, Found, Point, Proof, Run};
pub use stream::{Recorded, Stream, StreamBuilder, choose};
pub use truth::{Overspeed, Truth};
pub use tune::{Evidence, Tuned, tune};
