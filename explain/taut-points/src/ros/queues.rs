//! Publishes on their way: what waits in each topic until it is taken.

use std::collections::VecDeque;

use foldhash::HashMap;

use super::{chains::Chains, system::System};

/// A datum on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// 0: a datum that was used before and is used again; it stands in no chain, but has an age.
    pub id: u64,
    pub chain: u32,
    /// Which hop of the chain it is at, or comes to.
    pub hop: u16,
    /// When the chain began.
    pub origin_ns: u64,
}

/// Publishes that a topic remembers. Queues of subscriptions are shorter.
const MOST: usize = 4096;
/// A source timestamp is taken within the publish, and clocks may be set meanwhile.
const NEAR_NS: u64 = 10_000_000;

/// One publish.
#[derive(Debug)]
pub(super) struct Publish {
    pub time_ns: u64,
    pub publisher: u32,
    pub thread: u32,
    pub process: i32,
    /// Source timestamp; 0 where it is not known.
    pub stamp: i64,
    /// When that was taken, on the trace's clock; 0 where it is not known.
    pub stamped_ns: u64,
    /// Those that are not taken yet.
    pub messages: Vec<Message>,
}

/// What waits in one topic.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Number of the first that is still there.
    first: u64,
    waiting: VecDeque<Publish>,
    by_stamp: HashMap<i64, u64>,
    /// How much later source timestamps are than publishes, by the latest that were matched.
    drift_ns: i64,
}

/// What a take brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub messages: Vec<Message>,
    /// When they were published; and whether only that identifies them.
    pub published_ns: u64,
    pub is_near: bool,
    /// Their publisher, and its process.
    pub from: (i32, u32),
    /// When the source timestamp was taken, and that itself; 0 where they are not known.
    pub stamped_ns: u64,
    pub stamp: i64,
    /// Older ones of the same publisher that can come no more.
    pub lost: Vec<Lost>,
}

/// A message that was published and not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub message: Message,
    /// When, and on which thread.
    pub published_ns: u64,
    pub thread: u32,
    /// How many were published after it until now.
    pub later: u64,
}

/// How a take says what it took.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    /// Source timestamp, and what of it there is on the trace's clock.
    Stamp(i64, i64),
    /// What stands for a request: its client and its number. It takes the place of the source timestamp.
    Key(i64),
    /// A publish of this topic by its number, within the process.
    Number(u64),
    /// Nothing: the queue's order.
    Order { depth: u64, process: Option<i32> },
}

impl Queue {
    /// Adds a publish; returns its number, and what is pushed out.
    pub fn add(&mut self, publish: Publish) -> (u64, Vec<Message>) {
        self.waiting.push_back(publish);
        let mut out = Vec::new();
        if self.waiting.len() > MOST
            && let Some(oldest) = self.waiting.front_mut()
        {
            out = std::mem::take(&mut oldest.messages);
        }
        self.forget();
        (self.first + self.waiting.len() as u64 - 1, out)
    }

    /// Learns the source timestamp of a publish.
    pub fn stamp(&mut self, number: u64, stamp: i64, stamped_ns: u64) {
        if let Some(publish) = self.at(number)
            && publish.stamp == 0
        {
            (publish.stamp, publish.stamped_ns) = (stamp, stamped_ns);
            self.by_stamp.insert(stamp, number);
        }
    }

