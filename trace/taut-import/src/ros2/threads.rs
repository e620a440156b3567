//! The origin of events: threads and processes of one or several machines.

use std::collections::HashMap;

use crate::ctf::{Event, Source};

/// Thread and process numbers of another machine are separated by this much; the kernel's own stay below 2²².
const HOST: i32 = 1 << 23;

/// More threads are no machine's.
const MOST_THREADS: usize = 1 << 18;

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    /// As recordings have them: those of a second machine far above those of the first.
    pub pid: i32,
    pub tid: i32,
    pub name: String,
}

/// All threads seen, by number.
#[derive(Default)]
pub(super) struct Threads {
    all: Vec<Thread>,
    by_tid: HashMap<(i32, i32), u32>,
    /// By stream: a CPU mostly goes on with the thread it had.
    last: Vec<Option<u32>>,
}

impl Threads {
    /// Number of the event's thread; `None` where the event does not say, or there are too many.
    #[inline]
    pub fn of(&mut self, source: Source, event: &Event<'_>) -> Option<u32> {
        let (pid, tid) = (numbered(source.host, event.pid()?), numbered(source.host, event.tid()?));
        let stream = source.stream as usize;
        if self.last.len() <= stream {
            self.last.resize(stream + 1, None);
        }
        if let Some(last) = self.last[stream] {
            let known = &self.all[last as usize];
            if (known.pid, known.tid) == (pid, tid) {
                return Some(last);
            }
        }
        let thread = match self.by_tid.get(&(pid, tid)) {
            Some(thread) => *thread,
            None if self.all.len() >= MOST_THREADS => return None,
            None => self.add(pid, tid, event.thread_name().unwrap_or_default()),
        };
        self.last[stream] = Some(thread);
        Some(thread)
    }

    fn add(&mut self, pid: i32, tid: i32, name: &str) -> u32 {
        let thread = self.all.len() as u32;
        self.all.push(Thread { pid, tid, name: name.to_owned() });
        self.by_tid.insert((pid, tid), thread);
        thread
    }

    pub fn get(&self, thread: u32) -> &Thread {
        &self.all[thread as usize]
    }

    /// All of them, in the order in which they were seen.
    pub fn iter(&self) -> impl Iterator<Item = &Thread> {
        self.all.iter()
    }
}

/// A process's or thread's number among those of all machines.
pub(super) fn numbered(host: u16, number: i32) -> i32 {
    number.wrapping_add(i32::from(host).wrapping_mul(HOST))
}
