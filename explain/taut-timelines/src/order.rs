//! The recorded kernel events of all CPUs in one order, compact: ten million of them must fit.

use taut_recording::{KernelBatch, KernelEvent};

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
        for at_once in self.events.chunk_by_mut(|event, next| event.time_ns == next.time_ns) {
            if at_once.iter().any(|event| event.cpu != at_once[0].cpu) {
                merge(at_once);
            }
        }
        self.events
    }
}

/// Puts events of several CPUs at one moment in order: each CPU's stay in theirs, and a switch comes when nothing else is left,
/// so that no wake comes after the switch that it leads to. Who is woken before it is switched out is known to the replay.
fn merge(at_once: &mut [Event]) {
    let mut left = at_once.to_vec();
    let is_switch = |event: &Event| event.event == KernelEvent::SchedSwitch as u8;
    for place in at_once {
        let is_next = |at: &usize| left[..*at].iter().all(|before| before.cpu != left[*at].cpu);
        let mut next = (0..left.len()).filter(is_next);
        let first = next.clone().next().unwrap_or(0);
        *place = left.remove(next.find(|at| !is_switch(&left[*at])).unwrap_or(first));
    }
}
