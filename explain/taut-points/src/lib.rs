//! Raw events → points that messages pass. One module a source; the stages behind know none of them.
//!
//! [`Intake`] takes the records of a recording, on one clock and with the states of threads and CPUs, to every [`Source`];
//! each appends what it knows to one [`Linked`]: passes of messages, what threads were busy with, values. A new source is
//! a module with that trait and a line in [`all`].

mod clocks;
mod flows;
mod hold;
pub mod hosts;
mod intake;
mod linked;
mod point;
mod ros;
mod ros_figures;
mod route;
mod scene;
mod source;
mod source_kind;
mod sources;
mod span;
mod stamps;
mod wakes;

pub use clocks::Clocks;
pub use hold::{HeldBy, Hold, Holds};
pub use intake::{Counts, Found, Intake, LossCount, architectures};
pub use linked::{Linked, Value};
pub use point::{NO_THREAD, Pass, PointId, Points};
pub use ros_figures::{CallbackFigures, Durations, ExecutorFigures, RosFigures, SubscriptionFigures, TopicFigures};
pub use route::{Activation, Loop, LoopEvidence, Route, RouteKind, WakingThread};
pub use scene::Scene;
pub use source::Source;
pub use source_kind::SourceKind;
pub use sources::all;
pub use span::{BusyWith, Hole, Mark, Spans};
