//! The first reading of a trace: who there is, by name, and which callback publishes what.
//!
//! It comes before the messages are followed because traces say late who somebody is: CARET repeats what was made
//! before its recording began, a second session of ros2_tracing holds it, and a chain can only begin once it is known where it
//! goes.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    events::{Init, Ros, What, what},
    threads::Threads,
};
use crate::ctf::{Event, Source};

/// Facts, and pairs of callback and publisher: a trace of noise must not fill the memory.
const MOST_FACTS: usize = 1 << 20;
/// Longer names are cut.
const NAME_BYTES: usize = 255;
/// Everybody has them, and nobody's work depends on them.
const LEFT_OUT: [&str; 3] = ["/rosout", "/parameter_events", "/clock"];

/// What an address of a process was at a time: addresses are used again.
#[derive(Clone, Debug)]
pub(super) struct Book<T> {
    entries: HashMap<(u32, u64), Vec<(u64, T)>>,
}

impl<T> Default for Book<T> {
    fn default() -> Book<T> {
        Book { entries: HashMap::new() }
    }
}

impl<T: Clone> Book<T> {
    /// Facts come in order of time.
    fn add(&mut self, key: (u32, u64), time_ns: u64, what: T) {
        self.entries.entry(key).or_default().push((time_ns, what));
    }

    /// The last that was there by then, or the first that came later.
    #[inline]
    pub fn at(&self, key: (u32, u64), time_ns: u64) -> Option<&T> {
        let entries = self.entries.get(&key)?;
        if let [(_, only)] = entries.as_slice() {
            return Some(only);
        }
        let before = entries.partition_point(|(since, _)| *since <= time_ns);
        entries.get(before.saturating_sub(1)).map(|(_, what)| what)
    }
}

/// One callback.
#[derive(Clone, Debug)]
pub(super) struct Callback {
    /// "/node timer 100 ms", "/node callback /topic".
    pub name: String,
    pub node: String,
    pub of: Of,
    /// Only one of a group runs at a time; equal within a node where groups are not known.
    pub group: u64,
}

/// What calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Timer,
    /// Messages of this topic, which wait in a queue so long.
    Topic(u32, u64),
    Service,
    /// Its making is not in the trace.
    Unknown,
}

/// One publisher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Publisher {
    pub node: String,
    pub topic: u32,
}

/// Everything known of the system. Callbacks, publishers and topics are numbers of their lists.
#[derive(Default)]
pub(super) struct System {
    pub callbacks: Vec<Callback>,
    pub publishers: Vec<Publisher>,
    pub topics: Vec<String>,
    pub callback_at: Book<u32>,
    pub publisher_at: Book<u32>,
    pub rmw_publisher_at: Book<u32>,
    /// Callback of a subscription of the middleware, and of a buffer within a process.
    pub subscriber_at: Book<u32>,
    pub buffer_at: Book<u32>,
    /// By callback: its publishers.
    pub publishes: Vec<BTreeSet<u32>>,
    /// By topic: callbacks that ran with its messages.
    pub takers: Vec<BTreeSet<u32>>,
    /// By topic: whether a publisher of it is in the trace.
    pub is_published: Vec<bool>,
    /// Processes that say which message they take; and those that say when they take it.
    pub says_which: HashSet<u32>,
    pub says_when: HashSet<u32>,
    /// "4.1.1", of ros2_tracing.
    pub version: String,
    /// Whether the kernel said who wakes whom, and not only that somebody woke.
    pub has_waking: bool,
    pub has_switches: bool,
    pub has_calls: bool,
    /// Callbacks and publishers whose making is not in the trace.
    pub unknown: u64,
}

impl System {
    /// Whether messages of the topic are followed.
    pub fn is_followed(&self, topic: u32) -> bool {
        !LEFT_OUT.contains(&self.topics[topic as usize].as_str())
    }

    /// Callbacks that a publish leads to.
    pub fn led_to(&self, publisher: u32) -> impl Iterator<Item = u32> + '_ {
        let topic = self.publishers[publisher as usize].topic;
        let takers = self.is_followed(topic).then(|| self.takers[topic as usize].iter().copied());
        takers.into_iter().flatten()
    }
}

/// One making, as it was said.
struct Fact {
    time_ns: u64,
    init: Init,
    process: u32,
    /// The event's fields without the time.
    address: u64,
    numbers: [u64; 3],
    texts: [String; 2],
}

