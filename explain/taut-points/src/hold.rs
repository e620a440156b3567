//! Why messages were held, where their source knows it.

use std::ops::Range;

use foldhash::{HashMap, HashSet};

/// Why a message could not go on for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// Host tid of the thread that was in the other callback.
    pub by: i32,
    /// Number of that callback's name in [`Holds`].
    pub callback: u32,
    /// What it waited for.
    pub why: HeldBy,
}

/// What a held message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// Its callback was ready, and its executor was busy with the other one.
    Executor,
    /// It was in a filter, until the other callback completed its set.
    Partner,
}

/// Of each message, its holds.
#[derive(Default)]
pub struct Holds {
    of_message: HashMap<u64, Vec<Hold>>,
    names: Vec<String>,
    /// Messages of which all holds are here, and threads of executors.
    messages: Range<u64>,
    threads: HashSet<i32>,
}

impl Holds {
    /// Number of a callback's name; each call gives another.
    pub(crate) fn name(&mut self, name: String) -> u32 {
        self.names.push(name);
        self.names.len() as u32 - 1
    }

    /// Adds one of a message.
    pub(crate) fn add(&mut self, message: u64, hold: Hold) {
        self.of_message.entry(message).or_default().push(hold);
    }

    /// All holds of these messages on these threads are here.
    pub(crate) fn complete(&mut self, messages: Range<u64>, threads: impl Iterator<Item = i32>) {
        self.messages = messages;
        self.threads = threads.collect();
    }

    /// Whether all that this thread was busy with while the message waited for it is here.
    pub fn are_known(&self, message: u64, thread: i32) -> bool {
        self.messages.contains(&message) && self.threads.contains(&thread)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.of_message.is_empty()
    }

    /// Those of a message that lie within these bounds, cut to them, each with the callback's name.
    pub fn within(&self, message: u64, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (Hold, &str)> {
        let of_message = self.of_message.get(&message).map_or(&[][..], Vec::as_slice);
        let cut = move |hold: &Hold| Hold { from_ns: hold.from_ns.max(from_ns), to_ns: hold.to_ns.min(to_ns), ..*hold };
        let cut = of_message.iter().map(cut).filter(|hold| hold.from_ns < hold.to_ns);
        cut.map(|hold| (hold, self.names[hold.callback as usize].as_str()))
    }
}
