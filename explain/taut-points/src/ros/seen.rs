//! What runs, publishes and takes according to the events, by addresses.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashSet};
use taut_recording::RosEvent;

use super::{
    bare::Bare,
    clients::{self, TakeOfGid},
    events::{COROUTINE, MOST_NESTED, RESUMED, Row, SUSPENDED},
    naming::Books,
    system::{Of, OnTake, System},
};

/// Pairs of callback and publisher: a trace of noise must not fill the memory.
const MOST_PAIRS: usize = 1 << 20;
/// The thread of a coroutine that is suspended.
const NOWHERE: u32 = u32::MAX;
/// A node with more of them has several synchronisers, each of which joins nine at most: which are of one is not known.
const MOST_FILTERS: usize = 32;
/// The function with which message_filters subscribes begins like this.
const FILTER_IN_CPP: &str = "message_filters::Subscriber";
/// Flag of [`RosEvent::Schedule`].
const IS_TASK: u64 = 1;
/// Sequence number of a middleware that has none.
const NO_NUMBER: u64 = u64::MAX;

/// What runs, by an address of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Runs {
    Callback(u64),
    /// What a client does with an answer, until its executor goes on. By the middleware's handle.
    Client(u64),
    /// A service, when it answers: its callback has ended then. By the middleware's handle.
    Service(u64),
    /// What goes on with a message where no callback is reported ([`Bare`]), by the middleware's handle; the same of a timer, by rcl's.
    Subscription(u64),
    Timer(u64),
}

/// The sender, by an address of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sender {
    Publisher(u64),
    RmwPublisher(u64),
    Client(u64),
    Service(u64),
    /// Of runs of this callback.
    Scheduler(u64),
}

/// A client sent a request: which, by the middleware's handle and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Send {
    pub process: i32,
    pub handle: u64,
    pub thread: u32,
    pub number: u64,
}

/// Stands for a request of a client.
pub(super) fn request_key(gid: u64, number: u64) -> i64 {
    (gid ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) as i64 | 1
}

/// Whether the thread's executor goes on: what it did with an answer is done then. A take alone does not end it: an action's
/// client takes all that is there at once.
pub(super) fn ends_answer(event: RosEvent) -> bool {
    use RosEvent::*;
    matches!(
        event,
        CallbackStart | Wait | WaitForWork | NextReady | TimerCall | TakeRequest | TakeResponse | Dispatch | Dequeue
    )
}

/// Whether a middleware says when it received a message: Cyclone DDS gives the moment of the take, and no number.
pub(super) fn says_received(row: &Row) -> bool {
    row.event == RosEvent::TakeInfo && row.args[0] != 0 && row.args[1] != NO_NUMBER
}

/// All that the events say.
#[derive(Default)]
pub(super) struct Seen {
    bare: Bare,
    /// By thread: what it is in; and the client whose answer it took last, until it has scheduled what is to be done with that.
    stacks: Vec<Vec<Runs>>,
    answers: Vec<Option<Runs>>,
    /// By thread: the service whose request it just took. By callback: the one that it ran for, by the middleware's handle.
    requested: Vec<Option<u64>>,
    pub serves: HashMap<(i32, u64), u64>,
    /// Senders by what they send in, with the first time.
    publishes: HashMap<(i32, Runs, Sender), u64>,
    /// What ran, and when first.
    ran: HashMap<(i32, Runs), u64>,
    published: HashMap<(i32, Sender), u64>,
    /// Threads of one executor: of each the next one, towards the one that stands for all.
    same: Vec<u32>,
    /// By thread.
    pub runs_callbacks: Vec<bool>,
    /// The first thread that a callback ran in.
    first_thread: HashMap<(i32, u64), u32>,
    /// By process: what runs, by thread; and pairs of callbacks that ran at once, with when first.
    running: HashMap<i32, Vec<(u32, u64)>>,
    at_once: HashMap<(i32, u64, u64), u64>,
    /// Requests by when they were sent, as their clients say, and when they were taken.
    sends: Vec<(u64, Send)>,
    requests: HashMap<i64, u64>,
    takes_of_gids: Vec<TakeOfGid>,
    /// When what was at an address went.
    pub gone: HashMap<(i32, u64), Vec<u64>>,
    /// By process: its first and its last event.
    lives: HashMap<i32, (u64, u64)>,
    pub says_which: HashSet<i32>,
    pub says_when: HashSet<i32>,
    pub says_received: bool,
    /// Processes that say which request they take, and those whose middleware says of which publisher a message is.
    pub says_request: HashSet<i32>,
    /// Callbacks that were scheduled; and those that are coroutines, with when first.
    pub scheduled: HashSet<(i32, u64)>,
    /// Callbacks whose message was in a set, and the one that completed it, with when first.
    joined: HashMap<(i32, u64, u64), u64>,
    coroutines: HashMap<(i32, u64), u64>,
    says_publisher: HashSet<i32>,
}