/// The first reading.
#[derive(Default)]
pub(super) struct Census {
    pub threads: Threads,
    facts: Vec<Fact>,
    /// By thread: callbacks that it is in.
    stacks: Vec<Vec<u64>>,
    /// (process, callback, publisher or its middleware's, which of both) with when it was first seen.
    publishes: HashMap<(u32, u64, u64, bool), u64>,
    /// Callbacks that ran, and when first.
    ran: HashMap<(u32, u64), u64>,
    published: HashMap<(u32, u64, bool), u64>,
    says_which: HashSet<u32>,
    says_when: HashSet<u32>,
    has_waking: bool,
    has_switches: bool,
    has_calls: bool,
    pub ros_events: u64,
    /// ROS events that do not say which thread they are from.
    pub nobodys: u64,
    pub first_ns: Option<u64>,
    pub last_ns: u64,
}

impl Census {
    /// Takes in one event. `offset_ns` is from 1970 to the zero of the trace's clock.
    pub fn take(&mut self, source: Source, event: &Event<'_>, offset_ns: i128) {
        self.first_ns.get_or_insert(source.time_ns);
        self.last_ns = source.time_ns;
        let what = what(event.kind);
        match what {
            What::Kernel(super::events::Kernel::Switch) => return self.has_switches = true,
            What::Kernel(super::events::Kernel::Waking) => return self.has_waking = true,
            What::Enter(_) => return self.has_calls = true,
            What::Kernel(_) | What::Exit(_) => return,
            What::Init(_) | What::Ros(_) => {}
        }
        self.ros_events += 1;
        let Some(thread) = self.threads.of(source, event) else {
            self.nobodys += 1;
            return;
        };
        let process = self.threads.get(thread).process;
        match what {
            What::Init(init) => self.init(init, process, source.time_ns, offset_ns, event),
            What::Ros(ros) => self.ros(ros, thread, process, source.time_ns, event),
            _ => {}
        }
    }

    fn init(&mut self, init: Init, process: u32, time_ns: u64, offset_ns: i128, event: &Event<'_>) {
        if self.facts.len() >= MOST_FACTS {
            return;
        }
        let number = |field| event.number(field).unwrap_or(0);
        let text = |field| cut(event.text(field).unwrap_or_default());
        let (numbers, texts) = match init {
            Init::Version => ([0; 3], [text(2), String::new()]),
            Init::Node => ([0; 3], [text(2), text(3)]),
            Init::Publisher => ([number(2), number(3), 0], [text(4), String::new()]),
            Init::Subscription => ([number(2), number(3), number(5)], [text(4), String::new()]),
            Init::Service => ([number(2), 0, 0], [text(3), String::new()]),
            Init::CallbackSymbol => ([0; 3], [text(2), String::new()]),
            _ => ([number(2), 0, 0], [String::new(), String::new()]),
        };
        let time_ns = event.number(1).map_or(time_ns, |made| made_ns(made, time_ns, offset_ns));
        self.facts.push(Fact { time_ns, init, process, address: number(0), numbers, texts });
    }

    fn ros(&mut self, ros: Ros, thread: u32, process: u32, time_ns: u64, event: &Event<'_>) {
        if self.stacks.len() <= thread as usize {
            self.stacks.resize_with(thread as usize + 1, Vec::new);
        }
        let stack = &mut self.stacks[thread as usize];
        let address = event.number(0).unwrap_or(0);
        match ros {
            Ros::CallbackStart => {
                stack.push(address);
                // One that never ends is left at the bottom.
                if stack.len() > 64 {
                    stack.remove(0);
                }
                if self.ran.len() < MOST_FACTS {
                    self.ran.entry((process, address)).or_insert(time_ns);
                }
            }
            Ros::CallbackEnd => {
                if let Some(at) = stack.iter().rposition(|callback| *callback == address) {
                    stack.truncate(at);
                }
            }
            Ros::RclcppPublish | Ros::RclPublish | Ros::RmwPublish | Ros::IntraPublish if address != 0 => {
                let is_rmw = ros == Ros::RmwPublish;
                if self.published.len() < MOST_FACTS {
                    self.published.entry((process, address, is_rmw)).or_insert(time_ns);
                }
                if let Some(callback) = stack.last()
                    && self.publishes.len() < MOST_FACTS
                {
                    self.publishes.entry((process, *callback, address, is_rmw)).or_insert(time_ns);
                }
            }
            Ros::Take => {
                self.says_when.insert(process);
                if event.number(1).is_some_and(|stamp| stamp != 0) {
                    self.says_which.insert(process);
                }
            }
            Ros::Dispatch => {
                self.says_which.insert(process);
            }
            _ => {}
        }
    }