    /// Hands over what the callback takes, and what it can take no more: a subscription's queue keeps each publisher's order.
    pub fn take(&mut self, callback: u32, by: By, chains: &Chains) -> Option<Taken> {
        let is_mine = |message: &Message| {
            chains.all[message.chain as usize].hops[usize::from(message.hop)].callback == Some(callback)
        };
        let mut is_near = false;
        let number = match by {
            By::Stamp(stamp, near_ns) => match self.by_stamp.get(&stamp) {
                Some(number) => *number,
                None => {
                    is_near = true;
                    self.near(near_ns, is_mine)?
                }
            },
            By::Key(key) => *self.by_stamp.get(&key)?,
            By::Number(number) => number,
            By::Order { depth, process } => self.next_in_order(depth, process, is_mine)?,
        };
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let all = self.waiting.len() as u64;
        let publish = self.waiting.get_mut(at)?;
        let (from, published_ns) = ((publish.process, publish.publisher), publish.time_ns);
        let (stamped_ns, stamp) = (publish.stamped_ns, publish.stamp);
        let messages = drained(&mut publish.messages, is_mine);
        let mut lost = Vec::new();
        // Requests are answered in any order, and none is lost in between.
        let before = self.waiting.iter_mut().enumerate().take(if matches!(by, By::Key(_)) { 0 } else { at });
        // Without a key the one in question may be any publisher's.
        let is_before = |publish: &Publish| publish.publisher == from.1 || matches!(by, By::Order { .. });
        for (place, publish) in before.filter(|(_, publish)| is_before(publish)) {
            let later = all - 1 - place as u64;
            let (published_ns, thread) = (publish.time_ns, publish.thread);
            let messages = drained(&mut publish.messages, is_mine).into_iter();
            lost.extend(messages.map(|message| Lost { message, published_ns, thread, later }));
        }
        self.forget();
        Some(Taken { messages, published_ns, is_near, from, stamped_ns, stamp, lost })
    }

    /// Takes out of the publish of this key what waits there for other callbacks.
    pub fn not_for(&mut self, callback: u32, key: i64, chains: &Chains) -> Vec<Message> {
        let number = self.by_stamp.get(&key).copied();
        let messages = number.and_then(|number| self.at(number)).map(|publish| &mut publish.messages);
        let is_others = |message: &Message| {
            chains.all[message.chain as usize].hops[usize::from(message.hop)].callback != Some(callback)
        };
        messages.map_or_else(Vec::new, |messages| messages.extract_if(.., |message| is_others(message)).collect())
    }

    /// All that waits still, oldest first.
    pub fn rest(&mut self) -> impl Iterator<Item = Publish> + '_ {
        self.waiting.drain(..)
    }

    fn at(&mut self, number: u64) -> Option<&mut Publish> {
        self.waiting.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The publish nearest to a source timestamp: where publishes do not say theirs (ros2_tracing before 8).
    fn near(&mut self, near_ns: i64, is_mine: impl Fn(&Message) -> bool) -> Option<u64> {
        let wanted = near_ns.saturating_sub(self.drift_ns);
        let apart = |publish: &Publish| wanted.saturating_sub(publish.time_ns as i64);
        let candidates = self.waiting.iter().enumerate();
        let candidates = candidates.filter(|(_, publish)| publish.stamp == 0 && publish.messages.iter().any(&is_mine));
        let (at, publish) = candidates.min_by_key(|(_, publish)| apart(publish).unsigned_abs())?;
        let apart = apart(publish);
        if apart.unsigned_abs() > NEAR_NS {
            return None;
        }
        // A clock that is set slowly is followed; one message's delay is not.
        self.drift_ns = self.drift_ns.saturating_add(apart / 8);
        Some(self.first + at as u64)
    }

    /// The oldest that waits for a callback and that its subscription's queue can still hold.
    fn next_in_order(&self, depth: u64, process: Option<i32>, is_mine: impl Fn(&Message) -> bool) -> Option<u64> {
        let waits = |publish: &Publish| {
            process.is_none_or(|process| publish.process == process) && publish.messages.iter().any(&is_mine)
        };
        let waiting: Vec<usize> = (0..self.waiting.len()).filter(|at| waits(&self.waiting[*at])).collect();
        let beyond = if depth == 0 { 0 } else { waiting.len().saturating_sub(depth as usize) };
        waiting.get(beyond).map(|at| self.first + *at as u64)
    }

    fn forget(&mut self) {
        while let Some(oldest) = self.waiting.front()
            && (oldest.messages.is_empty() || self.waiting.len() > MOST)
        {
            self.by_stamp.remove(&oldest.stamp);
            self.waiting.pop_front();
            self.first += 1;
        }
    }
}

fn drained(messages: &mut Vec<Message>, is_mine: impl Fn(&Message) -> bool) -> Vec<Message> {
    // Most publishes lead to one callback.
    if messages.iter().all(&is_mine) {
        return std::mem::take(messages);
    }
    messages.extract_if(.., |message| is_mine(message)).collect()
}

/// One queue a topic.
pub(super) fn of(system: &System) -> Vec<Queue> {
    system.topics.iter().map(|_| Queue::default()).collect()
}