impl Seen {
    pub fn new(threads: usize, bare: Bare) -> Seen {
        Seen {
            bare,
            stacks: vec![Vec::new(); threads],
            answers: vec![None; threads],
            requested: vec![None; threads],
            same: (0..threads as u32).collect(),
            runs_callbacks: vec![false; threads],
            ..Seen::default()
        }
    }

    pub fn take(&mut self, row: &Row) {
        let Row { time_ns, pid, event, handle, .. } = *row;
        self.lives.entry(pid).or_insert((time_ns, time_ns)).1 = time_ns;
        if ends_answer(event) {
            self.stacks[row.thread as usize].retain(|runs| matches!(runs, Runs::Callback(_)));
        }
        match event {
            RosEvent::CallbackStart => self.start(row),
            RosEvent::CallbackEnd => {
                let stack = &mut self.stacks[row.thread as usize];
                if let Some(at) = stack.iter().rposition(|runs| *runs == Runs::Callback(handle)) {
                    stack.truncate(at);
                }
                let running = self.running.entry(pid).or_default();
                running.retain(|(thread, callback)| (*thread, *callback) != (row.thread, handle));
                // A coroutine that awaits something keeps its group to itself, if that is of one callback at a time.
                if row.args[0] & SUSPENDED != 0 && running.len() < MOST_NESTED {
                    running.push((NOWHERE, handle));
                }
            }
            RosEvent::RclcppPublish | RosEvent::RclPublish | RosEvent::IntraPublish if handle != 0 => {
                self.send(row, Sender::Publisher(handle));
            }
            RosEvent::RmwPublish if handle != 0 => {
                self.says_publisher.insert(pid);
                self.send(row, Sender::RmwPublisher(handle));
            }
            RosEvent::SendRequest => {
                self.send(row, Sender::Client(handle));
                if self.sends.len() < MOST_PAIRS {
                    let send = Send { process: pid, handle, thread: row.thread, number: row.args[0] };
                    self.sends.push((time_ns, send));
                }
            }
            RosEvent::SendResponse => {
                // A callback may have been scheduled for that, else it is the service's own.
                let runs = match self.stacks[row.thread as usize].last() {
                    Some(runs @ Runs::Callback(callback)) if self.scheduled.contains(&(pid, *callback)) => *runs,
                    _ => Runs::Service(handle),
                };
                self.publishes.entry((pid, runs, Sender::Service(handle))).or_insert(time_ns);
                self.published.entry((pid, Sender::Service(handle))).or_insert(time_ns);
            }
            RosEvent::Schedule => {
                if self.scheduled.len() < MOST_PAIRS {
                    self.scheduled.insert((pid, handle));
                }
                // An executor may do other things before it goes on with an answer. A task of the program's own is not what it goes
                // on with.
                let stack = &mut self.stacks[row.thread as usize];
                if row.args[1] != IS_TASK
                    && let Some(client) = self.answers[row.thread as usize].take()
                    && stack.is_empty()
                {
                    stack.push(client);
                }
                self.send(row, Sender::Scheduler(handle));
            }
            RosEvent::TakeResponse if row.args[2] != 0 => {
                self.run(row, Runs::Client(handle));
                self.stacks[row.thread as usize].push(Runs::Client(handle));
                self.answers[row.thread as usize] = Some(Runs::Client(handle));
            }
            RosEvent::TakeRequest => {
                self.says_request.insert(pid);
                self.requested[row.thread as usize] = (row.args[2] != 0).then_some(handle);
                if row.args[2] != 0 {
                    if self.requests.len() < MOST_PAIRS {
                        let [number, gid, _] = row.args;
                        self.requests.insert(request_key(gid, number), time_ns);
                        self.takes_of_gids.push(TakeOfGid { time_ns, process: pid, service: handle, gid, number });
                    }
                    self.begin_at_take(row, Runs::Service(handle));
                }
            }
            RosEvent::Joined => {
                if let Some(Runs::Callback(completing)) = self.stacks[row.thread as usize].last()
                    && self.joined.len() < MOST_PAIRS
                {
                    self.joined.entry((pid, handle, *completing)).or_insert(time_ns);
                }
            }
            RosEvent::TimerCall => self.begin_at_take(row, Runs::Timer(handle)),
            RosEvent::Take => {
                self.says_when.insert(pid);
                if row.args[2] != 0 && self.bare.is_read(pid, handle) {
                    self.run(row, Runs::Subscription(handle));
                } else if row.args[2] != 0 {
                    self.begin_at_take(row, Runs::Subscription(handle));
                }
                if row.args[1] != 0 {
                    self.says_which.insert(pid);
                }
            }
            RosEvent::Dispatch => {
                self.says_which.insert(pid);
            }
            RosEvent::Gone if self.gone.len() < MOST_PAIRS => self.gone.entry((pid, handle)).or_default().push(time_ns),
            _ => self.says_received |= says_received(row),
        }
    }