    /// Puts everything together.
    pub fn finish(mut self) -> (System, Threads) {
        self.facts.sort_by_key(|fact| fact.time_ns);
        let mut books = Books::default();
        for fact in &self.facts {
            books.note(fact);
        }
        let mut system = System {
            version: books.version.clone(),
            has_waking: self.has_waking,
            has_switches: self.has_switches,
            has_calls: self.has_calls,
            says_which: std::mem::take(&mut self.says_which),
            says_when: std::mem::take(&mut self.says_when),
            ..System::default()
        };
        Naming::new(&books, &mut system, &self.threads).name_all(&self.facts);
        self.join(&mut system);
        (system, self.threads)
    }

    /// Who publishes what and who takes it, by number.
    fn join(&self, system: &mut System) {
        system.publishes = vec![BTreeSet::new(); system.callbacks.len()];
        system.takers = vec![BTreeSet::new(); system.topics.len()];
        system.is_published = vec![false; system.topics.len()];
        let publisher = |system: &System, process, address, is_rmw, time_ns| {
            let book = if is_rmw { &system.rmw_publisher_at } else { &system.publisher_at };
            book.at((process, address), time_ns).copied()
        };
        for ((process, address, is_rmw), time_ns) in &self.published {
            match publisher(system, *process, *address, *is_rmw, *time_ns) {
                Some(found) => {
                    let topic = system.publishers[found as usize].topic;
                    system.is_published[topic as usize] = true;
                }
                None => system.unknown += 1,
            }
        }
        for ((process, callback, address, is_rmw), time_ns) in &self.publishes {
            let found = publisher(system, *process, *address, *is_rmw, *time_ns);
            let callback = system.callback_at.at((*process, *callback), *time_ns).copied();
            if let Some((callback, found)) = callback.zip(found) {
                system.publishes[callback as usize].insert(found);
            }
        }
        for ((process, address), time_ns) in &self.ran {
            let callback = system.callback_at.at((*process, *address), *time_ns).copied();
            match callback.map(|callback| (callback, system.callbacks[callback as usize].of)) {
                Some((callback, Of::Topic(topic, _))) => {
                    system.takers[topic as usize].insert(callback);
                }
                Some((_, Of::Unknown)) | None => system.unknown += 1,
                Some(_) => {}
            }
        }
    }
}

/// When something was made that was said only later: CARET's clock is the trace's, or counts from 1970.
fn made_ns(made: u64, said_ns: u64, offset_ns: i128) -> u64 {
    let since_1970 = i128::from(made) - offset_ns;
    match made {
        0 => said_ns,
        made if made <= said_ns => made,
        _ => u64::try_from(since_1970).ok().filter(|made| *made <= said_ns).unwrap_or(said_ns),
    }
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Facts by address.
#[derive(Default)]
struct Books {
    version: String,
    nodes: Book<String>,
    /// Node, topic and depth of the queue.
    subscriptions: Book<(u64, String, u64)>,
    subscription_handles: Book<u64>,
    services: Book<(u64, String)>,
    periods: Book<u64>,
    timer_nodes: Book<u64>,
    symbols: Book<String>,
    ipbs: Book<u64>,
    subscriptions_of_ipbs: Book<u64>,
    groups: Book<u64>,
}

impl Books {
    fn note(&mut self, fact: &Fact) {
        let (key, time_ns, first) = ((fact.process, fact.address), fact.time_ns, fact.numbers[0]);
        let text = || fact.texts[0].clone();
        match fact.init {
            Init::Version => self.version = text(),
            Init::Node => self.nodes.add(key, time_ns, full_name(&fact.texts[1], &fact.texts[0])),
            Init::Subscription => self.subscriptions.add(key, time_ns, (first, text(), fact.numbers[2])),
            Init::SubscriptionObject => self.subscription_handles.add(key, time_ns, first),
            Init::Service => self.services.add(key, time_ns, (first, text())),
            Init::Timer => self.periods.add(key, time_ns, first),
            Init::TimerNode => self.timer_nodes.add(key, time_ns, first),
            Init::CallbackSymbol => self.symbols.add(key, time_ns, text()),
            Init::BufferOfIpb => self.ipbs.add(key, time_ns, first),
            Init::IpbOfSubscription => self.subscriptions_of_ipbs.add(key, time_ns, first),
            Init::GroupOfTimer | Init::GroupOfSubscription => self.groups.add(key, time_ns, first),
            Init::Publisher | Init::SubscriptionCallback | Init::ServiceCallback | Init::TimerCallback => {}
        }
    }
}

/// Gives everything its name and number.
struct Naming<'a> {
    books: &'a Books,
    system: &'a mut System,
    threads: &'a Threads,
    by_name: HashMap<String, u32>,
    topics: HashMap<String, u32>,
    publishers: HashMap<Publisher, u32>,
    /// How many callbacks of one name a process has.
    alike: HashMap<(u32, String), u32>,
    /// Callback of a subscription, by its handle.
    of_subscription: Book<u32>,
}

