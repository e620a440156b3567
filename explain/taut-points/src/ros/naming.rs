//! Gives nodes, topics and callbacks their names and numbers.

use std::hash::{DefaultHasher, Hash, Hasher};

use foldhash::{HashMap, HashSet};
use taut_recording::{RosObject, RosObjectKind};
use taut_timelines::Objects;

use super::{
    bare::action_words,
    book::Book,
    seen::{Runs, Seen},
    system::{Callback, Of, OnTake, Publisher, System, Topic, TopicKind},
};

/// Names all objects, which come in order of time.
pub(super) fn name_all(system: &mut System, objects: &[RosObject], seen: &Seen, threads: &Objects) -> Books {
    let mut books = Books::default();
    objects.iter().for_each(|object| books.note(object, seen));
    Naming {
        books: &books,
        system,
        seen,
        processes: threads.first_names(),
        by_name: HashMap::default(),
        topics: HashMap::default(),
        publishers: HashMap::default(),
        alike: HashMap::default(),
        of_subscription: Book::default(),
    }
    .name_all(objects);
    books
}

/// Objects by address.
#[derive(Default)]
pub(super) struct Books {
    nodes: Book<String>,
    /// Of processes with one node: its name.
    only_node: HashMap<i32, String>,
    /// By a node's name: processes that have one at a time.
    namesakes: HashMap<String, Vec<i32>>,
    /// Node, topic and depth of the queue.
    subscriptions: Book<(u64, String, u64)>,
    subscription_handles: Book<u64>,
    /// Node, name, and the middleware's.
    services: Book<(u64, String, u64)>,
    /// By the middleware's: rcl's.
    services_of_rmw: Book<u64>,
    periods: Book<u64>,
    timer_nodes: Book<u64>,
    ipbs: Book<u64>,
    subscriptions_of_ipbs: Book<u64>,
    groups: Book<u64>,
    /// Services and subscriptions of actions, by [`key_of_action`].
    of_actions: Book<u64>,
    /// The middleware's publishers: not all of them are rcl's.
    pub rmw_publishers: HashSet<(i32, u64)>,
    /// Processes whose beginning is in the trace, with all that they made.
    pub whole: HashSet<i32>,
}

impl Books {
    fn note(&mut self, object: &RosObject, seen: &Seen) {
        use RosObjectKind::*;
        let RosObject { time_ns, owner, other, number, ref name, .. } = *object;
        let key = (object.pid, object.handle);
        if matches!(object.kind, Service | Subscription) && name.contains("/_action/") {
            self.of_actions.add(key_of_action(object.pid, owner, name), time_ns, object.handle);
        }
        match object.kind {
            Node => {
                let name = self.only_name(full_name(&object.text, name), object, seen);
                self.note_only_node(object.pid, &name);
                self.nodes.add(key, time_ns, name);
            }
            Subscription => self.subscriptions.add(key, time_ns, (owner, name.clone(), number)),
            SubscriptionObject => self.subscription_handles.add(key, time_ns, owner),
            Service => {
                self.services.add(key, time_ns, (owner, name.clone(), other));
                self.services_of_rmw.add((object.pid, other), time_ns, object.handle);
            }
            Timer => self.periods.add(key, time_ns, number),
            TimerNode => self.timer_nodes.add(key, time_ns, owner),
            BufferOfIpb => self.ipbs.add(key, time_ns, owner),
            IpbOfSubscription => self.subscriptions_of_ipbs.add(key, time_ns, owner),
            GroupOfTimer | GroupOfSubscription => self.groups.add(key, time_ns, owner),
            RmwPublisher => {
                self.rmw_publishers.insert(key);
            }
            Context => {
                self.whole.insert(object.pid);
            }
            _ => {}
        }
    }
}

impl Books {
    fn note_only_node(&mut self, process: i32, name: &str) {
        let only = self.only_node.entry(process).or_insert_with(|| name.to_owned());
        if only.as_str() != name {
            only.clear();
        }
    }

    /// Of two processes that have a node of that name at once the second one's is another node; of one after the other it is the same.
    fn only_name(&mut self, name: String, object: &RosObject, seen: &Seen) -> String {
        let processes = self.namesakes.entry(name.clone()).or_default();
        let is_gone = |process: &i32| seen.is_before(*process, object.pid);
        let own = processes.iter().position(|process| *process == object.pid);
        let at = own.or_else(|| processes.iter().position(is_gone)).unwrap_or(processes.len());
        match processes.get_mut(at) {
            Some(free) => *free = object.pid,
            None => processes.push(object.pid),
        }
        if at > 0 { format!("{name} #{}", at + 1) } else { name }
    }
}

