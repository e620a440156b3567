//! Which chains there are: from every callback or publish that begins something, all ways on through publishes and the
//! callbacks that they lead to.
//!
//! A callback that publishes nothing but keeps what it got, beside another of the same node that publishes: there the
//! chain goes on when that other one next publishes, with the newest that was kept (`use_latest_message` in CARET's words).
//! So a chain is what a datum goes through until something comes of it, and its end to end the reaction time.

use std::rc::Rc;

use foldhash::HashMap;

use super::system::{Of, OnTake, System, Topic, TopicKind};

/// Chains that begin at one place, and all.
const MOST_OF_ROOT: usize = 64;
const MOST: usize = 512;
/// Callbacks of a chain.
const MOST_HOPS: usize = 48;

/// Where chains begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Root {
    /// A timer, a service, or messages that come from outside.
    Callback(u32),
    /// A publish outside callbacks, as of a driver's own thread; or one more of the same callback.
    Publisher(u32),
}

/// One chain.
#[derive(Debug)]
pub(super) struct Chain {
    pub name: String,
    pub hops: Vec<Hop>,
    /// Whether anything is kept on the way: then a result can be older than the last input.
    pub keeps: bool,
}

/// One callback's part, with the numbers of its points' names; 0 where it has none.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    /// `None`: a publish outside callbacks.
    pub callback: Option<u32>,
    pub exit: Exit,
    /// The middleware has the message; it is taken; the callback begins; the set is complete that it goes into; it is published, or the
    /// callback ends.
    pub receive: u32,
    pub take: u32,
    pub start: u32,
    pub join: u32,
    pub out: u32,
}

/// How a chain leaves a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Publish(u32),
    /// Kept for the next callback of the chain.
    Kept,
    /// The chain ends with the callback.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Begins,
    Taken,
    Used,
}

type Draft = Vec<(Option<u32>, Entry, Exit)>;

/// All chains, found when something begins one.
#[derive(Default)]
pub(super) struct Chains {
    pub all: Vec<Chain>,
    by_root: HashMap<Root, Rc<[u32]>>,
    /// For each callback: chains that go on in it with what was kept, and the hop where they do.
    pub used_by: HashMap<u32, Vec<(u32, u16)>>,
    /// Names of points, by number from 1. Two chains' points may be called the same and are not.
    pub names: Vec<String>,
    /// Places where chains were left out because there are too many.
    pub cut: u64,
}

impl Chains {
    /// Chains that begin there.
    pub fn of(&mut self, root: Root, system: &System) -> Rc<[u32]> {
        if let Some(known) = self.by_root.get(&root) {
            return known.clone();
        }
        let first = self.all.len() as u32;
        for draft in self.drafts(root, system) {
            self.add(&draft, system);
        }
        let chains: Rc<[u32]> = (first..self.all.len() as u32).collect();
        self.by_root.insert(root, chains.clone());
        chains
    }

    /// Number of a name; each call gives another.
    pub fn point(&mut self, name: String) -> u32 {
        self.names.push(name);
        self.names.len() as u32
    }

    fn drafts(&mut self, root: Root, system: &System) -> Vec<Draft> {
        let room = MOST_OF_ROOT.min(MOST.saturating_sub(self.all.len()));
        let follow = |kept| {
            let mut walk = Walk { system, kept, room, found: Vec::new(), path: Vec::new(), is_cut: false };
            match root {
                Root::Callback(callback) => walk.callback(callback, Entry::Begins),
                Root::Publisher(publisher) => {
                    walk.publish(None, Entry::Begins, publisher);
                }
            }
            walk
        };
        // Everything that is kept may go into everything that is published: where that is too much, causes alone count.
        let mut walk = follow(true);
        if walk.is_cut {
            self.cut += 1;
            walk = follow(false);
        }
        walk.found.truncate(room);
        walk.found
    }

