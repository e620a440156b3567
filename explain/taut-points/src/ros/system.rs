//! What there is, by name, and which callback publishes what.
//!
//! It comes before the messages are followed because recordings say late what something is: CARET repeats what was made
//! before its recording began, a second session of ros2_tracing holds it, and a chain can only begin once it is known where
//! it goes.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};
use taut_recording::RosObject;

use super::{
    bare::Bare,
    book::Book,
    events::Events,
    naming,
    seen::{Seen, Send},
};
use crate::scene::Scene;

/// All nodes have them, and no work depends on them: topics, and what services of every node end with.
const LEFT_OUT: [&str; 5] = ["/rosout", "/parameter_events", "/clock", "/statistics", "/tf_static"];
const LEFT_OUT_SERVICES: [&str; 7] = [
    "/describe_parameters",
    "/get_parameter_types",
    "/get_parameters",
    "/get_type_description",
    "/list_parameters",
    "/set_parameters",
    "/set_parameters_atomically",
];

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
    /// Messages of this topic, requests or answers of a service, or runs that are scheduled, which wait in a queue so long; 0:
    /// that is not known.
    Topic(u32, u64),
    /// Of a process that does not say which request it takes.
    Service,
    /// What has no handle of rcl: an event of the middleware, a guard condition.
    Node,
    /// Its making is not in the trace.
    Unknown,
}

/// What goes from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Topic {
    /// Of the topic, or of the service.
    pub name: String,
    pub kind: TopicKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TopicKind {
    Messages,
    /// To a service.
    Requests,
    /// Of a service.
    Answers,
    /// Of a callback, whose name the topic has: it runs later, as a task of its own.
    Runs,
}

impl Topic {
    /// The point at which a node sends it.
    pub fn sent_by(&self, node: &str) -> String {
        let verb = match self.kind {
            TopicKind::Messages => "publish",
            TopicKind::Requests => "request",
            TopicKind::Answers => "answer",
            TopicKind::Runs => return format!("{} scheduled", self.name),
        };
        format!("{node} {verb} {}", self.name)
    }

    /// Whether it is of runs of a task that a program made.
    pub fn is_task(&self) -> bool {
        self.kind == TopicKind::Runs && self.name.contains(" task ")
    }

    /// Whether nodes keep what comes by it, and send it on later: not calls, answers, tasks and what actions are made of.
    pub fn is_data(&self) -> bool {
        self.kind == TopicKind::Messages && !self.name.contains("/_action/")
    }

    /// Whether it is of the use of every node, and no work depends on it.
    fn is_left_out(&self) -> bool {
        match self.kind {
            TopicKind::Messages => LEFT_OUT.contains(&self.name.as_str()) || self.name.contains("/_action/status"),
            TopicKind::Requests | TopicKind::Answers => is_of_every_node(&self.name),
            TopicKind::Runs => is_of_every_node(self.name.trim_end_matches(" answer")),
        }
    }
}

fn is_of_every_node(service: &str) -> bool {
    LEFT_OUT_SERVICES.iter().any(|end| service.ends_with(end))
}

/// One publisher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Publisher {
    pub node: String,
    pub topic: u32,
}

/// What follows from a take for a callback, where no event reports its run right after the take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnTake {
    /// Of an action or a coroutine: an executor may take more before it runs the callback with what it took.
    RunsAsTask,
    /// No event reports it: it begins with the take, or the call, of what it is of.
    Begins,
    /// It does not run: other callbacks take its messages.
    IsReadByOthers,
}

