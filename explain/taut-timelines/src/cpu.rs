//! One CPU: which thread ran on it when, its interrupts, and where events of it are missing.

use crate::sequence::Sequence;

/// One CPU: the threads that ran on it, and its interrupts.
#[derive(Default)]
pub struct Cpu {
    /// (since, tid) in order of time; tid 0 idles.
    pub occupants: Sequence<(u64, i32)>,
    /// The outermost ones, not overlapping.
    pub interrupts: Sequence<Interrupt>,
    /// Idle states that it was in, where they are recorded.
    pub idle: Sequence<Idle>,
    /// Stretches in which events were lost.
    pub holes: Vec<(u64, u64)>,
    /// Stretches in which an interrupt began or ended without being recorded.
    pub(crate) doubts: Vec<(u64, u64)>,
}

/// A CPU's stay in an idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// When it enters it.
    pub start_ns: u64,
    /// When it has left it.
    pub end_ns: u64,
    /// Its number: 0 is the lightest.
    pub state: u32,
}

/// An interrupt or softirq that ran on a CPU; or a stretch in which nothing ran on it.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt {
    /// When it begins.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// Of the interrupt, vector or softirq.
    pub number: i32,
    /// 0 device, 1 softirq, 2 vector, [`STALL`].
    pub kind: u8,
}

impl Interrupt {
    /// Whether it is neither a softirq nor a stall.
    pub fn is_hard(&self) -> bool {
        !matches!(self.kind, SOFTIRQ | STALL)
    }
}

/// Kind of a stretch from the moment that a running CPU's tick was due until it came.
pub const STALL: u8 = 3;
/// Kind of a softirq.
pub(crate) const SOFTIRQ: u8 = 1;

/// `common_flags`: the event came from a hard interrupt.
pub const HARD_IRQ: u8 = 0x08;
/// The event came from a softirq, or with softirqs off.
pub const SOFT_IRQ: u8 = 0x10;
