//! How late this machine wakes a thread: probes with a schedule of their own, in variants that take turns; stalls of all
//! CPUs at once; whether real-time threads are throttled. Prints nothing.

mod collector;
mod compared;
mod error;
mod facts;
mod findings;
mod governor;
mod load;
mod run;
mod settings;
pub mod slack;
mod stalls;
mod throttle;
mod tracers;
mod waker;
mod watcher;

pub use collector::Collector;
pub use compared::{Compared, compared};
pub use error::Error;
pub use facts::facts;
pub use findings::{
    CpuSeries, ExplainedWakeups, Findings, IdleState, LatePiece, LateWake, Part, ResponsibleParty, Series, SlackFit,
    Stalls, Throttling, Turn, Variant,
};
pub use governor::governors;
pub use load::{Load, Work, end_with};
pub use run::{Event, Live, Plan, run};
pub use settings::{KEYS, Policy, Settings, Wake, duration, length};
pub use stalls::{StallWatch, THRESHOLD_NS as STALL_NS};
pub use throttle::throttling;
pub use tracers::{Osnoise, TRACEFS, Timerlat, Tracers, tracers};
pub use watcher::{CPU_SHIFT, POINTS, Woken, allowed_cpus, prefault_stack, set_policy};