/// Everything known of the system. Callbacks, publishers and topics are numbers of their lists.
#[derive(Default)]
pub(super) struct System {
    pub callbacks: Vec<Callback>,
    /// By callback: the program's function, where it has a name.
    pub functions: HashMap<u32, String>,
    /// Clients and services are publishers, too, of requests and of answers; and so is what schedules a callback.
    pub publishers: Vec<Publisher>,
    pub topics: Vec<Topic>,
    pub callback_at: Book<u32>,
    /// Callback of a timer, by rcl's handle.
    pub timer_at: Book<u32>,
    pub publisher_at: Book<u32>,
    pub rmw_publisher_at: Book<u32>,
    /// Callback of a subscription of the middleware, and of a buffer within a process.
    pub subscriber_at: Book<u32>,
    pub buffer_at: Book<u32>,
    /// Callbacks that have such a buffer.
    pub have_buffers: HashSet<u32>,
    /// By the middleware's client: the requesting callback, what runs when an answer comes, and its gid.
    pub requester_at: Book<u32>,
    pub client_at: Book<u32>,
    pub client_gid_at: Book<u64>,
    /// By the middleware's service: its callback, and the answering one.
    pub service_at: Book<u32>,
    pub answerer_at: Book<u32>,
    /// By a callback that is scheduled: the sender of its runs.
    pub scheduler_at: Book<u32>,
    /// By request: clients' word that they sent one that was taken before.
    pub late_sends: HashMap<i64, Send>,
    /// By callback: its publishers.
    pub publishes: Vec<BTreeSet<u32>>,
    /// By callback that hands its messages to a filter (message_filters): the others whose messages go into one set with them.
    pub partners: HashMap<u32, BTreeSet<u32>>,
    /// By callback, where events do not report each run right after the take.
    pub on_take: HashMap<u32, OnTake>,
    /// By topic: callbacks that ran with its messages.
    pub takers: Vec<BTreeSet<u32>>,
    /// By callback to which what it publishes comes back, by way of others: the first callback of that circle.
    pub circles: HashMap<u32, u32>,
    /// By topic: whether a publisher of it is in the trace.
    pub is_published: Vec<bool>,
    /// Groups that are taken to run one callback at a time, and in which two ran at once.
    pub open_groups: HashSet<u64>,
    /// By thread: all threads of its executor, itself included.
    pub executors: Vec<Vec<u32>>,
    /// By thread: whether it runs callbacks.
    pub runs_callbacks: Vec<bool>,
    /// Processes that say which message they take; and those that say when they take it.
    pub says_which: HashSet<i32>,
    pub says_when: HashSet<i32>,
    /// Services of which no client was found, as they had too many.
    pub too_many_clients: u64,
    /// Whether any says when messages are received.
    pub says_received: bool,
    /// Callbacks and publishers that were made before the trace began.
    pub unknown: u64,
}

impl System {
    /// Finds out all of it.
    pub fn find(mut objects: Vec<RosObject>, events: &Events, scene: &Scene<'_>) -> System {
        objects.sort_by_key(|object| object.time_ns);
        let mut seen = Seen::new(events.threads(), Bare::of(&objects, events));
        events.in_order(scene.clocks, &mut |row| seen.take(&row));
        let mut system = System {
            says_which: std::mem::take(&mut seen.says_which),
            says_when: std::mem::take(&mut seen.says_when),
            says_received: seen.says_received,
            executors: seen.executors(),
            runs_callbacks: std::mem::take(&mut seen.runs_callbacks),
            ..System::default()
        };
        let books = naming::name_all(&mut system, &objects, &seen, scene.objects);
        seen.join(&books, &mut system);
        system.circles = system.circles();
        system
    }

    /// Whether what a callback publishes there comes back to it: there a chain ends, and the next one begins.
    pub fn is_round(&self, callback: u32, publisher: u32) -> bool {
        let circle = self.circles.get(&callback);
        circle.is_some() && self.led_to(publisher).any(|next| self.circles.get(&next) == circle)
    }

    /// The callbacks that lead to each other. Topics are nodes of the graph, too, so that it has no more edges than the trace has pairs.
    fn circles(&self) -> HashMap<u32, u32> {
        let callbacks = self.publishes.len() as u32;
        let topics_of = |publishers: &BTreeSet<u32>| {
            let topics: BTreeSet<u32> = publishers.iter().map(|one| self.publishers[*one as usize].topic).collect();
            topics.into_iter().map(|topic| callbacks + topic).collect::<Vec<u32>>()
        };
        let mut edges: Vec<Vec<u32>> = self.publishes.iter().map(topics_of).collect();
        edges.extend((0..).zip(&self.takers).map(|(topic, takers)| match self.is_followed(topic) {
            true => takers.iter().copied().collect(),
            false => Vec::new(),
        }));
        let mut circles = HashMap::default();
        for mut circle in strongly_connected(&edges) {
            circle.retain(|node| *node < callbacks);
            // A callback that sends to itself alone is no circle.
            if let [first, _, ..] = circle[..] {
                circles.extend(circle.into_iter().map(|callback| (callback, first)));
            }
        }
        circles
    }