    /// Where no callback is reported, what a thread took or called is what it goes on with.
    fn begin_at_take(&mut self, row: &Row, runs: Runs) {
        if self.bare.contains(row.pid, row.handle) {
            let stack = &mut self.stacks[row.thread as usize];
            stack.retain(|runs| matches!(runs, Runs::Callback(_)));
            stack.push(runs);
            self.run(row, runs);
            self.runs_callbacks[row.thread as usize] = true;
        }
    }

    /// Whether the last event of one process was before the first of the other.
    pub fn is_before(&self, process: i32, other: i32) -> bool {
        let lives = self.lives.get(&process).zip(self.lives.get(&other));
        lives.is_none_or(|((_, last_ns), (first_ns, _))| last_ns < first_ns)
    }

    /// Whether it ran and no callback of it is reported.
    pub fn is_bare(&self, process: i32, runs: Runs) -> bool {
        let (Runs::Callback(address)
        | Runs::Client(address)
        | Runs::Service(address)
        | Runs::Subscription(address)
        | Runs::Timer(address)) = runs;
        (self.bare.contains(process, address) || self.is_read(process, address))
            && self.ran.contains_key(&(process, runs))
    }

    /// Whether callbacks take messages of this subscription of the middleware.
    pub fn is_read(&self, process: i32, address: u64) -> bool {
        self.bare.is_read(process, address)
    }

    fn run(&mut self, row: &Row, runs: Runs) {
        if self.ran.len() < MOST_PAIRS {
            self.ran.entry((row.pid, runs)).or_insert(row.time_ns);
        }
    }

    fn start(&mut self, row: &Row) {
        let Row { time_ns, pid, handle, thread, .. } = *row;
        self.run(row, Runs::Callback(handle));
        if row.args[0] & COROUTINE != 0 && self.coroutines.len() < MOST_PAIRS {
            self.coroutines.entry((pid, handle)).or_insert(time_ns);
        }
        self.runs_callbacks[thread as usize] = true;
        if let Some(service) = self.requested[thread as usize].take()
            && self.serves.len() < MOST_PAIRS
        {
            self.serves.entry((pid, handle)).or_insert(service);
        }
        let stack = &mut self.stacks[thread as usize];
        stack.push(Runs::Callback(handle));
        // One that never ends is left at the bottom.
        if stack.len() > MOST_NESTED {
            stack.remove(0);
        }
        if self.first_thread.len() < MOST_PAIRS {
            let first = *self.first_thread.entry((pid, handle)).or_insert(thread);
            let (one, other) = (self.stands_for(first), self.stands_for(thread));
            self.same[one as usize] = other;
        }
        let running = self.running.entry(pid).or_default();
        if row.args[0] & RESUMED != 0
            && let Some(at) = running.iter().position(|suspended| *suspended == (NOWHERE, handle))
        {
            running.swap_remove(at);
        }
        for (_, other) in running.iter().filter(|(other, _)| *other != thread) {
            if self.at_once.len() < MOST_PAIRS {
                self.at_once.entry((pid, *other, handle)).or_insert(time_ns);
            }
        }
        if running.len() < MOST_NESTED {
            running.push((thread, handle));
        }
    }

