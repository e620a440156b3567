//! The recorded kernel events, compact: ten million of them must fit.

use taut_recording::KernelBatch;

/// All kernel events of a recording, in the order of the file until sorted.
#[derive(Default)]
pub(crate) struct Events {
    events: Vec<Event>,
}

/// One event, as [`KernelBatch`] has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub time_ns: u64,
    pub arg0: i64,
    pub arg1: i64,
    pub tid: i32,
    /// The low 32 bits: priorities, modes, error codes and operations fit.
    pub arg2: i32,
    /// The high ones: a futex's expected value.
    pub arg2_high: u32,
    pub cpu: u16,
    pub event: u8,
    pub flags: u8,
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn add(&mut self, batch: &KernelBatch) {
        self.events.extend((0..batch.time_ns.len()).map(|at| Event {
            time_ns: batch.time_ns[at],
            arg0: batch.arg0[at],
            arg1: batch.arg1[at],
            tid: batch.tid[at],
            arg2: batch.arg2[at] as i32,
            arg2_high: (batch.arg2[at] >> 32) as u32,
            cpu: batch.cpu,
            event: batch.event[at],
            flags: batch.flags[at],
        }));
    }

    /// In order of time. The file holds long runs in order (a CPU's batches), which this sort makes use of.
    pub fn sorted(mut self) -> Vec<Event> {
        self.events.sort_by_key(|event| event.time_ns);
        self.events
    }
}
