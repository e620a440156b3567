//! Counters, and the mapping between them. It uses no other crate of taut.

mod counter;
mod mapping;

pub use counter::{Counter, monotonic_ns, realtime_ns};
pub use mapping::{ClockPair, Mapping, nearest};

/// A moment on CLOCK_MONOTONIC of the recorded host, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicNs(pub u64);

/// A reading of the counter a process stamps with: TSC or CNTVCT ticks, or
/// nanoseconds where the counter is CLOCK_MONOTONIC itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);
