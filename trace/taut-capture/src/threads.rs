//! Names of the recorded tree's threads and of those that took their CPU.

use std::collections::HashMap;

use taut_recording::{KernelBatch, KernelEvent, ProfileBatch, Thread};

use crate::{give_way::pause_if_due, proc};

/// Newcomers looked up in one round; at the start a whole machine is new.
const LOOKUPS_MAX: usize = 64;
/// So many may be known before those that are gone are looked for; later twice as many as were left.
const KNOWN_FIRST: usize = 8192;

/// Threads as they were last reported, and those whose name is still to be read.
#[derive(Default)]
pub struct Threads {
    known: HashMap<i32, Known>,
    /// Whether it belongs to the recorded tree, by tid.
    newcomers: HashMap<i32, bool>,
    /// Those that ended before they could be asked, by the names in their last events.
    ended: Vec<Thread>,
    recorded: usize,
    /// How many may be known before those that are gone are looked for.
    most_known: usize,
}

#[derive(Clone, PartialEq, Eq)]
struct Known {
    start_time: u64,
    comm: String,
    recorded: bool,
}

impl Threads {
    /// Threads of the recorded tree seen so far.
    pub fn recorded(&self) -> usize {
        self.recorded
    }

    /// Notes whom kernel events name, so that they are asked for their name before they are gone.
    pub fn notice(&mut self, batch: &KernelBatch) {
        const SWITCH: u8 = KernelEvent::SchedSwitch as u8;
        const FORK: u8 = KernelEvent::SchedFork as u8;
        const EXEC: u8 = KernelEvent::SchedExec as u8;
        const EXIT: u8 = KernelEvent::SchedExit as u8;
        for (at, event) in batch.event.iter().enumerate() {
            let (Some(tid), Some(other)) = (batch.tid.get(at).copied(), batch.arg0.get(at)) else { return };
            let other = *other as i32;
            match *event {
                SWITCH if other != 0 && !self.known.contains_key(&other) => {
                    self.newcomers.entry(other).or_insert(false);
                }
                FORK => {
                    // The number may have been another thread's before.
                    self.known.remove(&other);
                    self.newcomers.insert(other, self.is_recorded(tid));
                }
                EXEC => {
                    // Another program may have the same name: two scripts of one interpreter.
                    if let Some(known) = self.known.get_mut(&tid) {
                        known.comm.clear();
                    }
                    self.newcomers.insert(tid, self.is_recorded(tid));
                }
                EXIT if !self.known.contains_key(&tid) => {
                    let recorded = self.newcomers.remove(&tid).unwrap_or(false);
                    let (Some(comm), Some(time_ns)) = (name_in_exit(batch, at), batch.time_ns.get(at)) else {
                        continue;
                    };
                    // A build beside the robot ends hundreds of them a second.
                    if !recorded && self.ended.len() >= LOOKUPS_MAX {
                        continue;
                    }
                    self.recorded += usize::from(recorded);
                    // Nothing says whose process it was of.
                    self.ended.push(Thread { time_ns: *time_ns, pid: tid, tid, comm, recorded, ..Thread::default() });
                }
                _ => {}
            }
        }
    }

    /// Notes whose stacks were sampled: a thread, and its process, which has the name of its first thread.
    pub fn notice_sampled(&mut self, batch: &ProfileBatch, recorded: bool) {
        for tid in batch.tid.iter().chain(&batch.pid) {
            if !self.known.contains_key(tid) {
                self.newcomers.entry(*tid).or_insert(recorded);
            }
        }
    }

    /// Asks newcomers for their names; the entries that are new, and those of newcomers that have ended.
    pub fn look_up(&mut self, now_ns: u64) -> Vec<Thread> {
        let some: Vec<(i32, bool)> = self.newcomers.iter().map(|(tid, is)| (*tid, *is)).take(LOOKUPS_MAX).collect();
        let mut told = std::mem::take(&mut self.ended);
        for (tid, recorded) in some {
            pause_if_due();
            self.newcomers.remove(&tid);
            // One that could not be asked for the moment is a newcomer again with its next event.
            let found = proc::thread_group(tid).and_then(|pid| proc::thread(pid, tid, recorded, now_ns));
            told.extend(found.ok().and_then(|thread| self.remember(thread)));
        }
        told
    }

