//! What the kernel saw, on one clock: who was in which state when, and why it left it.
//!
//! [`Events`] collects the recorded batches; [`Machine`] replays them once, in order of time, into a
//! timeline for each thread and each CPU. Nothing here knows messages.

mod calls;
mod events;
mod futex;
mod machine;
mod objects;
mod timeline;

pub(crate) use calls::{Call, CallId};
pub(crate) use events::Events;
pub(crate) use futex::Futexes;
pub(crate) use machine::{HARD_IRQ, Loss, Machine, SOFT_IRQ, STALL};
pub(crate) use objects::Objects;
pub(crate) use timeline::{
    FAULT_BEFORE_SLEEP_NS, SAME_CLOCK_NS, Segment, State, SystemCall, Timeline, ascending, call_at,
};
