//! Raw events by thread, and all of them in order of time.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use foldhash::HashMap;
use taut_recording::{RosBatch, RosEvent};

use crate::clocks::Clocks;

/// Flags of [`RosEvent::CallbackStart`] and [`RosEvent::CallbackEnd`].
pub(super) const INTRA: u64 = 1;
pub(super) const RESUMED: u64 = 2;
pub(super) const SCHEDULED: u64 = 4;
pub(super) const COROUTINE: u64 = 8;
pub(super) const FILTERED: u64 = 16;
pub(super) const SUSPENDED: u64 = 1;
/// Callbacks in callbacks: a trace of noise must not fill the memory.
pub(super) const MOST_NESTED: usize = 64;

/// All events, in their columns.
#[derive(Default)]
pub(super) struct Events {
    threads: Vec<Thread>,
    by_tid: HashMap<(i32, i32), u32>,
}

/// One thread's.
struct Thread {
    pid: i32,
    tid: i32,
    batches: Vec<RosBatch>,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Number of the thread here.
    pub thread: u32,
    pub pid: i32,
    pub event: RosEvent,
    pub handle: u64,
    pub args: [u64; 3],
}

/// The next event of a thread.
#[derive(Clone, Copy, Default)]
struct Cursor {
    batch: usize,
    row: usize,
}

impl Events {
    pub fn take(&mut self, batch: &RosBatch) {
        let (pid, tid) = (batch.pid, batch.tid);
        let thread = *self.by_tid.entry((pid, tid)).or_insert_with(|| {
            self.threads.push(Thread { pid, tid, batches: Vec::new() });
            self.threads.len() as u32 - 1
        });
        self.threads[thread as usize].batches.push(batch.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Host tid of a thread.
    pub fn tid(&self, thread: u32) -> i32 {
        self.threads[thread as usize].tid
    }

    /// Host pid of a thread.
    pub fn pid(&self, thread: u32) -> i32 {
        self.threads[thread as usize].pid
    }

    /// The counters that times are of.
    pub fn counters(&self) -> BTreeSet<u8> {
        self.threads.iter().flat_map(|thread| &thread.batches).map(|batch| batch.counter).collect()
    }

    /// All events of a thread in its order, one thread after the other: the number of the thread, its process, event, handle, arguments.
    pub fn by_thread(&self, visit: &mut dyn FnMut(u32, i32, RosEvent, u64, [u64; 3])) {
        for (number, thread) in (0..).zip(&self.threads) {
            for batch in &thread.batches {
                for row in 0..batch.event.len() {
                    if let Some(event) = RosEvent::from_number(batch.event[row]) {
                        let args = [batch.arg0[row], batch.arg1[row], batch.arg2[row]];
                        visit(number, batch.pid, event, batch.handle[row], args);
                    }
                }
            }
        }
    }

    /// All events in order of time, those of a thread in its own. Returns how many have no time, and were left out.
    pub fn in_order(&self, clocks: &Clocks, visit: &mut dyn FnMut(Row)) -> u64 {
        let mut untimed = 0;
        let mut cursors = vec![Cursor::default(); self.threads.len()];
        let mut next: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        for thread in 0..self.threads.len() as u32 {
            next.extend(
                self.next(thread, &mut cursors, clocks, &mut untimed).map(|time_ns| Reverse((time_ns, thread))),
            );
        }
        while let Some(Reverse((mut time_ns, thread))) = next.pop() {
            // A thread's events come in runs.
            let until = next.peek().map_or((u64::MAX, u32::MAX), |Reverse(until)| *until);
            loop {
                let cursor = &mut cursors[thread as usize];
                let batch = &self.threads[thread as usize].batches[cursor.batch];
                let row = cursor.row;
                cursor.row += 1;
                if let Some(event) = RosEvent::from_number(batch.event[row]) {
                    let args = [batch.arg0[row], batch.arg1[row], batch.arg2[row]];
                    visit(Row { time_ns, thread, pid: batch.pid, event, handle: batch.handle[row], args });
                }
                let Some(after) = self.next(thread, &mut cursors, clocks, &mut untimed) else { break };
                // Batches that overlap do not turn time back.
                time_ns = after.max(time_ns);
                if (time_ns, thread) > until {
                    next.push(Reverse((time_ns, thread)));
                    break;
                }
            }
        }
        untimed
    }

    /// Time of a thread's next event; goes over batches that have none.
    fn next(&self, thread: u32, cursors: &mut [Cursor], clocks: &Clocks, untimed: &mut u64) -> Option<u64> {
        let batches = &self.threads[thread as usize].batches;
        let cursor = &mut cursors[thread as usize];
        loop {
            let batch = batches.get(cursor.batch)?;
            match batch.ticks.get(cursor.row).map(|ticks| clocks.time_ns(batch.counter, *ticks)) {
                Some(Some(time_ns)) => return Some(time_ns),
                Some(None) => *untimed += (batch.ticks.len() - cursor.row) as u64,
                None => {}
            }
            *cursor = Cursor { batch: cursor.batch + 1, row: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(tid: i32, ticks: &[u64]) -> RosBatch {
        let zeros = vec![0; ticks.len()];
        RosBatch {
            pid: 1,
            tid,
            counter: taut_clock::Counter::Monotonic as u8,
            ticks: ticks.to_vec(),
            event: vec![RosEvent::CallbackStart as u8; ticks.len()],
            handle: ticks.to_vec(),
            arg0: zeros.clone(),
            arg1: zeros.clone(),
            arg2: zeros,
        }
    }

    fn order(batches: &[RosBatch]) -> Vec<(u64, u32)> {
        let mut events = Events::default();
        batches.iter().for_each(|batch| events.take(batch));
        let mut order = Vec::new();
        assert_eq!(events.in_order(&Clocks::default(), &mut |row| order.push((row.time_ns, row.thread))), 0);
        order
    }

    #[test]
    fn threads_come_in_one_order_of_time() {
        let found =
            order(&[batch(1, &[10, 20, 50]), batch(2, &[5, 20, 21]), batch(3, &[]), batch(1, &[60]), batch(2, &[55])]);
        let times: Vec<u64> = found.iter().map(|(time_ns, _)| *time_ns).collect();
        assert_eq!(times, [5, 10, 20, 20, 21, 50, 55, 60]);
        assert_eq!(found[2..4], [(20, 0), (20, 1)], "at one moment in the order of the threads");
    }

    #[test]
    fn a_batch_that_steps_back_does_not_turn_time_back() {
        let found = order(&[batch(1, &[10, 40]), batch(2, &[15]), batch(1, &[20])]);
        assert_eq!(found, [(10, 0), (15, 1), (40, 0), (40, 0)]);
    }
}