    fn add(&mut self, draft: &Draft, system: &System) {
        let chain = self.all.len() as u32;
        let mut hops = Vec::with_capacity(draft.len());
        for (at, (callback, entry, exit)) in draft.iter().enumerate() {
            let callback = *callback;
            let of = callback.map(|callback| &system.callbacks[callback as usize]);
            let name = of.map_or(String::new(), |of| of.name.clone());
            let (mut receive, mut take, mut start, mut join) = (0, 0, 0, 0);
            // What another callback takes goes on in that one, which began before.
            let is_read =
                |callback: Option<u32>| callback.is_some_and(|of| system.on_take_is(of, OnTake::IsReadByOthers));
            let is_begun = *entry == Entry::Used && is_read(draft[at - 1].0);
            if let (Entry::Taken, Some(of)) = (entry, of)
                && let Of::Topic(topic, _) = of.of
            {
                let Topic { name: topic, kind } = &system.topics[topic as usize];
                if system.says_received && *kind == TopicKind::Messages {
                    receive = self.point(format!("{} receive {topic}", of.node));
                }
                if !system.says_when.is_empty() && *kind != TopicKind::Runs {
                    take = self.point(format!("{} take {topic}", of.node));
                }
            }
            if callback.is_some() && !is_read(callback) && !is_begun {
                start = self.point(name.clone());
            }
            if let (Entry::Taken, Some(of), Exit::Publish(publisher)) = (entry, of, exit)
                && let Of::Topic(topic, _) = of.of
                && system.topics[system.publishers[*publisher as usize].topic as usize].is_data()
                && callback.is_some_and(|callback| system.completes_set(callback, *publisher))
            {
                join = self.point(format!("{} join {}", of.node, system.topics[topic as usize].name));
            }
            let out = match exit {
                Exit::Publish(publisher) => {
                    let publisher = &system.publishers[*publisher as usize];
                    system.topics[publisher.topic as usize].sent_by(&publisher.node)
                }
                Exit::Kept | Exit::Done => format!("{name} end"),
            };
            let out = match exit {
                Exit::Kept if is_read(callback) => 0,
                Exit::Done if is_read(callback) => std::mem::take(&mut take),
                _ => self.point(out),
            };
            if *entry == Entry::Used
                && let Some(callback) = callback
            {
                self.used_by.entry(callback).or_default().push((chain, at as u16));
            }
            hops.push(Hop { callback, exit: *exit, receive, take, start, join, out });
        }
        let first = hops.first().map_or(0, |hop| if hop.start == 0 { hop.out } else { hop.start });
        let last = hops.last().map_or(0, |hop| hop.out);
        let name = format!("{} → {}", self.names[first as usize - 1], self.names[last as usize - 1]);
        // Where two ways lead from one place to another, the last point says which it is.
        if self.all.iter().any(|known| known.name == name) {
            let publishes = hops.iter().filter_map(|hop| match hop.exit {
                Exit::Publish(publisher) => Some(system.publishers[publisher as usize].topic),
                _ => None,
            });
            let by: Vec<&str> = publishes.map(|topic| system.topics[topic as usize].name.as_str()).collect();
            self.names[last as usize - 1] += &format!(" by {}", by.join(", "));
        }
        let name = format!("{} → {}", self.names[first as usize - 1], self.names[last as usize - 1]);
        let keeps = hops.iter().any(|hop| hop.exit == Exit::Kept);
        self.all.push(Chain { name, hops, keeps });
    }
}

/// All ways on from one place.
struct Walk<'a> {
    system: &'a System,
    /// Whether to go on with what is kept.
    kept: bool,
    room: usize,
    found: Vec<Draft>,
    path: Draft,
    is_cut: bool,
}

impl<'a> Walk<'a> {
    fn callback(&mut self, callback: u32, entry: Entry) {
        if self.found.len() >= self.room || self.path.len() >= MOST_HOPS {
            self.is_cut = true;
            return;
        }
        let mut goes_on = self.publishes(callback, entry);
        let system = self.system;
        let of = &system.callbacks[callback as usize];
        let is_data = matches!(of.of, Of::Topic(topic, _) if system.topics[topic as usize].is_data());
        let keeps = self.kept && is_data && self.publishes_nothing(callback);
        if !goes_on && keeps {
            for (other, of_other) in system.callbacks.iter().enumerate() {
                let other = other as u32;
                if other != callback && of_other.node == of.node && !self.is_on(other) {
                    self.path.push((Some(callback), entry, Exit::Kept));
                    goes_on |= self.publishes(other, Entry::Used);
                    self.path.pop();
                }
            }
        }
        if !goes_on {
            self.path.push((Some(callback), entry, Exit::Done));
            self.found.push(self.path.clone());
            self.path.pop();
        }
    }

    /// On through what the callback publishes; whether there is any way.
    fn publishes(&mut self, callback: u32, entry: Entry) -> bool {
        let mut goes_on = false;
        for publisher in &self.system.publishes[callback as usize] {
            // What is kept goes into what a node publishes, and not into its calls and answers.
            let topic = self.system.publishers[*publisher as usize].topic as usize;
            if entry == Entry::Used && !self.system.topics[topic].is_data() {
                continue;
            }
            let goes = self.publish(Some(callback), entry, *publisher);
            // A task is beside the callback that made it, which may await it and ends by itself.
            goes_on |= goes && !self.system.topics[topic].is_task();
        }
        goes_on
    }

    fn publish(&mut self, callback: Option<u32>, entry: Entry, publisher: u32) -> bool {
        let mut goes_on = false;
        let asker = self.asker(publisher);
        for taker in self.system.led_to(publisher) {
            // A chain that comes back to itself ends there.
            if Some(taker) == callback || self.is_on(taker) {
                continue;
            }
            if asker.is_some_and(|node| *node != self.system.callbacks[taker as usize].node) {
                continue;
            }
            goes_on = true;
            self.path.push((callback, entry, Exit::Publish(publisher)));
            self.callback(taker, Entry::Taken);
            self.path.pop();
        }
        goes_on
    }

    /// The node whose request on the way here is answered by this: the answer comes to no other one.
    fn asker(&self, answerer: u32) -> Option<&'a str> {
        let system = self.system;
        let topic = |publisher: u32| &system.topics[system.publishers[publisher as usize].topic as usize];
        let service = Some(topic(answerer)).filter(|topic| topic.kind == TopicKind::Answers)?;
        let mut publishers = self.path.iter().rev().filter_map(|(.., exit)| match exit {
            Exit::Publish(publisher) => Some(*publisher),
            _ => None,
        });
        let asks =
            |publisher: &u32| topic(*publisher).kind == TopicKind::Requests && topic(*publisher).name == service.name;
        publishers.find(asks).map(|requester| system.publishers[requester as usize].node.as_str())
    }

    fn publishes_nothing(&self, callback: u32) -> bool {
        let publishes = &self.system.publishes[callback as usize];
        !publishes.iter().any(|p| self.system.is_followed(self.system.publishers[*p as usize].topic))
    }

    fn is_on(&self, callback: u32) -> bool {
        self.path.iter().any(|(on, ..)| *on == Some(callback))
    }
}
