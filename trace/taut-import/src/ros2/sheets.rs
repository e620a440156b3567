//! Stamps by thread, in order of time, until they go into the recording.
//!
//! A callback's message may be stamped late: that a kept datum was used is known when something is published, and it was
//! used when the callback began. Therefore a thread's stamps wait until its callback is over.

use taut_recording::{Kind, Record, StampBatch};

use super::threads::Threads;
use crate::{Error, writing::Import};

/// Ticks are the trace's clock, in nanoseconds.
const COUNTER: u8 = taut_clock::Counter::Monotonic as u8;
/// Stamps that are written at once …
const ROWS: usize = 1024;
/// … and those that are written even within a callback.
const MOST_ROWS: usize = 8192;
/// Stamps of all threads that wait: then all are written.
const MOST_WAITING: usize = 1 << 20;

/// One stamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub time_ns: u64,
    pub id: u64,
    pub point: u32,
    pub kind: Kind,
    pub value: u64,
}

/// Those of all threads.
#[derive(Default)]
pub(super) struct Sheets {
    by_thread: Vec<Vec<Stamp>>,
    waiting: usize,
    /// Threads that were written.
    is_known: Vec<bool>,
}

impl Sheets {
    #[inline]
    pub fn add(&mut self, thread: u32, stamp: Stamp) {
        let thread = thread as usize;
        if self.by_thread.len() <= thread {
            self.by_thread.resize_with(thread + 1, Vec::new);
        }
        let stamps = &mut self.by_thread[thread];
        let mut at = stamps.len();
        while at > 0 && stamps[at - 1].time_ns > stamp.time_ns {
            at -= 1;
        }
        stamps.insert(at, stamp);
        self.waiting += 1;
    }

    /// Writes a thread's stamps when they are many; `is_idle` says that none can come before them any more.
    pub fn write_due(&mut self, thread: u32, is_idle: bool, threads: &Threads, to: &mut Import) -> Result<(), Error> {
        if self.waiting >= MOST_WAITING {
            return self.write_all(threads, to);
        }
        let count = self.by_thread.get(thread as usize).map_or(0, Vec::len);
        if count >= MOST_ROWS || (is_idle && count >= ROWS) { self.write(thread, threads, to) } else { Ok(()) }
    }

    /// Writes all that is left.
    pub fn write_all(&mut self, threads: &Threads, to: &mut Import) -> Result<(), Error> {
        (0..self.by_thread.len() as u32).try_for_each(|thread| self.write(thread, threads, to))
    }

    fn write(&mut self, thread: u32, threads: &Threads, to: &mut Import) -> Result<(), Error> {
        let stamps = std::mem::take(&mut self.by_thread[thread as usize]);
        self.waiting -= stamps.len();
        let of = threads.get(thread);
        if stamps.is_empty() {
            return Ok(());
        }
        if self.is_known.len() <= thread as usize {
            self.is_known.resize(thread as usize + 1, false);
        }
        if !std::mem::replace(&mut self.is_known[thread as usize], true) {
            to.record(&Record::Thread(taut_recording::Thread {
                time_ns: stamps[0].time_ns,
                pid: of.pid,
                tid: of.tid,
                comm: of.name.clone(),
                recorded: true,
                ..taut_recording::Thread::default()
            }))?;
        }
        to.record(&Record::Stamps(StampBatch {
            pid: of.pid,
            tid: of.tid,
            counter: COUNTER,
            ticks: stamps.iter().map(|stamp| stamp.time_ns).collect(),
            message_id: stamps.iter().map(|stamp| stamp.id).collect(),
            point: stamps.iter().map(|stamp| stamp.point).collect(),
            kind: stamps.iter().map(|stamp| stamp.kind as u8).collect(),
            value: stamps.iter().map(|stamp| stamp.value).collect(),
        }))
    }
}
