//! What to do with a setpoint instead of dropping it: clamp, scale, slow, interpolate or retarget it, keep only the latest,
//! and retry a bounded time. Every policy reports the ledger's reason.

mod approach;
mod decimate;
mod keep_alive;
mod limiter;
mod mailbox;
mod playout;
#[cfg(feature = "ruckig")]
mod retarget;
mod retry;

pub use approach::Approach;
pub use decimate::Decimate;
pub use keep_alive::KeepAlive;
pub use limiter::{Limiter, Limits, Policy, Shaped};
pub use mailbox::{Mailbox, Put, Receiver, Sender};
pub use playout::{Playout, Sampled, Source};
#[cfg(feature = "ruckig")]
pub use retarget::{JerkLimits, Retarget, Retargeted};
pub use retry::Retry;