struct Naming<'a> {
    books: &'a Books,
    system: &'a mut System,
    seen: &'a Seen,
    /// Of processes, for want of a node's.
    processes: HashMap<i32, &'a str>,
    by_name: HashMap<String, u32>,
    topics: HashMap<Topic, u32>,
    publishers: HashMap<Publisher, u32>,
    /// Callbacks of one name in a process: what each is of, and since when.
    alike: HashMap<(i32, String), Vec<(u64, u64)>>,
    /// Callback of a subscription, by its handle.
    of_subscription: Book<u32>,
}

impl Naming<'_> {
    fn name_all(mut self, objects: &[RosObject]) {
        for object in objects {
            self.name(object);
        }
        objects.iter().for_each(|object| self.name_bare(object));
        // Symbols name functions, and callbacks of which nothing else is known.
        for object in objects.iter().filter(|object| object.kind == RosObjectKind::CallbackSymbol) {
            let key = (object.pid, object.handle);
            let function = short_symbol(&object.name);
            let callback = match self.system.callback_at.at(key, object.time_ns) {
                Some(callback) => *callback,
                None => {
                    let (name, node) = (format!("callback {function}"), self.process(object.pid));
                    let callback = Callback { name, node, of: Of::Unknown, group: object.handle };
                    self.callback(object, object.handle, callback)
                }
            };
            self.system.functions.entry(callback).or_insert(function);
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
                        self.system.have_buffers.insert(callback);
                    }
                }
                _ => {}
            }
        }
    }

    /// What stands for a callback where none is reported.
    fn name_bare(&mut self, object: &RosObject) {
        let RosObject { time_ns, pid: process, handle, owner, other, number, ref name, .. } = *object;
        let runs = match object.kind {
            RosObjectKind::Timer => Runs::Timer(handle),
            RosObjectKind::Subscription => Runs::Subscription(other),
            _ => Runs::Service(other),
        };
        if !self.seen.is_bare(process, runs) {
            return;
        }
        let node = self.node(process, owner, time_ns);
        let group = hash(&(process, &node));
        let callback = match object.kind {
            RosObjectKind::Timer => {
                let node = self.books.only_node.get(&process).filter(|only| !only.is_empty()).cloned().unwrap_or(node);
                let name = format!("{node} timer {}", period_words(number));
                let callback = self.callback(object, handle, Callback { name, node, of: Of::Timer, group });
                self.system.timer_at.add((process, handle), time_ns, callback);
                Some(callback)
            }
            RosObjectKind::Subscription => {
                let words = action_words(name).unwrap_or_else(|| format!("callback {name}"));
                let of = Of::Topic(self.topic(name, TopicKind::Messages), number);
                let callback = Callback { name: format!("{node} {words}"), node, of, group };
                let callback = self.callback(object, handle, callback);
                self.of_subscription.add((process, handle), time_ns, callback);
                Some(callback)
            }
            RosObjectKind::Service => {
                let words = action_words(name).unwrap_or_else(|| format!("service {name}"));
                self.service(object, handle, &node, format!("{node} {words}"), group)
            }
            _ => None,
        };
        let on_take = if self.seen.is_read(process, other) { OnTake::IsReadByOthers } else { OnTake::Begins };
        self.system.set_on_take(callback, on_take);
    }

    fn buffer(&self, object: &RosObject) -> Option<u32> {
        let at = |book: &Book<u64>, address| book.at((object.pid, address), object.time_ns).copied();
        let subscription = at(&self.books.subscriptions_of_ipbs, object.owner)?;
        let handle = at(&self.books.subscription_handles, subscription).unwrap_or(subscription);
        self.of_subscription.at((object.pid, handle), object.time_ns).copied()
    }

    fn name(&mut self, object: &RosObject) {
        let RosObject { time_ns, pid: process, handle, owner: first, other, .. } = *object;
        let key = (process, handle);
        match object.kind {
            RosObjectKind::Publisher => {
                let node = self.node(process, first, time_ns);
                let number = self.publisher(node, &object.name, TopicKind::Messages);
                self.system.publisher_at.add(key, time_ns, number);
                self.system.rmw_publisher_at.add((process, other), time_ns, number);
            }
            RosObjectKind::SubscriptionCallback => {
                let handle = self.books.subscription_handles.at((process, first), time_ns).copied().unwrap_or(first);
                let Some((node, topic, depth)) = self.books.subscriptions.at((process, handle), time_ns) else {
                    return;
                };
                let (node, depth) = (self.node(process, *node, time_ns), *depth);
                let name = format!("{node} callback {topic}");
                let topic = self.topic(topic, TopicKind::Messages);
                let group = self.group(process, handle, &node, time_ns);
                // Within a process a subscription has a second object, which calls back for it, too.
                let same = self.of_subscription.at((process, handle), time_ns).copied();
                if let Some(same) = same.filter(|same| self.is_called(*same, &name)) {
                    self.system.callback_at.add(key, time_ns, same);
                    return;
                }
                let callback = Callback { name, node, of: Of::Topic(topic, depth), group };
                let callback = self.callback(object, handle, callback);
                self.of_subscription.add((process, handle), time_ns, callback);
            }
            RosObjectKind::TimerCallback => {
                let node = self.books.timer_nodes.at((process, first), time_ns).copied();
                let node = node.map_or_else(|| self.process(process), |node| self.node(process, node, time_ns));
                let period = self.books.periods.at((process, first), time_ns).copied();
                let name = format!("{node} timer {}", period.map_or("of unknown period".to_owned(), period_words));
                let group = self.group(process, first, &node, time_ns);
                let callback = self.callback(object, first, Callback { name, node, of: Of::Timer, group });
                self.system.timer_at.add((process, first), time_ns, callback);
            }
            RosObjectKind::ServiceCallback => {
                // A lifecycle node gives rclcpp copies of rcl's handles.
                let first = match self.books.services.at((process, first), time_ns) {
                    Some(_) => first,
                    None => {
                        let rmw = self.seen.serves.get(&key).copied();
                        let known = rmw.and_then(|rmw| self.books.services_of_rmw.at((process, rmw), time_ns));
                        known.copied().unwrap_or(first)
                    }
                };
                let Some((node, service, _)) = self.books.services.at((process, first), time_ns) else { return };
                let node = self.node(process, *node, time_ns);
                let group = self.group(process, first, &node, time_ns);
                self.service(object, first, &node, format!("{node} service {service}"), group);
            }
            RosObjectKind::Client => {
                let node = self.node(process, first, time_ns);
                let requester = self.publisher(node.clone(), &object.name, TopicKind::Requests);
                self.system.requester_at.add((process, other), time_ns, requester);
                let answers = self.topic(&object.name, TopicKind::Answers);
                let group = self.group(process, handle, &node, time_ns);
                let name = format!("{node} client {}", object.name);
                let callback = Callback { name, node, of: Of::Topic(answers, 0), group };
                let callback = self.callback(object, handle, callback);
                self.system.client_at.add((process, other), time_ns, callback);
            }
            RosObjectKind::NodeCallback => {
                let node = self.node(process, first, time_ns);
                let name = format!("{node} {}", object.name);
                // Which group it is of is not in the trace: it is alone in one.
                let group = handle;
                let of_action = entity_of_action(&object.name).and_then(|entity| {
                    self.books.of_actions.at(key_of_action(process, first, &entity), time_ns).copied()
                });
                match of_action {
                    Some(entity) if object.name.ends_with(" feedback") => {
                        let Some((_, topic, depth)) = self.books.subscriptions.at((process, entity), time_ns) else {
                            return;
                        };
                        let of = Of::Topic(self.topic(topic, TopicKind::Messages), *depth);
                        let callback = self.callback(object, entity, Callback { name, node, of, group });
                        self.system.set_on_take(Some(callback), OnTake::RunsAsTask);
                        self.of_subscription.add((process, entity), time_ns, callback);
                    }
                    Some(entity) => {
                        let callback = self.service(object, entity, &node, name, group);
                        self.system.set_on_take(callback, OnTake::RunsAsTask);
                    }
                    None if self.seen.scheduled.contains(&key) => {
                        let of = Of::Topic(self.topic(&name, TopicKind::Runs), 0);
                        let scheduler = self.publisher(node.clone(), &name, TopicKind::Runs);
                        self.system.scheduler_at.add(key, time_ns, scheduler);
                        self.callback(object, handle, Callback { name, node, of, group });
                    }
                    None => _ = self.callback(object, handle, Callback { name, node, of: Of::Node, group }),
                }
            }
            RosObjectKind::RmwClient => self.system.client_gid_at.add(key, time_ns, object.number),
            _ => {}
        }
    }

    /// A callback that serves requests of rcl's service `handle`.
    fn service(&mut self, object: &RosObject, handle: u64, node: &str, name: String, group: u64) -> Option<u32> {
        let (process, time_ns) = (object.pid, object.time_ns);
        let (_, service, rmw) = self.books.services.at((process, handle), time_ns)?;
        let of = match self.seen.says_request.contains(&process) {
            true => Of::Topic(self.topic(service, TopicKind::Requests), 0),
            false => Of::Service,
        };
        let callback = self.callback(object, handle, Callback { name, node: node.to_owned(), of, group });
        self.system.service_at.add((process, *rmw), time_ns, callback);
        let answerer = self.publisher(node.to_owned(), service, TopicKind::Answers);
        self.system.answerer_at.add((process, *rmw), time_ns, answerer);
        Some(callback)
    }

    fn publisher(&mut self, node: String, topic: &str, kind: TopicKind) -> u32 {
        let publisher = Publisher { node, topic: self.topic(topic, kind) };
        let next = self.publishers.len() as u32;
        let number = *self.publishers.entry(publisher.clone()).or_insert(next);
        if number == next {
            self.system.publishers.push(publisher);
        }
        number
    }

    /// Numbers a callback of `of`. One that is recorded again is the same, and so is one whose namesake has gone; another of the same
    /// name in the same process is not.
    fn callback(&mut self, object: &RosObject, of: u64, mut callback: Callback) -> u32 {
        let (key, time_ns) = ((object.pid, object.handle), object.time_ns);
        if let Some(known) = self.system.callback_at.at(key, time_ns)
            && self.is_called(*known, &callback.name)
        {
            return *known;
        }
        let alike = self.alike.entry((object.pid, callback.name.clone())).or_default();
        let gone = &self.seen.gone;
        let is_free = |(other, since_ns): &(u64, u64)| {
            let went = gone.get(&(object.pid, *other)).into_iter().flatten();
            *other == of || went.into_iter().any(|went_ns| (*since_ns..=time_ns).contains(went_ns))
        };
        let at = alike.iter().position(is_free).unwrap_or(alike.len());
        match alike.get_mut(at) {
            Some(free) => *free = (of, time_ns),
            None => alike.push((of, time_ns)),
        }
        if at > 0 {
            callback.name = format!("{} #{}", callback.name, at + 1);
        }
        let next = self.system.callbacks.len() as u32;
        let number = *self.by_name.entry(callback.name.clone()).or_insert(next);
        if number == next {
            self.system.callbacks.push(callback);
        }
        self.system.callback_at.add(key, time_ns, number);
        number
    }

    /// Whether it has that name, or would but for its number.
    fn is_called(&self, callback: u32, name: &str) -> bool {
        let number = self.system.callbacks[callback as usize].name.strip_prefix(name);
        number.is_some_and(|number| number.is_empty() || number.starts_with(" #"))
    }

    fn topic(&mut self, name: &str, kind: TopicKind) -> u32 {
        let topic = Topic { name: name.to_owned(), kind };
        let next = self.topics.len() as u32;
        let number = *self.topics.entry(topic.clone()).or_insert(next);
        if number == next {
            self.system.topics.push(topic);
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
        match self.books.groups.at((process, handle), time_ns) {
            Some(group) => hash(&(process, group)),
            // A node has one group unless it makes others, and the trace says nothing of groups.
            None => hash(&(process, node)),
        }
    }
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The key of what is of that name in a node, by rcl's handle of the node.
fn key_of_action(process: i32, node: u64, name: &str) -> (i32, u64) {
    (process, hash(&(node, name)))
}

/// The service or topic whose messages an action's callback has ("action /turn goal"), where it has any.
fn entity_of_action(callback: &str) -> Option<String> {
    let (action, what) = callback.strip_prefix("action ")?.split_once(' ')?;
    let entity = match what {
        "goal" => "send_goal",
        "cancel" => "cancel_goal",
        "get result" => "get_result",
        "feedback" => "feedback",
        _ => return None,
    };
    Some(format!("{action}/_action/{entity}"))
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

/// What rclcpp or rclpy calls a callback, without parameters: "Node::on_image"; "Node::Node lambda #2" of a lambda by the function that
/// it is in; "Node bind" of `std::bind`, whose type has the class and not the function.
fn short_symbol(symbol: &str) -> String {
    // Of Python: "module.function.<locals>.<lambda>".
    let symbol = symbol.strip_prefix("__main__.").unwrap_or(symbol);
    if ["<lambda>", ".<locals>."].iter().any(|part| symbol.contains(part)) {
        return symbol.to_owned();
    }
    if let Some(bound) = symbol.strip_prefix("std::_Bind<") {
        let class = bound.split_once("::*").map_or("", |(before, _)| before);
        let class = class.rsplit(['(', ' ']).next().unwrap_or(class);
        return format!("{class} bind").trim_start().to_owned();
    }
    if let Some((function, lambda)) = symbol.split_once("::{lambda(") {
        let number = lambda.rsplit('#').next().unwrap_or(lambda).trim_end_matches('}');
        return format!("{} lambda #{number}", short_symbol(function));
    }
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
        // As rclcpp of Kilted gives them.
        let bound =
            "std::_Bind<void (proof::Detector::*(proof::Detector*, std::_Placeholder<1>))(std::shared_ptr<X const>)>";
        assert_eq!(short_symbol(bound), "proof::Detector bind");
        assert_eq!(short_symbol("std::_Bind<void (*(int))(int)>"), "bind");
        let lambda = "proof::Camera::Camera(rclcpp::NodeOptions const&)::{lambda(std::unique_ptr<X, std::default_delete<X> >)#2}";
        assert_eq!(short_symbol(lambda), "proof::Camera::Camera lambda #2");
    }
}