    fn send(&mut self, row: &Row, sender: Sender) {
        let Row { time_ns, pid, .. } = *row;
        if self.published.len() < MOST_PAIRS {
            self.published.entry((pid, sender)).or_insert(time_ns);
        }
        if let Some(runs) = self.stacks[row.thread as usize].last()
            && self.publishes.len() < MOST_PAIRS
        {
            self.publishes.entry((pid, *runs, sender)).or_insert(time_ns);
        }
    }

    fn stands_for(&self, mut thread: u32) -> u32 {
        while self.same[thread as usize] != thread {
            thread = self.same[thread as usize];
        }
        thread
    }

    /// By thread: all threads of its executor. What runs one callback's runs is one executor.
    pub fn executors(&self) -> Vec<Vec<u32>> {
        let mut members: HashMap<u32, Vec<u32>> = HashMap::default();
        let all = 0..self.same.len() as u32;
        all.clone().for_each(|thread| members.entry(self.stands_for(thread)).or_default().push(thread));
        all.map(|thread| members[&self.stands_for(thread)].clone()).collect()
    }

    /// Publishers and takers, by number.
    pub fn join(&self, books: &Books, system: &mut System) {
        system.publishes = vec![BTreeSet::new(); system.callbacks.len()];
        system.takers = vec![BTreeSet::new(); system.topics.len()];
        system.is_published = vec![false; system.topics.len()];
        for ((process, sender), time_ns) in &self.published {
            match publisher(system, *process, *sender, *time_ns) {
                Some(found) => {
                    let topic = system.publishers[found as usize].topic;
                    system.is_published[topic as usize] = true;
                }
                None => system.unknown += u64::from(self.is_unknown(*process, *sender, books)),
            }
        }
        for ((process, runs, sender), time_ns) in &self.publishes {
            let found = publisher(system, *process, *sender, *time_ns);
            let callback = callback(system, *process, *runs, *time_ns);
            if let Some((callback, found)) = callback.zip(found) {
                system.publishes[callback as usize].insert(found);
            }
        }
        self.find_partners(system);
        for ((process, runs), time_ns) in &self.ran {
            let found = callback(system, *process, *runs, *time_ns);
            match found.map(|callback| (callback, system.callbacks[callback as usize].of)) {
                Some((callback, Of::Topic(topic, _))) => {
                    system.takers[topic as usize].insert(callback);
                }
                Some((_, Of::Unknown)) | None => system.unknown += 1,
                Some(_) => {}
            }
        }
        system.too_many_clients = clients::find_gids(&self.sends, &self.takes_of_gids, system);
        // A client says that it sent a request when that is on its way, and may be held up then.
        for (time_ns, send) in &self.sends {
            let gid = system.client_gid_at.at((send.process, send.handle), *time_ns);
            let key = gid.map(|gid| request_key(*gid, send.number));
            if let Some(key) = key.filter(|key| self.requests.get(key).is_some_and(|taken_ns| taken_ns < time_ns)) {
                system.late_sends.insert(key, *send);
            }
        }
        for (address, time_ns) in &self.coroutines {
            let callback = system.callback_at.at(*address, *time_ns).copied();
            system.set_on_take(callback, OnTake::RunsAsTask);
        }
        for ((process, one, other), time_ns) in &self.at_once {
            let group = |address| {
                let callback = system.callback_at.at((*process, address), *time_ns)?;
                Some(system.callbacks[*callback as usize].group)
            };
            if let Some(group) = group(*one).filter(|one| Some(*one) == group(*other)) {
                system.open_groups.insert(group);
            }
        }
    }

