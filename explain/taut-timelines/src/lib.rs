//! What threads and CPUs did, on one clock: which thread was in which state when, and why it left it.
//!
//! [`Builder`] collects the recorded batches of kernel events and replays them once, in order of time, into the
//! [`Timelines`]: one for each thread and each CPU. [`Futexes`] and [`Objects`] say what waits and numbers mean. Nothing here
//! knows messages, or opens a file.

mod builder;
mod calls;
mod cpu;
mod futexes;
mod objects;
mod order;
mod sequence;
mod timeline;
mod timelines;

pub use builder::{Builder, Loss};
pub use calls::{Call, CallId, CallNumbers, Transfer};
pub use cpu::{Cpu, HARD_IRQ, Idle, Interrupt, SOFT_IRQ, STALL};
pub use futexes::{Futexes, GilWait};
pub use objects::{NO_THREAD, Objects};
pub use sequence::{Sequence, partition_from};
pub use timeline::{
    Expiry, FAULT_BEFORE_SLEEP_NS, SAME_CLOCK_NS, Segment, SystemCall, ThreadState, Timeline, Timer, Work, ascending,
    call_at,
};
pub use timelines::Timelines;