impl<'a> Naming<'a> {
    fn new(books: &'a Books, system: &'a mut System, threads: &'a Threads) -> Naming<'a> {
        Naming {
            books,
            system,
            threads,
            by_name: HashMap::new(),
            topics: HashMap::new(),
            publishers: HashMap::new(),
            alike: HashMap::new(),
            of_subscription: Book::default(),
        }
    }

    fn name_all(mut self, facts: &[Fact]) {
        for fact in facts {
            self.name(fact);
        }
        // Symbols name callbacks of which nothing else is known.
        for fact in facts.iter().filter(|fact| fact.init == Init::CallbackSymbol) {
            let key = (fact.process, fact.address);
            if self.system.callback_at.at(key, fact.time_ns).is_none() {
                let name = format!("callback {}", short_symbol(&fact.texts[0]));
                let callback =
                    Callback { name, node: self.process(fact.process), of: Of::Unknown, group: fact.address };
                self.callback(fact, callback);
            }
        }
        // What the middleware and buffers call a subscription leads to its callback.
        for fact in facts {
            let (key, time_ns) = ((fact.process, fact.numbers[1]), fact.time_ns);
            match fact.init {
                Init::Subscription => {
                    if let Some(callback) = self.of_subscription.at((fact.process, fact.address), time_ns) {
                        self.system.subscriber_at.add(key, time_ns, *callback);
                    }
                }
                Init::BufferOfIpb => {
                    if let Some(callback) = self.buffer(fact) {
                        self.system.buffer_at.add((fact.process, fact.address), time_ns, callback);
                    }
                }
                _ => {}
            }
        }
    }

    fn buffer(&self, fact: &Fact) -> Option<u32> {
        let at = |book: &Book<u64>, address| book.at((fact.process, address), fact.time_ns).copied();
        let subscription = at(&self.books.subscriptions_of_ipbs, fact.numbers[0])?;
        let handle = at(&self.books.subscription_handles, subscription).unwrap_or(subscription);
        self.of_subscription.at((fact.process, handle), fact.time_ns).copied()
    }

    fn name(&mut self, fact: &Fact) {
        let (process, time_ns, [first, second, _]) = (fact.process, fact.time_ns, fact.numbers);
        let key = (process, fact.address);
        match fact.init {
            Init::Publisher => {
                let node = self.node(process, first, time_ns);
                let topic = self.topic(&fact.texts[0]);
                let next = self.publishers.len() as u32;
                let publisher = Publisher { node, topic };
                let number = *self.publishers.entry(publisher.clone()).or_insert(next);
                if number == next {
                    self.system.publishers.push(publisher);
                }
                self.system.publisher_at.add(key, time_ns, number);
                self.system.rmw_publisher_at.add((process, second), time_ns, number);
            }
            Init::SubscriptionCallback => {
                let handle = self.books.subscription_handles.at((process, first), time_ns).copied().unwrap_or(first);
                let Some((node, topic, depth)) = self.books.subscriptions.at((process, handle), time_ns) else {
                    return;
                };
                let (node, depth) = (self.node(process, *node, time_ns), *depth);
                let name = format!("{node} callback {topic}");
                let topic = self.topic(topic);
                let group = self.group(process, handle, &node, time_ns);
                // Within a process a subscription has a second object, which calls back for it, too.
                let same = self.of_subscription.at((process, handle), time_ns).copied();
                if let Some(same) = same.filter(|same| self.is_called(*same, &name)) {
                    self.system.callback_at.add(key, time_ns, same);
                    return;
                }
                let callback = self.callback(fact, Callback { name, node, of: Of::Topic(topic, depth), group });
                self.of_subscription.add((process, handle), time_ns, callback);
            }
            Init::TimerCallback => {
                let node = self.books.timer_nodes.at((process, first), time_ns).copied();
                let node = node.map_or_else(|| self.process(process), |node| self.node(process, node, time_ns));
                let period = self.books.periods.at((process, first), time_ns).copied();
                let name = format!("{node} timer {}", period.map_or("of unknown period".to_owned(), period_words));
                let group = self.group(process, first, &node, time_ns);
                self.callback(fact, Callback { name, node, of: Of::Timer, group });
            }
            Init::ServiceCallback => {
                let Some((node, service)) = self.books.services.at((process, first), time_ns) else { return };
                let (node, service) = (self.node(process, *node, time_ns), service.clone());
                let group = self.group(process, first, &node, time_ns);
                let name = format!("{node} service {service}");
                self.callback(fact, Callback { name, node, of: Of::Service, group });
            }
            _ => {}
        }
    }

    /// Numbers a callback. One that is said again is the same; another of the same name in the same process is not.
    fn callback(&mut self, fact: &Fact, mut callback: Callback) -> u32 {
        let key = (fact.process, fact.address);
        if let Some(known) = self.system.callback_at.at(key, fact.time_ns)
            && self.is_called(*known, &callback.name)
        {
            return *known;
        }
        let alike = self.alike.entry((fact.process, callback.name.clone())).or_default();
        *alike += 1;
        if *alike > 1 {
            callback.name = format!("{} #{alike}", callback.name);
        }
        let next = self.system.callbacks.len() as u32;
        let number = *self.by_name.entry(callback.name.clone()).or_insert(next);
        if number == next {
            self.system.callbacks.push(callback);
        }
        self.system.callback_at.add(key, fact.time_ns, number);
        number
    }

    /// Whether it has that name, or would but for its number.
    fn is_called(&self, callback: u32, name: &str) -> bool {
        let number = self.system.callbacks[callback as usize].name.strip_prefix(name);
        number.is_some_and(|number| number.is_empty() || number.starts_with(" #"))
    }

    fn topic(&mut self, name: &str) -> u32 {
        let next = self.topics.len() as u32;
        let number = *self.topics.entry(name.to_owned()).or_insert(next);
        if number == next {
            self.system.topics.push(name.to_owned());
        }
        number
    }

    fn node(&self, process: u32, node: u64, time_ns: u64) -> String {
        self.books.nodes.at((process, node), time_ns).cloned().unwrap_or_else(|| self.process(process))
    }

    /// For want of a node's name.
    fn process(&self, process: u32) -> String {
        let first = self.threads.iter().find(|thread| thread.process == process);
        first.map_or_else(|| format!("process {process}"), |thread| format!("{}/{}", thread.name, thread.pid))
    }

    fn group(&self, process: u32, handle: u64, node: &str, time_ns: u64) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        match self.books.groups.at((process, handle), time_ns) {
            Some(group) => (process, group).hash(&mut hasher),
            // A node has one group unless it makes others, and the trace says nothing of groups.
            None => (process, node).hash(&mut hasher),
        }
        hasher.finish()
    }
}