    /// Callbacks whose messages go into one set. rclpy's say so. Of rclcpp's, by their function, it is those that publish to one topic. What
    /// publishes does so with the messages of all of them.
    fn find_partners(&self, system: &mut System) {
        for ((process, one, completing), time_ns) in &self.joined {
            let at = |address: u64| system.callback_at.at((*process, address), *time_ns).copied();
            if let Some((one, completing)) = at(*one).zip(at(*completing)).filter(|(one, other)| one != other) {
                let publishes = system.publishes[completing as usize].clone();
                system.publishes[one as usize].extend(publishes);
                system.join(one, completing);
            }
        }
        let mut by_node: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (callback, _) in system.functions.iter().filter(|(_, function)| function.starts_with(FILTER_IN_CPP)) {
            by_node.entry(&system.callbacks[*callback as usize].node).or_default().push(*callback);
        }
        let by_node: Vec<Vec<u32>> = by_node.into_values().collect();
        for all in by_node.into_iter().filter(|all| all.len() <= MOST_FILTERS) {
            self.find_partners_of_node(all, system);
        }
    }

    fn find_partners_of_node(&self, mut all: Vec<u32>, system: &mut System) {
        all.sort_unstable();
        let is_data = |publisher: &u32| {
            let topic = system.publishers[*publisher as usize].topic;
            system.is_followed(topic) && system.topics[topic as usize].is_data()
        };
        let data_of = |callback: &u32| -> BTreeSet<u32> {
            system.publishes[*callback as usize].iter().copied().filter(is_data).collect()
        };
        let mut sets: Vec<BTreeSet<u32>> = all.iter().map(data_of).collect();
        // One that always comes before the others publishes nothing: it is of the only synchroniser, if there is but one.
        let mut of_others = sets.iter().filter(|set| !set.is_empty());
        let first = of_others.next().cloned().unwrap_or_default();
        if of_others.all(|set| *set == first) {
            for (callback, set) in all.iter().zip(&mut sets).filter(|(_, set)| set.is_empty()) {
                set.clone_from(&first);
                system.publishes[*callback as usize].extend(&first);
            }
        }
        for (at, one) in all.iter().enumerate() {
            for (other, _) in all.iter().zip(&sets).skip(at + 1).filter(|(_, set)| !set.is_disjoint(&sets[at])) {
                system.join(*one, *other);
            }
        }
    }

    /// Whether it was made before the trace began. The middleware publishes for itself, too, and rcl moves what publishes the log.
    fn is_unknown(&self, process: i32, sender: Sender, books: &Books) -> bool {
        match sender {
            Sender::Publisher(_) => !self.says_publisher.contains(&process),
            // Of its own ones Cyclone DDS does not say that it makes them.
            Sender::RmwPublisher(address) => {
                !books.rmw_publishers.contains(&(process, address)) && !books.whole.contains(&process)
            }
            Sender::Client(_) | Sender::Service(_) | Sender::Scheduler(_) => false,
        }
    }
}

fn publisher(system: &System, process: i32, sender: Sender, time_ns: u64) -> Option<u32> {
    let (book, address) = match sender {
        Sender::Publisher(address) => (&system.publisher_at, address),
        Sender::RmwPublisher(address) => (&system.rmw_publisher_at, address),
        Sender::Client(address) => (&system.requester_at, address),
        Sender::Service(address) => (&system.answerer_at, address),
        Sender::Scheduler(address) => (&system.scheduler_at, address),
    };
    book.at((process, address), time_ns).copied()
}

fn callback(system: &System, process: i32, runs: Runs, time_ns: u64) -> Option<u32> {
    let (book, address) = match runs {
        Runs::Callback(address) => (&system.callback_at, address),
        Runs::Client(address) => (&system.client_at, address),
        Runs::Service(address) => (&system.service_at, address),
        Runs::Subscription(address) => (&system.subscriber_at, address),
        Runs::Timer(address) => (&system.timer_at, address),
    };
    book.at((process, address), time_ns).copied()
}