    /// The threads of a recorded process that are new or were renamed.
    pub fn scan(&mut self, pid: i32, now_ns: u64) -> Vec<Thread> {
        let threads = proc::tids(pid).into_iter().filter_map(|tid| {
            pause_if_due();
            proc::thread(pid, tid, true, now_ns).ok()
        });
        threads.filter_map(|thread| self.remember(thread)).collect()
    }

    /// Forgets those that are gone, now and then: a program that starts a hundred processes a second must not fill our memory.
    pub fn forget_gone(&mut self) {
        if self.known.len() < self.most_known.max(KNOWN_FIRST) {
            return;
        }
        // A thread's number leads somewhere too, though /proc does not list it.
        self.known.retain(|tid, _| proc::exists(format!("/proc/{tid}")));
        self.most_known = 2 * self.known.len();
    }

    fn is_recorded(&self, tid: i32) -> bool {
        let known = self.known.get(&tid).map(|known| known.recorded);
        known.or(self.newcomers.get(&tid).copied()).unwrap_or(false)
    }

    /// Gives the thread back if it says something new.
    fn remember(&mut self, mut thread: Thread) -> Option<Thread> {
        let before = self.known.get(&thread.tid).filter(|known| known.start_time == thread.start_time);
        let was_recorded = before.is_some_and(|known| known.recorded);
        thread.recorded |= was_recorded;
        let now = Known { start_time: thread.start_time, comm: thread.comm.clone(), recorded: thread.recorded };
        if before == Some(&now) {
            return None;
        }
        self.recorded += usize::from(thread.recorded && !was_recorded);
        self.known.insert(thread.tid, now);
        if thread.pid == thread.tid {
            thread.cmdline = proc::cmdline(thread.pid);
        }
        Some(thread)
    }
}