    /// Notes that their messages go into one set.
    pub fn join(&mut self, one: u32, other: u32) {
        self.partners.entry(one).or_default().insert(other);
        self.partners.entry(other).or_default().insert(one);
    }

    /// The others whose messages are in the set that is complete when this callback publishes there.
    pub fn partners_in(&self, callback: u32, publisher: u32) -> impl Iterator<Item = u32> {
        let all = self.partners.get(&callback).into_iter().flatten().copied();
        all.filter(move |one| self.publishes[*one as usize].contains(&publisher))
    }

    /// Whether a set is complete when this callback publishes there.
    pub fn completes_set(&self, callback: u32, publisher: u32) -> bool {
        self.partners_in(callback, publisher).next().is_some()
    }

    /// Whether that follows from a take for this callback.
    pub fn on_take_is(&self, callback: u32, what: OnTake) -> bool {
        self.on_take.get(&callback) == Some(&what)
    }

    /// Notes what follows from a take for a callback, if there is one.
    pub fn set_on_take(&mut self, callback: Option<u32>, what: OnTake) {
        self.on_take.extend(callback.map(|callback| (callback, what)));
    }

    /// Whether messages of the topic are followed.
    pub fn is_followed(&self, topic: u32) -> bool {
        !self.topics[topic as usize].is_left_out()
    }

    /// Callbacks that a publish leads to.
    pub fn led_to(&self, publisher: u32) -> impl Iterator<Item = u32> + '_ {
        let topic = self.publishers[publisher as usize].topic;
        let takers = self.is_followed(topic).then(|| self.takers[topic as usize].iter().copied());
        takers.into_iter().flatten()
    }
}

/// Kosaraju's algorithm (M. Sharir, Computers & Mathematics with Applications 7, 1981): sets of nodes that lead to each other.
fn strongly_connected(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, to) in (0..).zip(edges).flat_map(|(from, all)| all.iter().map(move |to| (from, *to))) {
        back[to as usize].push(from);
    }
    let mut left: Vec<u32> = Vec::with_capacity(edges.len());
    let mut is_seen = vec![false; edges.len()];
    for first in 0..edges.len() as u32 {
        depth_first(first, edges, &mut is_seen, &mut left);
    }
    is_seen.fill(false);
    let set = |last: u32| {
        let mut set = Vec::new();
        depth_first(last, &back, &mut is_seen, &mut set);
        set
    };
    left.into_iter().rev().map(set).collect()
}

/// Adds the nodes that can be reached from there and were not seen before, in the order in which they are left.
fn depth_first(first: u32, edges: &[Vec<u32>], is_seen: &mut [bool], left: &mut Vec<u32>) {
    let mut path = Vec::new();
    let mut enter = |node: u32, path: &mut Vec<(u32, usize)>| {
        if !std::mem::replace(&mut is_seen[node as usize], true) {
            path.push((node, 0));
        }
    };
    enter(first, &mut path);
    while let Some((node, tried)) = path.last_mut() {
        match edges[*node as usize].get(*tried) {
            Some(next) => {
                *tried += 1;
                enter(*next, &mut path);
            }
            None => {
                left.push(*node);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 and 1 lead to each other, and so do 2 and 3; 1 leads to 2, and 4 to itself.
    #[test]
    fn a_circle_that_leads_to_another_one_is_not_part_of_it() {
        let steps = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2), (4, 4)];
        let mut system = System { publishes: vec![BTreeSet::new(); 5], ..System::default() };
        for (publisher, (from, to)) in (0..).zip(steps) {
            system.publishes[from].insert(publisher);
            system.publishers.push(Publisher { node: String::new(), topic: publisher });
            system.topics.push(Topic { name: format!("/{publisher}"), kind: TopicKind::Messages });
            system.takers.push(BTreeSet::from([to]));
        }
        system.circles = system.circles();
        let rounds: Vec<bool> =
            (0..).zip(steps).map(|(publisher, (from, _))| system.is_round(from as u32, publisher)).collect();
        assert_eq!(rounds, [true, true, false, true, true, false]);
    }
}
