//! What there is, by name, and which callback publishes what.
//!
//! It comes before the messages are followed because recordings say late what something is: CARET repeats what was made
//! before its recording began, a second session of ros2_tracing holds it, and a chain can only begin once it is known where
//! it goes.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};
use taut_recording::{RosEvent, RosObject, RosObjectKind};
use taut_timelines::Objects;

use super::{
    book::Book,
    events::{Events, Row},
};
use crate::scene::Scene;

/// Pairs of callback and publisher: a trace of noise must not fill the memory.
const MOST_PAIRS: usize = 1 << 20;
/// All nodes have them, and no work depends on them.
const LEFT_OUT: [&str; 3] = ["/rosout", "/parameter_events", "/clock"];
/// Callbacks in callbacks.
const MOST_NESTED: usize = 64;

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
    pub says_which: HashSet<i32>,
    pub says_when: HashSet<i32>,
    /// Callbacks and publishers that were made before the trace began.
    pub unknown: u64,
}

impl System {
    /// Finds out all of it.
    pub fn find(mut objects: Vec<RosObject>, events: &Events, scene: &Scene<'_>) -> System {
        objects.sort_by_key(|object| object.time_ns);
        let mut seen = Seen { stacks: vec![Vec::new(); events.threads()], ..Seen::default() };
        events.in_order(scene.clocks, &mut |row| seen.take(&row));
        let mut books = Books::default();
        objects.iter().for_each(|object| books.note(object));
        let mut system = System {
            says_which: std::mem::take(&mut seen.says_which),
            says_when: std::mem::take(&mut seen.says_when),
            ..System::default()
        };
        Naming::new(&books, &mut system, scene.objects).name_all(&objects);
        seen.join(&mut system);
        system
    }

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

/// What the events say of who runs, publishes and takes.
#[derive(Default)]
struct Seen {
    /// By thread: callbacks that it is in.
    stacks: Vec<Vec<u64>>,
    /// (process, callback, publisher or its middleware's, which of both) with when it was first seen.
    publishes: HashMap<(i32, u64, u64, bool), u64>,
    /// Callbacks that ran, and when first.
    ran: HashMap<(i32, u64), u64>,
    published: HashMap<(i32, u64, bool), u64>,
    says_which: HashSet<i32>,
    says_when: HashSet<i32>,
}

impl Seen {
    fn take(&mut self, row: &Row) {
        let Row { time_ns, pid, event, handle, .. } = *row;
        let stack = &mut self.stacks[row.thread as usize];
        match event {
            RosEvent::CallbackStart => {
                stack.push(handle);
                // One that never ends is left at the bottom.
                if stack.len() > MOST_NESTED {
                    stack.remove(0);
                }
                if self.ran.len() < MOST_PAIRS {
                    self.ran.entry((pid, handle)).or_insert(time_ns);
                }
            }
            RosEvent::CallbackEnd => {
                if let Some(at) = stack.iter().rposition(|callback| *callback == handle) {
                    stack.truncate(at);
                }
            }
            RosEvent::RclcppPublish | RosEvent::RclPublish | RosEvent::RmwPublish | RosEvent::IntraPublish
                if handle != 0 =>
            {
                let is_rmw = event == RosEvent::RmwPublish;
                if self.published.len() < MOST_PAIRS {
                    self.published.entry((pid, handle, is_rmw)).or_insert(time_ns);
                }
                if let Some(callback) = stack.last()
                    && self.publishes.len() < MOST_PAIRS
                {
                    self.publishes.entry((pid, *callback, handle, is_rmw)).or_insert(time_ns);
                }
            }
            RosEvent::Take => {
                self.says_when.insert(pid);
                if row.args[1] != 0 {
                    self.says_which.insert(pid);
                }
            }
            RosEvent::Dispatch => {
                self.says_which.insert(pid);
            }
            _ => {}
        }
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

/// Objects by address.
#[derive(Default)]
struct Books {
    nodes: Book<String>,
    /// Node, topic and depth of the queue.
    subscriptions: Book<(u64, String, u64)>,
    subscription_handles: Book<u64>,
    services: Book<(u64, String)>,
    periods: Book<u64>,
    timer_nodes: Book<u64>,
    ipbs: Book<u64>,
    subscriptions_of_ipbs: Book<u64>,
    groups: Book<u64>,
}

impl Books {
    fn note(&mut self, object: &RosObject) {
        use RosObjectKind::*;
        let RosObject { time_ns, owner, number, ref name, .. } = *object;
        let key = (object.pid, object.handle);
        match object.kind {
            Node => self.nodes.add(key, time_ns, full_name(&object.text, name)),
            Subscription => self.subscriptions.add(key, time_ns, (owner, name.clone(), number)),
            SubscriptionObject => self.subscription_handles.add(key, time_ns, owner),
            Service => self.services.add(key, time_ns, (owner, name.clone())),
            Timer => self.periods.add(key, time_ns, number),
            TimerNode => self.timer_nodes.add(key, time_ns, owner),
            BufferOfIpb => self.ipbs.add(key, time_ns, owner),
            IpbOfSubscription => self.subscriptions_of_ipbs.add(key, time_ns, owner),
            GroupOfTimer | GroupOfSubscription => self.groups.add(key, time_ns, owner),
            _ => {}
        }
    }
}

/// Gives everything its name and number.
struct Naming<'a> {
    books: &'a Books,
    system: &'a mut System,
    /// Of processes, for want of a node's.
    processes: HashMap<i32, &'a str>,
    by_name: HashMap<String, u32>,
    topics: HashMap<String, u32>,
    publishers: HashMap<Publisher, u32>,
    /// How many callbacks of one name a process has.
    alike: HashMap<(i32, String), u32>,
    /// Callback of a subscription, by its handle.
    of_subscription: Book<u32>,
}

impl<'a> Naming<'a> {
    fn new(books: &'a Books, system: &'a mut System, objects: &'a Objects) -> Naming<'a> {
        Naming {
            books,
            system,
            processes: objects.first_names(),
            by_name: HashMap::default(),
            topics: HashMap::default(),
            publishers: HashMap::default(),
            alike: HashMap::default(),
            of_subscription: Book::default(),
        }
    }

    fn name_all(mut self, objects: &[RosObject]) {
        for object in objects {
            self.name(object);
        }
        // Symbols name callbacks of which nothing else is known.
        for object in objects.iter().filter(|object| object.kind == RosObjectKind::CallbackSymbol) {
            let key = (object.pid, object.handle);
            if self.system.callback_at.at(key, object.time_ns).is_none() {
                let name = format!("callback {}", short_symbol(&object.name));
                let callback = Callback { name, node: self.process(object.pid), of: Of::Unknown, group: object.handle };
                self.callback(object, callback);
            }
        }
        // What the middleware and buffers call a subscription leads to its callback.
        for object in objects {
            let (key, time_ns) = ((object.pid, object.handle), object.time_ns);
            match object.kind {
                RosObjectKind::Subscription => {
                    if let Some(callback) = self.of_subscription.at(key, time_ns) {
                        self.system.subscriber_at.add((object.pid, object.other), time_ns, *callback);
                    }
                }
                RosObjectKind::BufferOfIpb => {
                    if let Some(callback) = self.buffer(object) {
                        self.system.buffer_at.add(key, time_ns, callback);
                    }
                }
                _ => {}
            }
        }
    }

    fn buffer(&self, object: &RosObject) -> Option<u32> {
        let at = |book: &Book<u64>, address| book.at((object.pid, address), object.time_ns).copied();
        let subscription = at(&self.books.subscriptions_of_ipbs, object.owner)?;
        let handle = at(&self.books.subscription_handles, subscription).unwrap_or(subscription);
        self.of_subscription.at((object.pid, handle), object.time_ns).copied()
    }

    fn name(&mut self, object: &RosObject) {
        let RosObject { time_ns, pid: process, handle, owner: first, .. } = *object;
        let key = (process, handle);
        match object.kind {
            RosObjectKind::Publisher => {
                let node = self.node(process, first, time_ns);
                let topic = self.topic(&object.name);
                let next = self.publishers.len() as u32;
                let publisher = Publisher { node, topic };
                let number = *self.publishers.entry(publisher.clone()).or_insert(next);
                if number == next {
                    self.system.publishers.push(publisher);
                }
                self.system.publisher_at.add(key, time_ns, number);
                self.system.rmw_publisher_at.add((process, object.other), time_ns, number);
            }
            RosObjectKind::SubscriptionCallback => {
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
                let callback = self.callback(object, Callback { name, node, of: Of::Topic(topic, depth), group });
                self.of_subscription.add((process, handle), time_ns, callback);
            }
            RosObjectKind::TimerCallback => {
                let node = self.books.timer_nodes.at((process, first), time_ns).copied();
                let node = node.map_or_else(|| self.process(process), |node| self.node(process, node, time_ns));
                let period = self.books.periods.at((process, first), time_ns).copied();
                let name = format!("{node} timer {}", period.map_or("of unknown period".to_owned(), period_words));
                let group = self.group(process, first, &node, time_ns);
                self.callback(object, Callback { name, node, of: Of::Timer, group });
            }
            RosObjectKind::ServiceCallback => {
                let Some((node, service)) = self.books.services.at((process, first), time_ns) else { return };
                let (node, service) = (self.node(process, *node, time_ns), service.clone());
                let group = self.group(process, first, &node, time_ns);
                let name = format!("{node} service {service}");
                self.callback(object, Callback { name, node, of: Of::Service, group });
            }
            _ => {}
        }
    }

    /// Numbers a callback. One that is said again is the same; another of the same name in the same process is not.
    fn callback(&mut self, object: &RosObject, mut callback: Callback) -> u32 {
        let key = (object.pid, object.handle);
        if let Some(known) = self.system.callback_at.at(key, object.time_ns)
            && self.is_called(*known, &callback.name)
        {
            return *known;
        }
        let alike = self.alike.entry((object.pid, callback.name.clone())).or_default();
        *alike += 1;
        if *alike > 1 {
            callback.name = format!("{} #{alike}", callback.name);
        }
        let next = self.system.callbacks.len() as u32;
        let number = *self.by_name.entry(callback.name.clone()).or_insert(next);
        if number == next {
            self.system.callbacks.push(callback);
        }
        self.system.callback_at.add(key, object.time_ns, number);
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

    fn node(&self, process: i32, node: u64, time_ns: u64) -> String {
        self.books.nodes.at((process, node), time_ns).cloned().unwrap_or_else(|| self.process(process))
    }

    /// For want of a node's name.
    fn process(&self, process: i32) -> String {
        let name = self.processes.get(&process);
        name.map_or_else(|| format!("process {process}"), |name| format!("{name}/{process}"))
    }

    fn group(&self, process: i32, handle: u64, node: &str, time_ns: u64) -> u64 {
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
    fn names_are_as_ros_writes_them() {
        assert_eq!((full_name("/", "a"), full_name("/x/y", "a")), ("/a".to_owned(), "/x/y/a".to_owned()));
        let words = [100_000_000, 2_500_000, 1_000_000_000, 33_333_333, 10].map(period_words);
        assert_eq!(words, ["100 ms", "2.5 ms", "1 s", "33.333 ms", "10 ns"]);
        assert_eq!(short_symbol("void Node::cb(std::shared_ptr<X>)"), "Node::cb");
    }
}