/// The name that an exit has in its arguments.
fn name_in_exit(batch: &KernelBatch, at: usize) -> Option<String> {
    let bytes = [batch.arg0.get(at)?.to_le_bytes(), batch.arg1.get(at)?.to_le_bytes()].concat();
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(rows: &[(KernelEvent, i32, i32)]) -> KernelBatch {
        KernelBatch {
            event: rows.iter().map(|row| row.0 as u8).collect(),
            tid: rows.iter().map(|row| row.1).collect(),
            arg0: rows.iter().map(|row| i64::from(row.2)).collect(),
            ..KernelBatch::default()
        }
    }

    fn thread(tid: i32, start_time: u64, comm: &str, recorded: bool) -> Thread {
        Thread { tid, start_time, comm: comm.into(), recorded, ..Thread::default() }
    }

    #[test]
    fn a_child_of_a_recorded_thread_is_recorded() {
        let mut threads = Threads::default();
        threads.remember(thread(10, 1, "robot", true));
        threads.notice(&events(&[
            (KernelEvent::SchedFork, 10, 11),
            (KernelEvent::SchedFork, 11, 12),
            (KernelEvent::SchedFork, 20, 21),
            (KernelEvent::SchedSwitch, 10, 22),
            (KernelEvent::SchedSwitch, 22, 0),
        ]));
        let mut newcomers: Vec<_> = threads.newcomers.into_iter().collect();
        newcomers.sort_unstable();
        assert_eq!(newcomers, [(11, true), (12, true), (21, false), (22, false)]);
    }

    #[test]
    fn a_thread_is_told_again_when_it_is_another_or_has_another_name() {
        let mut threads = Threads::default();
        let told = |threads: &mut Threads, thread| threads.remember(thread).is_some();
        assert!(told(&mut threads, thread(10, 1, "sh", true)));
        assert!(!told(&mut threads, thread(10, 1, "sh", true)));
        assert!(!told(&mut threads, thread(10, 1, "sh", false)), "once recorded it stays so");
        assert!(told(&mut threads, thread(10, 1, "robot", true)));
        assert!(told(&mut threads, thread(10, 2, "robot", true)));
        threads.notice(&events(&[(KernelEvent::SchedExec, 10, 0)]));
        assert!(told(&mut threads, thread(10, 2, "robot", true)), "its command line has changed");
        assert!(!told(&mut threads, thread(10, 2, "robot", true)));
        assert_eq!(threads.recorded(), 2);
    }

    #[test]
    fn who_was_sampled_is_asked_for_its_name_unless_it_is_known() {
        let mut threads = Threads::default();
        threads.remember(thread(10, 1, "robot", true));
        let batch = ProfileBatch { pid: vec![10, 20], tid: vec![11, 20], ..ProfileBatch::default() };
        threads.notice_sampled(&batch, true);
        let mut newcomers: Vec<_> = threads.newcomers.into_iter().collect();
        newcomers.sort_unstable();
        assert_eq!(newcomers, [(11, true), (20, true)]);
    }

    #[test]
    fn of_many_that_were_known_only_the_living_stay() {
        let mut threads = Threads::default();
        let us = std::process::id() as i32;
        threads.remember(thread(us, 1, "test", true));
        // No process has such a number.
        (0..KNOWN_FIRST as i32 - 2).for_each(|n| drop(threads.remember(thread(i32::MAX - n, 1, "gone", true))));
        threads.forget_gone();
        assert_eq!(threads.known.len(), KNOWN_FIRST - 1, "few enough to be kept");
        threads.remember(thread(7 << 24, 1, "gone", true));
        threads.forget_gone();
        assert_eq!(threads.known.keys().collect::<Vec<_>>(), [&us]);
    }

    #[test]
    fn one_that_ended_before_it_was_asked_has_the_name_of_its_exit() {
        let mut threads = Threads::default();
        threads.remember(thread(10, 1, "robot", true));
        let name = |text: &[u8; 16], half: usize| i64::from_le_bytes(text[8 * half..][..8].try_into().unwrap());
        // What is behind the first byte 0 is of an earlier name.
        let texts: [&[u8; 16]; 3] = [b"opt cgu.07\0rest\0", b"robot\0rest of it", &[0; 16]];
        let batch = KernelBatch {
            time_ns: vec![3, 5, 7, 9],
            event: [KernelEvent::SchedFork, KernelEvent::SchedExit, KernelEvent::SchedExit, KernelEvent::SchedExit]
                .map(|event| event as u8)
                .to_vec(),
            tid: vec![10, 11, 10, 12],
            arg0: [vec![11], texts.map(|text| name(text, 0)).to_vec()].concat(),
            arg1: [vec![0], texts.map(|text| name(text, 1)).to_vec()].concat(),
            ..KernelBatch::default()
        };
        threads.notice(&batch);
        let told = threads.look_up(11);
        let of = |thread: &Thread| (thread.time_ns, thread.tid, thread.comm.clone(), thread.recorded);
        assert_eq!(told.iter().map(of).collect::<Vec<_>>(), [(5, 11, "opt cgu.07".to_owned(), true)]);
        assert!(threads.newcomers.is_empty() && threads.look_up(12).is_empty());
    }

    #[test]
    fn a_living_newcomer_gets_its_name_and_a_dead_one_none() {
        let mut threads = Threads::default();
        let us = std::process::id() as i32;
        threads.notice(&events(&[(KernelEvent::SchedSwitch, 1, us), (KernelEvent::SchedExec, 4_194_304, 0)]));
        let told = threads.look_up(7);
        assert_eq!(
            told.iter().map(|t| (t.tid, t.pid, t.recorded, t.time_ns)).collect::<Vec<_>>(),
            [(us, us, false, 7)]
        );
        assert!(threads.newcomers.is_empty() && threads.look_up(8).is_empty());
    }
}