fn full_name(namespace: &str, name: &str) -> String {
    format!("{}/{name}", namespace.trim_end_matches('/'))
}

/// "100 ms", "2.5 ms", "1 s".
fn period_words(period_ns: u64) -> String {
    let (unit, name) = match period_ns {
        1_000_000_000.. => (1e9, "s"),
        1_000_000.. => (1e6, "ms"),
        1_000.. => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    let value = format!("{:.3}", period_ns as f64 / unit);
    format!("{} {name}", value.trim_end_matches('0').trim_end_matches('.'))
}

/// A C++ symbol without its parameters: "Node::Node".
fn short_symbol(symbol: &str) -> String {
    let short = symbol.split(['(', '<']).next().unwrap_or(symbol).trim();
    short.rsplit(' ').next().unwrap_or(short).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_it_was_then() {
        let mut book = Book::default();
        book.add((0, 1), 10, "a");
        book.add((0, 1), 20, "b");
        let at = |time_ns| book.at((0, 1), time_ns).copied();
        assert_eq!([at(5), at(10), at(19), at(20), at(99)], [Some("a"), Some("a"), Some("a"), Some("b"), Some("b")]);
        assert_eq!(book.at((1, 1), 10), None);
    }

    #[test]
    fn what_caret_says_late_was_made_when_it_says() {
        assert_eq!(made_ns(500, 1_000, 7), 500, "by the trace's clock");
        assert_eq!(made_ns(1_000_500, 1_000, 1_000_000), 500, "since 1970");
        assert_eq!(made_ns(0, 1_000, 7), 1_000);
        assert_eq!(made_ns(u64::MAX, 1_000, 7), 1_000);
    }

    #[test]
    fn names_are_as_ros_writes_them() {
        assert_eq!((full_name("/", "a"), full_name("/x/y", "a")), ("/a".to_owned(), "/x/y/a".to_owned()));
        let words = [100_000_000, 2_500_000, 1_000_000_000, 33_333_333, 10].map(period_words);
        assert_eq!(words, ["100 ms", "2.5 ms", "1 s", "33.333 ms", "10 ns"]);
        assert_eq!(short_symbol("void Node::cb(std::shared_ptr<X>)"), "Node::cb");
    }
}
