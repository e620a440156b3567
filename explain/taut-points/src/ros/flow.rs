//! Messages followed along their chains, with a pass at each point.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
};

use foldhash::{HashMap, HashSet};
use hdrhistogram::Histogram as Hdr;
use taut_recording::{Histogram, RosEvent, host_numbers::host_of};

use super::{
    chains::{Chains, Exit, Root},
    events::{Events, FILTERED, INTRA, MOST_NESTED, RESUMED, Row, SCHEDULED, SUSPENDED},
    executors::Executors,
    figures::Tally,
    queues::{self, By, Lost, Message, Publish, Queue},
    seen::{self, Send, request_key},
    stamped::Stamped,
    system::{Of, OnTake, System, TopicKind},
};
use crate::{
    hold::{HeldBy, Hold},
    linked::{Linked, Value},
    point::{NO_THREAD, Pass, PointId},
    scene::Scene,
};

/// Nothing waits so shortly before the end that it must be lost.
const IN_FLIGHT_NS: u64 = 100_000_000;
/// Buffers' places that are remembered.
const MOST_PLACES: usize = 1 << 16;
/// Subscriptions that have a note of their own.
const MOST_NOTES: usize = 4;
/// Names of chains, points and values have at most so many bytes, as those in recordings.
const NAME_BYTES: usize = 119;
/// Messages of a callback that may wait in a filter: its queue may be long.
const MOST_FILTERED: usize = 1 << 10;
/// Coroutines that are suspended, and requests that are not answered.
const MOST_OPEN: usize = 1 << 16;
/// Numbers of messages in a stretch of a stream begin here; each moment has room for so many, as a power of two.
const STRETCH_IDS: u64 = 1 << 62;
const BRANCH_BITS: u32 = 6;
/// A timer's own clock is one of the machine's if both say the same moment up to this; else it is simulated.
const SAME_CLOCK_NS: i128 = 1_000_000_000;

/// A callback that runs.
#[derive(Default)]
struct Running {
    /// As the trace has it, and by number where it is known.
    address: u64,
    callback: Option<u32>,
    start_ns: u64,
    /// What the steps took before which it was suspended, and which coroutine it is then.
    spent_ns: u64,
    coroutine: Option<u64>,
    /// What a client does with an answer: it has no end of its own but the last thing that it did.
    is_answer: bool,
    last_ns: u64,
    /// No event reports it: it ends when its thread waits or takes again.
    is_bare: bool,
    /// The request that it serves.
    request: Option<i64>,
    carried: Vec<Message>,
    published: Vec<u32>,
    /// Points that the program stamped in it.
    stamped: Vec<PointId>,
    /// Which run of its callback it is, where that hands its messages to a filter and says so.
    filtered: Option<u64>,
    /// It completed a set; and perhaps with an earlier message of its topic in the place of its own.
    has_completed: bool,
    may_wait_on: bool,
}

/// The layers that say one publish, in the order in which they do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Within the process.
    Intra,
    Rclcpp,
    Rcl,
    Rmw,
}

/// The publish that a thread is in.
#[derive(Clone, Copy)]
struct Open {
    publisher: u32,
    topic: u32,
    number: u64,
    said_by: Layer,
}

/// What a thread took and will call back with.
struct Arrived {
    callback: u32,
    taken_ns: u64,
    /// Since when it could have been called.
    ready_ns: u64,
    /// 0 where it is not known.
    published_ns: u64,
    /// Source timestamp, and when that was taken; 0 where they are not known.
    stamp: i64,
    stamped_ns: u64,
    request: Option<i64>,
    messages: Vec<Message>,
}

/// What a thread took from the middleware for a subscription that has a buffer within the process, too: rclcpp drops what it has got by
/// that, so it is a message if the callback begins with it.
struct Taken {
    callback: u32,
    time_ns: u64,
    stamp: i64,
    /// When the middleware received it, and said so.
    received: Option<i64>,
}

/// What a callback handed to a filter, which waits there for those of other topics.
struct Filtered {
    run: Option<u64>,
    since_ns: u64,
    thread: u32,
    messages: Vec<Message>,
}

/// What waits in a filter, the oldest first. Without numbers of runs it is what may wait there, and what has gone on has no messages.
#[derive(Default)]
struct Filter {
    waiting: VecDeque<Filtered>,
    longest_ns: u64,
}

/// What came with an answer whose callback is not scheduled yet.
struct Answered {
    time_ns: u64,
    messages: Vec<Message>,
}

/// What one thread is doing.
#[derive(Default)]
struct Doing {
    running: Vec<Running>,
    open: Option<Open>,
    /// rclcpp's publish, until rcl says of which publisher it is: when, and of which message.
    begun: Option<(u64, u64)>,
    arrived: Option<Arrived>,
    taken: Option<Taken>,
    /// What the callback that runs took by itself, of the subscription with this callback, and when.
    read: Option<(u32, u64)>,
    /// The callback that begins with that, since no event will report it, and since when.
    pending: Option<(u32, u64)>,
    /// Whether it has been outside callbacks, or at the begin or end of one.
    is_known: bool,
}

/// A timer was called whose callback did not begin yet.
struct Called {
    thread: u32,
    due_ns: u64,
}

/// How old the results of a chain are, over all results.
struct Ages {
    of_ns: Hdr<u64>,
    /// Number of the name of the value that says it of each.
    signal: u32,
}

/// What was counted on the way.
#[derive(Default)]
struct Counts {
    by_order: u64,
    by_time: u64,
    /// Stamps in callbacks at a point that the same run of the callback had stamped before.
    stamped_again: u64,
    /// Sets that were complete while several messages of one topic waited, by topic.
    several: u64,
    /// By callback: messages that were published before its subscription knew of the publisher, or after it was gone.
    unheard: BTreeMap<Option<u32>, u64>,
    /// By callback that did not end: messages that were published after its process was last heard of.
    stuck: BTreeMap<u32, u64>,
    /// Takes of topics that are published in the recording, while the publish is not there.
    unmatched: u64,
    /// By chain, of those that keep something on the way.
    ages: BTreeMap<u32, Ages>,
}

/// Everything that is under way.
pub(super) struct Flow<'a> {
    system: &'a System,
    events: &'a Events,
    out: &'a mut Linked,
    chains: Chains,
    /// By thread.
    doing: Vec<Doing>,
    queues: Vec<Queue>,
    /// By chain and hop: the newest that is kept there, and since when.
    kept: HashMap<(u32, u16), (Message, u64)>,
    /// By process and callback that hands its messages to a filter.
    filters: BTreeMap<(i32, u32), Filter>,
    executors: Executors<'a>,
    /// By process and callback of a timer, the oldest first: an executor may run it on another thread than that which calls it.
    called: HashMap<(i32, u32), VecDeque<Called>>,
    stamped: Stamped,
    /// Number of the name that a stamped point has in a chain's hop.
    stamped_points: HashMap<(u32, u16, PointId), u32>,
    /// By callback: number of its name among holds.
    held_by: HashMap<Option<u32>, u32>,
    /// By process and coroutine: what it carries while it is suspended.
    suspended: HashMap<(i32, u64), Running>,
    /// By request: what its service carries until it answers.
    served: HashMap<i64, Vec<Message>>,
    /// Requests that were sent by now, as their take says, and not yet by their client's word.
    sent: HashSet<Send>,
    /// Messages that are of no chain after all.
    unheard: HashSet<u64>,
    /// By process and callback: what was taken for callbacks that run as tasks while the executor took other things.
    aside: BTreeMap<(i32, u32), VecDeque<Arrived>>,
    /// By process and what schedules a callback: answers for it, while the executor does other things.
    answered: BTreeMap<(i32, u32), VecDeque<Answered>>,
    /// By callback: the process in which it last took a message; and by process: its last event.
    taker: HashMap<u32, i32>,
    last_ns: HashMap<i32, u64>,
    /// (callback, its process, process and publisher) of which some message was taken.
    matched: HashSet<(u32, i32, i32, u32)>,
    /// Callbacks and publishers of which something came through, in whatever process.
    knew: HashSet<(u32, u32)>,
    /// (process, buffer, index) → topic and number of what lies there.
    places: HashMap<(i32, u64, u64), (u32, u64)>,
    /// By callback: the longest that a message waited for it.
    longest_ns: HashMap<u32, u64>,
    /// From CLOCK_MONOTONIC to source timestamps.
    realtime_offset_ns: i128,
    end_ns: u64,
    first_id: u64,
    next_id: u64,
    /// Numbers of the chains' names begin behind this point.
    base: u32,
    applied: u32,
    ended_early: u32,
    not_taken: u32,
    superseded: u32,
    in_flight: u32,
    /// Names of points at which messages are due at a moment.
    dues: HashSet<u32>,
    /// By depth of the queue.
    overwritten: HashMap<u64, u32>,
    counts: Counts,
    tally: Tally,
    scene: Scene<'a>,
}

impl<'a> Flow<'a> {
    pub fn new(system: &'a System, events: &'a Events, scene: &Scene<'a>, out: &'a mut Linked) -> Flow<'a> {
        let mut chains = Chains::default();
        let [applied, ended_early, not_taken, superseded, in_flight] =
            ["applied", "ended_early", "not_taken", "superseded", "in_flight"]
                .map(|reason| chains.point(reason.to_owned()));
        let first_id = if scene.is_stretch { STRETCH_IDS } else { out.free_message() };
        let mut doing = Vec::new();
        doing.resize_with(events.threads(), Doing::default);
        let stamped = Stamped::of(&out.passes, events);
        Flow {
            base: out.last_point(),
            first_id,
            next_id: first_id,
            realtime_offset_ns: scene.realtime_offset_ns,
            end_ns: scene.until_ns,
            system,
            events,
            out,
            chains,
            doing,
            queues: queues::of(system),
            kept: HashMap::default(),
            filters: BTreeMap::default(),
            executors: Executors::new(system, events.threads()),
            called: HashMap::default(),
            stamped,
            stamped_points: HashMap::default(),
            held_by: HashMap::default(),
            suspended: HashMap::default(),
            served: HashMap::default(),
            sent: HashSet::default(),
            unheard: HashSet::default(),
            aside: BTreeMap::default(),
            answered: BTreeMap::default(),
            taker: HashMap::default(),
            last_ns: HashMap::default(),
            matched: HashSet::default(),
            knew: HashSet::default(),
            places: HashMap::default(),
            longest_ns: HashMap::default(),
            applied,
            ended_early,
            not_taken,
            superseded,
            in_flight,
            dues: HashSet::default(),
            overwritten: HashMap::default(),
            counts: Counts::default(),
            tally: Tally::default(),
            scene: *scene,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, row: Row) {
        let Row { time_ns, thread, pid: process, handle, args, .. } = row;
        let system = self.system;
        self.end_ns = self.end_ns.max(time_ns);
        self.last_ns.insert(process, time_ns);
        // Only what the middleware knows of a message belongs to its take.
        if row.event != RosEvent::TakeInfo {
            self.begin_pending(thread);
        }
        self.stamps_until(thread, time_ns);
        if matches!(row.event, RosEvent::CallbackStart | RosEvent::CallbackEnd) || seen::ends_answer(row.event) {
            self.of(thread).is_known = true;
        }
        if seen::ends_answer(row.event) {
            self.end_answer(thread, time_ns);
        }
        match row.event {
            RosEvent::CallbackStart if args[0] & RESUMED != 0 => self.resume(thread, process, time_ns, handle, args[1]),
            RosEvent::CallbackStart => {
                if args[0] & SCHEDULED != 0
                    && let Some(callback) = system.callback_at.at((process, handle), time_ns)
                {
                    self.arrive(thread, *callback, time_ns, By::Key(request_key(process as u64, args[1])));
                }
                if args[0] & INTRA == 0 {
                    self.arrive_taken(thread, process, time_ns, handle);
                }
                self.start(thread, process, time_ns, handle, args[0] & INTRA != 0);
                if args[0] & FILTERED != 0
                    && let Some(running) = self.of(thread).running.last_mut()
                {
                    running.filtered = Some(args[1]);
                }
            }
            RosEvent::Joined => {
                if let Some(callback) = system.callback_at.at((process, handle), time_ns) {
                    self.joined(thread, *callback, args[0]);
                }
            }
            RosEvent::Schedule => {
                if let Some(scheduler) = system.scheduler_at.at((process, handle), time_ns) {
                    self.schedule(thread, process, *scheduler, time_ns, request_key(process as u64, args[0]));
                }
            }
            RosEvent::CallbackEnd if args[0] & SUSPENDED != 0 => {
                self.suspend(thread, process, time_ns, handle, args[1])
            }
            RosEvent::CallbackEnd => self.end(thread, time_ns, handle),
            RosEvent::TimerCall => {
                let callback = system.timer_at.at((process, handle), time_ns).copied();
                if let Some((callback, due_ns)) = callback.zip(self.due_ns(&row)) {
                    let all = self.called.entry((process, callback)).or_default();
                    if all.len() >= MOST_NESTED {
                        all.pop_front();
                    }
                    all.push_back(Called { thread, due_ns });
                }
                self.begin_at_take(thread, callback, time_ns);
            }
            RosEvent::RclcppPublish if handle == 0 => self.of(thread).begun = Some((time_ns, args[0])),
            RosEvent::RclcppPublish | RosEvent::RclPublish => {
                if let Some(publisher) = system.publisher_at.at((process, handle), time_ns) {
                    let begun = self.of(thread).begun.take().filter(|(_, message)| *message == args[0]);
                    let layer = if row.event == RosEvent::RclPublish { Layer::Rcl } else { Layer::Rclcpp };
                    self.publish(thread, process, *publisher, begun.map_or(time_ns, |(since, _)| since), layer);
                }
            }
            RosEvent::IntraPublish => {
                if let Some(publisher) = system.publisher_at.at((process, handle), time_ns) {
                    self.publish(thread, process, *publisher, time_ns, Layer::Intra);
                }
            }
            RosEvent::RmwPublish => {
                // rcl said it before, unless its events are not recorded. Of a serialized message it says nothing, nor of what the
                // middleware publishes for itself.
                match system.rmw_publisher_at.at((process, handle), time_ns) {
                    Some(publisher) => self.publish(thread, process, *publisher, time_ns, Layer::Rmw),
                    None if handle != 0 => self.of(thread).open = None,
                    None => {}
                }
                self.stamp_publish(thread, args[1] as i64, time_ns);
            }
            RosEvent::SourceStamp => self.stamp_publish(thread, args[1] as i64, time_ns),
            RosEvent::Take if args[2] != 0 => {
                if let Some(callback) = system.subscriber_at.at((process, handle), time_ns)
                    && args[1] != 0
                {
                    if system.on_take_is(*callback, OnTake::Begins) {
                        self.end_answer(thread, time_ns);
                    }
                    let stamp = args[1] as i64;
                    if system.on_take_is(*callback, OnTake::IsReadByOthers) {
                        self.arrive(thread, *callback, time_ns, self.by_stamp(stamp));
                        self.of(thread).read = Some((*callback, time_ns));
                    } else if system.have_buffers.contains(callback) {
                        self.of(thread).taken = Some(Taken { callback: *callback, time_ns, stamp, received: None });
                    } else {
                        self.arrive(thread, *callback, time_ns, self.by_stamp(stamp));
                        self.begin_at_take(thread, Some(*callback), time_ns);
                    }
                }
            }
            RosEvent::TakeInfo if seen::says_received(&row) => {
                // An action's client takes of several subscriptions at once.
                let callback = system.subscriber_at.at((process, handle), time_ns).copied();
                if let Some(taken) = self.of(thread).taken.as_mut().filter(|taken| Some(taken.callback) == callback) {
                    taken.received = Some(args[0] as i64);
                } else if self.of(thread).arrived.as_ref().map(|arrived| arrived.callback) == callback {
                    self.received(thread, process, args[0] as i64);
                }
            }
            RosEvent::SendRequest => {
                let send = Send { process, handle, thread, number: args[0] };
                if !self.sent.remove(&send) {
                    self.request(send, time_ns);
                }
            }
            RosEvent::TakeRequest if args[2] != 0 => {
                let key = request_key(args[1], args[0]);
                if let Some(send) = system.late_sends.get(&key) {
                    self.request(*send, time_ns);
                    self.sent.insert(*send);
                }
                if let Some(callback) = system.service_at.at((process, handle), time_ns) {
                    self.arrive(thread, *callback, time_ns, By::Key(key));
                    self.begin_at_take(thread, Some(*callback), time_ns);
                }
            }
            RosEvent::SendResponse => {
                if let Some(answerer) = system.answerer_at.at((process, handle), time_ns) {
                    self.answer(thread, process, *answerer, time_ns, request_key(args[1], args[0]));
                }
            }
            RosEvent::TakeResponse if args[2] != 0 => {
                let gid = system.client_gid_at.at((process, handle), time_ns);
                let client = system.client_at.at((process, handle), time_ns);
                if let Some((gid, client)) = gid.zip(client) {
                    self.arrive(thread, *client, time_ns, By::Key(request_key(*gid, args[0])));
                    self.begin_answer(thread, *client, time_ns);
                }
            }
            RosEvent::Dispatch => {
                let callback = system.callback_at.at((process, handle), time_ns).copied();
                let is_there = |arrived: &Arrived| Some(arrived.callback) == callback;
                if let Some(callback) = callback
                    && !self.of(thread).arrived.as_ref().is_some_and(is_there)
                {
                    self.arrive(thread, callback, time_ns, self.by_stamp(args[1] as i64));
                }
            }
            RosEvent::Gone => {
                if let Some(callback) = system.timer_at.at((process, handle), time_ns) {
                    self.called.remove(&(process, *callback));
                }
            }
            RosEvent::Enqueue => {
                // A late subscription gets what was kept for it: that is of an earlier publish.
                if let Some(open) = self.of(thread).open
                    && let Some(callback) = system.buffer_at.at((process, handle), time_ns)
                    && matches!(system.callbacks[*callback as usize].of, Of::Topic(topic, _) if topic == open.topic)
                    && self.places.len() < MOST_PLACES
                {
                    self.places.insert((process, handle, args[0]), (open.topic, open.number));
                }
            }
            RosEvent::Dequeue => {
                let place = self.places.remove(&(process, handle, args[0]));
                if let Some(callback) = system.buffer_at.at((process, handle), time_ns) {
                    // None has the last number: its publish is not known.
                    let publish = place.map_or(u64::MAX, |(_, publish)| publish);
                    self.arrive(thread, *callback, time_ns, By::Number(publish));
                }
            }
            _ => {}
        }
    }

    fn by_stamp(&self, stamp: i64) -> By {
        By::Stamp(stamp, (i128::from(stamp) - self.realtime_offset_ns) as i64)
    }

    fn of(&mut self, thread: u32) -> &mut Doing {
        &mut self.doing[thread as usize]
    }

    /// A take: its messages wait for the callback that comes next on this thread.
    fn arrive(&mut self, thread: u32, callback: u32, time_ns: u64, by: By) {
        self.close_arrived(thread, time_ns);
        let Of::Topic(topic, depth) = self.system.callbacks[callback as usize].of else { return };
        self.tally.take(callback);
        if let By::Stamp(..) = by
            && !self.system.is_published[topic as usize]
        {
            return;
        }
        if let By::Key(_) = by
            && !self.system.is_published[topic as usize]
        {
            return;
        }
        let request = match by {
            By::Key(key) if self.system.topics[topic as usize].kind == TopicKind::Requests => Some(key),
            _ => None,
        };
        // An answer is for the one client that takes it.
        if let By::Key(key) = by
            && self.system.topics[topic as usize].kind == TopicKind::Answers
        {
            let others = self.queues[topic as usize].not_for(callback, key, &self.chains);
            self.unheard.extend(others.iter().map(|message| message.id));
        }
        let Some(taken) = self.queues[topic as usize].take(callback, by, &self.chains) else {
            self.counts.unmatched += u64::from(self.system.is_followed(topic));
            // It came from somewhere: it begins nothing.
            let messages = Vec::new();
            self.of(thread).arrived = Some(Arrived {
                callback,
                taken_ns: time_ns,
                ready_ns: time_ns,
                published_ns: 0,
                stamp: 0,
                stamped_ns: 0,
                request,
                messages,
            });
            return;
        };
        self.counts.by_time += u64::from(taken.is_near);
        self.counts.by_order += u64::from(matches!(by, By::Order { .. }));
        let taker = self.events.pid(thread);
        let is_first = self.matched.insert((callback, taker, taken.from.0, taken.from.1));
        let is_start = self.knew.insert((callback, taken.from.1));
        // A datum is a message of several chains.
        let mut lost: BTreeMap<u64, bool> = BTreeMap::new();
        for Lost { message, published_ns, thread: publisher, later } in taken.lost {
            if is_first {
                self.unheard(publisher, message, published_ns, is_start);
                continue;
            }
            let is_overwritten = depth > 0 && later >= depth;
            lost.entry(later).or_insert(is_overwritten);
            let reason = if is_overwritten { self.overwritten(depth) } else { self.not_taken };
            self.outcome(thread, message, time_ns, reason);
        }
        lost.values().for_each(|is_overwritten| self.tally.lose(callback, 1, *is_overwritten));
        self.taker.insert(callback, taker);
        let waited_ns = time_ns.saturating_sub(taken.published_ns);
        let longest_ns = self.longest_ns.entry(callback).or_default();
        *longest_ns = waited_ns.max(*longest_ns);
        for message in taken.messages.iter().filter(|_| !matches!(by, By::Order { .. })) {
            let take = self.chains.all[message.chain as usize].hops[usize::from(message.hop)].take;
            self.stamp(thread, *message, time_ns, take);
        }
        // From another host it came later than it was published, and source timestamps are of another clock.
        let is_far = host_of(taken.from.0) != host_of(taker);
        self.of(thread).arrived = Some(Arrived {
            callback,
            taken_ns: time_ns,
            ready_ns: if is_far { time_ns } else { taken.published_ns },
            published_ns: taken.published_ns,
            stamp: taken.stamp,
            stamped_ns: if is_far { 0 } else { taken.stamped_ns },
            request,
            messages: taken.messages,
        });
    }

    /// A client sends a request.
    fn request(&mut self, send: Send, time_ns: u64) {
        let Send { process, handle, thread, number } = send;
        let gid = self.system.client_gid_at.at((process, handle), time_ns);
        let requester = self.system.requester_at.at((process, handle), time_ns);
        if let Some((gid, requester)) = gid.zip(requester) {
            self.publish(thread, process, *requester, time_ns, Layer::Rmw);
            self.stamp_publish(thread, request_key(*gid, number), time_ns);
        }
    }

    /// Published while its subscription was not there, or did not know of the publisher yet: it ended there. Before any came through, and
    /// after the last one, it is no message of the chain, unless a callback took it before.
    fn unheard(&mut self, publisher: u32, message: Message, published_ns: u64, is_outside: bool) {
        if message.id == 0 {
            return;
        }
        let hops = &self.chains.all[message.chain as usize].hops;
        *self.counts.unheard.entry(hops[usize::from(message.hop)].callback).or_default() += 1;
        match message.hop {
            0 | 1 if is_outside => _ = self.unheard.insert(message.id),
            _ => self.outcome(publisher, message, published_ns, self.ended_early),
        }
    }

    /// Number of the reason: newer messages took the place of one in a queue of this depth.
    fn overwritten(&mut self, depth: u64) -> u32 {
        let chains = &mut self.chains;
        *self.overwritten.entry(depth).or_insert_with(|| chains.point(format!("overwritten (depth {depth})")))
    }

    /// The middleware says when it received what the thread just took, on the clock of source timestamps: before the take, however late
    /// the publisher's thread said its timestamp.
    fn received(&mut self, thread: u32, process: i32, received: i64) {
        let Some(arrived) = self.of(thread).arrived.as_mut() else { return };
        if arrived.stamped_ns == 0 || received < arrived.stamp {
            return;
        }
        let at_ns = arrived.stamped_ns.saturating_add(received.abs_diff(arrived.stamp)).min(arrived.taken_ns);
        arrived.ready_ns = at_ns;
        let messages = arrived.messages.clone();
        let tid = self.receiver(process, thread, at_ns);
        for message in messages.iter().filter(|message| message.id != 0) {
            let receive = self.chains.all[message.chain as usize].hops[usize::from(message.hop)].receive;
            if receive != 0 {
                self.pass(tid, *message, at_ns, self.point(receive));
            }
        }
    }

    /// The thread that received a message at that moment: that of the process which ran then, other than the one that took it
    /// later, if there is one.
    fn receiver(&self, process: i32, taker: u32, at_ns: u64) -> i32 {
        let Scene { timelines, objects, .. } = self.scene;
        let taker = self.events.tid(taker);
        let ran = (0..timelines.cpus.len() as u16).filter_map(|cpu| timelines.stays(cpu, at_ns, at_ns + 1).next());
        let mut of_process = ran.map(|(tid, ..)| tid).filter(|tid| *tid != 0 && objects.pid(*tid) == Some(process));
        let (mut found, mut is_taker) = (None, false);
        for tid in &mut of_process {
            match tid == taker {
                true => is_taker = true,
                // Two: it may be either.
                false if found.is_some() => return NO_THREAD,
                false => found = Some(tid),
            }
        }
        found.unwrap_or(if is_taker { taker } else { NO_THREAD })
    }

    /// The callback begins with what the thread took for it from the middleware.
    fn arrive_taken(&mut self, thread: u32, process: i32, time_ns: u64, address: u64) {
        let callback = self.system.callback_at.at((process, address), time_ns).copied();
        let Some(taken) = self.of(thread).taken.take_if(|taken| Some(taken.callback) == callback) else { return };
        self.arrive(thread, taken.callback, taken.time_ns, self.by_stamp(taken.stamp));
        if let Some(received) = taken.received {
            self.received(thread, process, received);
        }
    }

    /// When the timer was due that a callback begins with: as this thread called it last, or any other first. What this thread called
    /// before that it did not run.
    fn called(&mut self, thread: u32, process: i32, callback: u32) -> Option<u64> {
        let all = self.called.get_mut(&(process, callback))?;
        let Some(own) = all.iter().rev().find(|called| called.thread == thread).map(|called| called.due_ns) else {
            return all.pop_front().map(|called| called.due_ns);
        };
        all.retain(|called| called.thread != thread);
        Some(own)
    }

    /// When a called timer was due, on the recording's clock.
    fn due_ns(&self, row: &Row) -> Option<u64> {
        let [due, called, _] = row.args.map(|arg| i128::from(arg as i64));
        let time_ns = i128::from(row.time_ns);
        let is_of_machine =
            [0, self.realtime_offset_ns].iter().any(|ahead| (called - ahead - time_ns).abs() < SAME_CLOCK_NS);
        let late_ns = u64::try_from(called - due).ok().filter(|_| is_of_machine && due > 0)?;
        row.time_ns.checked_sub(late_ns)
    }

    /// What was taken without a callback was taken by hand, in the callback that runs; or a task will run with it.
    fn close_arrived(&mut self, thread: u32, time_ns: u64) {
        let Some(mut arrived) = self.of(thread).arrived.take() else { return };
        if self.system.on_take_is(arrived.callback, OnTake::RunsAsTask) {
            let aside = self.aside.entry((self.events.pid(thread), arrived.callback)).or_default();
            aside.push_back(arrived);
            if aside.len() <= MOST_NESTED {
                return;
            }
            let Some(oldest) = aside.pop_front() else { return };
            arrived = oldest;
        }
        for message in arrived.messages {
            self.outcome(thread, message, time_ns, self.ended_early);
        }
    }

    /// A callback begins with what the thread just took, where no event will report it.
    fn begin_at_take(&mut self, thread: u32, callback: Option<u32>, time_ns: u64) {
        let callback = callback.filter(|callback| self.system.on_take_is(*callback, OnTake::Begins));
        self.of(thread).pending = callback.map(|callback| (callback, time_ns));
    }

    fn begin_pending(&mut self, thread: u32) {
        if let Some((callback, time_ns)) = self.of(thread).read.take() {
            self.read(thread, callback, time_ns);
        }
        if let Some((callback, time_ns)) = self.of(thread).pending.take() {
            self.start_callback(thread, self.events.pid(thread), time_ns, 0, Some(callback), false);
            if let Some(running) = self.of(thread).running.last_mut() {
                running.is_bare = true;
            }
        }
    }

    /// The callback that runs took a message by itself: it goes on with what that publishes next.
    fn read(&mut self, thread: u32, callback: u32, time_ns: u64) {
        let Some(arrived) = self.of(thread).arrived.take_if(|arrived| arrived.callback == callback) else { return };
        if arrived.published_ns != 0 {
            self.tally.delay(callback, time_ns.saturating_sub(arrived.published_ns));
        }
        let since_ns = self.of(thread).running.last().map_or(time_ns, |running| running.start_ns);
        for message in arrived.messages {
            let hop = &self.chains.all[message.chain as usize].hops[usize::from(message.hop)];
            let (exit, out) = (hop.exit, hop.out);
            self.stamp(thread, message, time_ns, out);
            match exit {
                Exit::Kept => self.keep(thread, message, time_ns, since_ns),
                Exit::Done => self.outcome(thread, message, time_ns, self.applied),
                Exit::Publish(_) => self.outcome(thread, message, time_ns, self.ended_early),
            }
        }
    }

    fn start(&mut self, thread: u32, process: i32, time_ns: u64, address: u64, is_intra: bool) {
        let callback = self.system.callback_at.at((process, address), time_ns).copied();
        self.start_callback(thread, process, time_ns, address, callback, is_intra);
    }

    fn start_callback(
        &mut self,
        thread: u32,
        process: i32,
        time_ns: u64,
        address: u64,
        callback: Option<u32>,
        is_intra: bool,
    ) {
        let system = self.system;
        let of = callback.map(|callback| system.callbacks[callback as usize].of);
        // Where nothing says what is taken, it is the next in the queue.
        if let (Some(callback), Some(Of::Topic(topic, depth))) = (callback, of)
            && self.of(thread).arrived.as_ref().is_none_or(|arrived| arrived.callback != callback)
            && system.is_published[topic as usize]
            && system.is_followed(topic)
            && (is_intra || !system.says_which.contains(&process))
        {
            self.arrive(thread, callback, time_ns, By::Order { depth, process: is_intra.then_some(process) });
        }
        // What was taken first runs first.
        if let Some(callback) = callback
            && let Some(arrived) = self.aside.get_mut(&(process, callback)).and_then(VecDeque::pop_front)
        {
            self.close_arrived(thread, time_ns);
            self.of(thread).arrived = Some(arrived);
        }
        let arrived = self.of(thread).arrived.take();
        let is_begun_elsewhere = arrived.is_some();
        let (mut carried, mut request) = (Vec::new(), None);
        let mut ready_ns = time_ns;
        match arrived {
            Some(arrived) if Some(arrived.callback) == callback => {
                if arrived.published_ns != 0 {
                    self.tally.delay(arrived.callback, time_ns.saturating_sub(arrived.published_ns));
                }
                (carried, request, ready_ns) = (arrived.messages, arrived.request, arrived.ready_ns);
            }
            arrived => {
                self.of(thread).arrived = arrived;
                self.close_arrived(thread, time_ns);
            }
        }
        let begins = match of {
            Some(Of::Timer | Of::Service | Of::Node | Of::Unknown) => true,
            Some(Of::Topic(topic, _)) => {
                !is_begun_elsewhere && !system.is_published[topic as usize] && system.is_followed(topic)
            }
            None => false,
        };
        if let Some(callback) = callback.filter(|_| begins) {
            let due_ns = self.called(thread, process, callback).map(|due_ns| due_ns.min(time_ns));
            ready_ns = due_ns.unwrap_or(time_ns);
            carried = self.begin(Root::Callback(callback), ready_ns);
            if let Some(due_ns) = due_ns {
                self.due(thread, &carried, due_ns);
            }
        }
        if let Some(callback) = callback {
            self.hold(thread, callback, &carried, ready_ns, time_ns);
        }
        for message in &carried {
            let start = self.chains.all[message.chain as usize].hops[usize::from(message.hop)].start;
            self.stamp(thread, *message, time_ns, start);
        }
        let (start_ns, last_ns) = (time_ns, time_ns);
        self.run(thread, Running { address, callback, start_ns, last_ns, request, carried, ..Running::default() });
    }

    /// What the program stamps in a callback is on the way of each message that the callback carries then, too.
    fn stamps_until(&mut self, thread: u32, time_ns: u64) {
        while let Some(pass) = self.stamped.until(thread, time_ns) {
            let Some(running) = self.doing[thread as usize].running.last_mut() else { continue };
            running.last_ns = pass.time_ns;
            if running.stamped.contains(&pass.point) {
                self.counts.stamped_again += 1;
                continue;
            }
            running.stamped.push(pass.point);
            for message in running.carried.clone() {
                let point = self.stamped_point(message, pass.point);
                self.stamp(thread, message, pass.time_ns, point);
            }
        }
    }

    /// Number of the name of a stamped point on the message's way. A point is of one chain only, and of one place there.
    fn stamped_point(&mut self, message: Message, stamped: PointId) -> u32 {
        let chains = &mut self.chains;
        let place = (message.chain, message.hop, stamped);
        let (system, points) = (self.system, &self.out.points);
        *self.stamped_points.entry(place).or_insert_with(|| {
            let callback = chains.all[message.chain as usize].hops[usize::from(message.hop)].callback;
            let node = callback.map_or("", |callback| system.callbacks[callback as usize].node.as_str());
            chains.point(format!("{node} stamp {}", points.name(stamped)).trim_start().to_owned())
        })
    }

    /// Something runs from now on.
    fn run(&mut self, thread: u32, running: Running) {
        let doing = &mut self.doing[thread as usize];
        doing.open = None;
        if doing.running.is_empty() {
            self.executors.begin(thread, running.start_ns, running.callback);
        }
        if doing.running.len() >= MOST_NESTED {
            doing.running.remove(0);
        }
        doing.running.push(running);
    }

    /// The newest run, or step of one, of what is at that address ends, and what it left open in it. What it was.
    fn ended(&mut self, thread: u32, time_ns: u64, address: u64) -> Option<Running> {
        let doing = &mut self.doing[thread as usize];
        let at = doing.running.iter().rposition(|running| running.address == address)?;
        doing.running.truncate(at + 1);
        let mut running = doing.running.pop()?;
        let step_ns = time_ns.saturating_sub(running.start_ns);
        running.spent_ns += step_ns;
        doing.open = None;
        let is_outer = doing.running.is_empty();
        if is_outer {
            self.executors.end(thread, time_ns);
        }
        self.tally.step(thread, running.start_ns, time_ns, is_outer);
        Some(running)
    }

    /// A coroutine awaits something: its thread does other things.
    fn suspend(&mut self, thread: u32, process: i32, time_ns: u64, address: u64, coroutine: u64) {
        self.close_arrived(thread, time_ns);
        let Some(mut running) = self.ended(thread, time_ns, address) else { return };
        if let Some(callback) = running.callback {
            self.executors.suspend((process, coroutine), thread, callback, time_ns);
        }
        running.coroutine = Some(coroutine);
        if self.suspended.len() < MOST_OPEN {
            self.suspended.insert((process, coroutine), running);
        }
    }

    fn resume(&mut self, thread: u32, process: i32, time_ns: u64, address: u64, coroutine: u64) {
        match self.suspended.remove(&(process, coroutine)).filter(|running| running.address == address) {
            Some(running) => self.run(thread, Running { start_ns: time_ns, ..running }),
            None => {
                let callback = self.system.callback_at.at((process, address), time_ns).copied();
                self.run(thread, Running { address, callback, start_ns: time_ns, ..Running::default() });
            }
        }
    }

    /// A client has an answer: what its thread does until its executor goes on is with that.
    fn begin_answer(&mut self, thread: u32, client: u32, time_ns: u64) {
        let arrived = self.of(thread).arrived.take_if(|arrived| arrived.callback == client);
        let carried = arrived.map_or(Vec::new(), |arrived| arrived.messages);
        for message in &carried {
            let start = self.chains.all[message.chain as usize].hops[usize::from(message.hop)].start;
            self.stamp(thread, *message, time_ns, start);
        }
        let (callback, is_answer) = (Some(client), true);
        self.run(
            thread,
            Running { callback, start_ns: time_ns, is_answer, last_ns: time_ns, carried, ..Running::default() },
        );
    }

    /// What has no end of its own ends: the executor goes on.
    fn end_answer(&mut self, thread: u32, time_ns: u64) {
        let end_ns = self.of(thread).running.last().and_then(|last| match last {
            Running { is_bare: true, .. } => Some(time_ns),
            Running { is_answer: true, last_ns, .. } => Some(*last_ns),
            _ => None,
        });
        if let Some(end_ns) = end_ns {
            // What was taken meanwhile is for the callback that comes next.
            self.end_running(thread, end_ns, 0);
        }
    }

    /// Messages are due at the point at which they begin.
    fn due(&mut self, thread: u32, messages: &[Message], due_ns: u64) {
        for message in messages.iter().filter(|message| message.id != 0) {
            let start = self.chains.all[message.chain as usize].hops[usize::from(message.hop)].start;
            self.pass(self.events.tid(thread), *message, due_ns, self.point(start).as_due());
            self.dues.insert(start);
        }
    }

    /// What the callback's executor was busy with since the messages were ready for it.
    fn hold(&mut self, thread: u32, callback: u32, messages: &[Message], ready_ns: u64, time_ns: u64) {
        if messages.is_empty() || ready_ns >= time_ns {
            return;
        }
        for busy in self.executors.busy(thread, callback, ready_ns, time_ns) {
            let (callback, by) = (self.held_by(busy.callback), self.events.tid(busy.thread));
            let hold = Hold { from_ns: busy.from_ns, to_ns: busy.to_ns, by, callback, why: HeldBy::Executor };
            messages.iter().filter(|message| message.id != 0).for_each(|message| self.out.holds.add(message.id, hold));
        }
    }

    /// Number of a callback's name among those of holds.
    fn held_by(&mut self, callback: Option<u32>) -> u32 {
        if let Some(number) = self.held_by.get(&callback) {
            return *number;
        }
        let name = callback.map(|other| self.system.callbacks[other as usize].name.clone());
        let number = self.out.holds.name(name.unwrap_or_else(|| "a callback without a name".to_owned()));
        self.held_by.insert(callback, number);
        number
    }

    /// New messages of all chains that begin there.
    fn begin(&mut self, root: Root, origin_ns: u64) -> Vec<Message> {
        let chains = self.chains.of(root, self.system);
        if self.scene.is_stretch {
            // Of the moment, so that it is the same in every stretch that holds it.
            self.next_id = self.next_id.max(STRETCH_IDS | (origin_ns / 1000) << BRANCH_BITS);
        }
        let first = self.next_id;
        self.next_id += chains.len() as u64;
        let message = |(chain, id): (u32, u64)| Message { id, chain, hop: 0, origin_ns };
        chains.iter().copied().zip(first..).map(message).collect()
    }

    fn end(&mut self, thread: u32, time_ns: u64, address: u64) {
        self.close_arrived(thread, time_ns);
        self.end_running(thread, time_ns, address);
    }

    fn end_running(&mut self, thread: u32, time_ns: u64, address: u64) {
        let Some(mut running) = self.ended(thread, time_ns, address) else { return };
        let is_outer = self.of(thread).running.is_empty();
        self.tally.run(thread, running.callback, running.spent_ns, is_outer);
        if let Some((coroutine, callback)) = running.coroutine.zip(running.callback) {
            self.executors.complete((self.events.pid(thread), coroutine), callback, time_ns);
        }
        // A service answers after its callback.
        if let Some(key) = running.request
            && self.served.len() < MOST_OPEN
        {
            let (chains, system) = (&self.chains, self.system);
            let is_answered = |message: &mut Message| {
                matches!(chains.all[message.chain as usize].hops[usize::from(message.hop)].exit, Exit::Publish(publisher)
                    if system.topics[system.publishers[publisher as usize].topic as usize].kind == TopicKind::Answers)
            };
            self.served.insert(key, running.carried.extract_if(.., is_answered).collect());
        }
        let filter = running.callback.filter(|callback| self.system.partners.contains_key(callback));
        // What completed a set waits on for those that it did not publish.
        let may_wait = !running.has_completed || running.may_wait_on;
        let waits_on = may_wait || !running.published.is_empty();
        let published = running.published;
        let mut filtered = Vec::new();
        for message in running.carried {
            let chain = &self.chains.all[message.chain as usize];
            let (hop, keeps) = (&chain.hops[usize::from(message.hop)], chain.keeps);
            let (exit, out) = (hop.exit, hop.out);
            match exit {
                Exit::Publish(publisher)
                    if filter.is_some()
                        && hop.join != 0
                        && hop.callback == filter
                        && waits_on
                        && !published.contains(&publisher) =>
                {
                    filtered.push(message);
                }
                Exit::Publish(publisher) if running.is_answer && self.is_scheduler(publisher) => {
                    let answered = self.answered.entry((self.events.pid(thread), publisher)).or_default();
                    match answered.back_mut().filter(|last| last.time_ns == time_ns) {
                        Some(last) => last.messages.push(message),
                        None => answered.push_back(Answered { time_ns, messages: vec![message] }),
                    }
                    // It may be awaited instead, and then none is scheduled.
                    let oldest = if answered.len() > MOST_NESTED { answered.pop_front() } else { None };
                    for message in oldest.into_iter().flat_map(|oldest| oldest.messages) {
                        self.outcome(thread, message, time_ns, self.ended_early);
                    }
                }
                // It published nothing there this time: the message was for the callback alone.
                Exit::Publish(_) => self.outcome(thread, message, time_ns, self.ended_early),
                Exit::Kept => {
                    self.stamp(thread, message, time_ns, out);
                    self.keep(thread, message, time_ns, time_ns);
                }
                Exit::Done => {
                    self.stamp(thread, message, time_ns, out);
                    self.outcome(thread, message, time_ns, self.applied);
                    if keeps {
                        self.age(message, time_ns);
                    }
                }
            }
        }
        if let Some(callback) = filter.filter(|_| may_wait || !filtered.is_empty()) {
            self.filter(callback, Filtered { run: running.filtered, since_ns: time_ns, thread, messages: filtered });
        }
    }

    /// A filter has it from now on. What is there has no bound that is known.
    fn filter(&mut self, callback: u32, filtered: Filtered) {
        let process = self.events.pid(filtered.thread);
        let waiting = &mut self.filters.entry((process, callback)).or_default().waiting;
        waiting.push_back(filtered);
        if waiting.len() > MOST_FILTERED
            && let Some(oldest) = waiting.pop_front()
        {
            self.leave_filter(oldest);
        }
    }

    /// No set that is known has it.
    fn leave_filter(&mut self, filtered: Filtered) {
        let Filtered { since_ns, thread, .. } = filtered;
        filtered.messages.iter().for_each(|message| self.outcome(thread, *message, since_ns, self.ended_early));
    }

    /// The set that the callback completes has the message of that run, too.
    fn joined(&mut self, thread: u32, callback: u32, run: u64) {
        if let Some(running) = self.of(thread).running.last_mut()
            && running.callback == Some(callback)
            && running.filtered == Some(run)
        {
            running.has_completed = true;
            return;
        }
        let process = self.events.pid(thread);
        let Some(filter) = self.filters.get_mut(&(process, callback)) else { return };
        let Some(at) = filter.waiting.iter().rposition(|filtered| filtered.run == Some(run)) else { return };
        let Some(found) = filter.waiting.remove(at) else { return };
        let Some(rest) = self.join(thread, callback, found) else { return };
        if let Some(filter) = self.filters.get_mut(&(process, callback)) {
            filter.waiting.insert(at, rest);
        }
    }

    /// The callback that runs goes on with it: until that began, it waited for its partner. What is of other sets comes back.
    fn join(&mut self, thread: u32, of: u32, mut filtered: Filtered) -> Option<Filtered> {
        let (chains, system) = (&self.chains, self.system);
        let running = self.doing[thread as usize].running.last_mut()?;
        let (start_ns, completing) = (running.start_ns, running.callback);
        let publishes = &system.publishes[completing? as usize];
        let goes_on = |message: &mut Message| {
            let exit = chains.all[message.chain as usize].hops[usize::from(message.hop)].exit;
            matches!(exit, Exit::Publish(publisher) if publishes.contains(&publisher))
        };
        let messages: Vec<Message> = filtered.messages.extract_if(.., goes_on).collect();
        running.carried.extend(&messages);
        let waited_ns = start_ns.saturating_sub(filtered.since_ns);
        let longest_ns = &mut self.filters.entry((self.events.pid(thread), of)).or_default().longest_ns;
        *longest_ns = waited_ns.max(*longest_ns);
        let (callback, by) = (self.held_by(completing), self.events.tid(thread));
        let hold = Hold { from_ns: filtered.since_ns, to_ns: start_ns, by, callback, why: HeldBy::Partner };
        if hold.from_ns < hold.to_ns {
            messages.iter().filter(|message| message.id != 0).for_each(|message| self.out.holds.add(message.id, hold));
        }
        Some(filtered).filter(|rest| !rest.messages.is_empty())
    }

    /// rclcpp does not say which messages a set has: it is complete when a callback of the filter publishes. Of a topic of which one message
    /// waited it has that one. Of several, its own topic's included, the oldest is in it or has been dropped.
    fn complete_set(&mut self, thread: u32, publisher: u32) {
        let system = self.system;
        let Some(running) = self.doing[thread as usize].running.last_mut() else { return };
        let Some(callback) = running.callback.filter(|callback| system.completes_set(*callback, publisher)) else {
            return;
        };
        if running.filtered.is_some() || running.published.contains(&publisher) {
            return;
        }
        let process = self.events.pid(thread);
        if !std::mem::replace(&mut running.has_completed, true) {
            let own = self.filters.get_mut(&(process, callback)).and_then(|filter| filter.waiting.pop_front());
            running.may_wait_on = own.is_some();
            self.counts.several += u64::from(own.is_some());
            own.into_iter().for_each(|oldest| self.leave_filter(oldest));
        }
        for partner in system.partners_in(callback, publisher) {
            let Some(filter) = self.filters.get_mut(&(process, partner)) else { continue };
            match (filter.waiting.pop_front(), filter.waiting.is_empty()) {
                (Some(only), true) => {
                    let rest = self.join(thread, partner, only);
                    self.filters.entry((process, partner)).or_default().waiting.extend(rest);
                }
                (Some(oldest), false) => {
                    self.counts.several += 1;
                    self.leave_filter(oldest);
                }
                (None, _) => {}
            }
        }
    }

    /// Keeps a message for the next callback of its chain that begins then or later; one that waits there has had its day.
    fn keep(&mut self, thread: u32, message: Message, time_ns: u64, since_ns: u64) {
        let next = Message { hop: message.hop + 1, ..message };
        let place = (next.chain, next.hop);
        match self.kept.get(&place).copied() {
            // What comes a second time is no news.
            Some((waiting, _)) if message.id == 0 && waiting.id != 0 => return,
            Some((waiting, _)) => {
                self.outcome(thread, Message { hop: message.hop, ..waiting }, time_ns, self.superseded);
            }
            None => {}
        }
        self.kept.insert(place, (next, since_ns));
    }

    fn publish(&mut self, thread: u32, process: i32, publisher: u32, time_ns: u64, said_by: Layer) {
        let topic = self.system.publishers[publisher as usize].topic;
        if let Some(open) = &mut self.doing[thread as usize].open
            && open.publisher == publisher
            && open.said_by < said_by
        {
            // The same publish, as a lower layer says it.
            open.said_by = said_by;
            return;
        }
        self.of(thread).open = None;
        if !self.system.is_followed(topic) {
            return;
        }
        let messages = self.published(thread, publisher, time_ns);
        let number = self.enqueue(thread, process, publisher, time_ns, messages);
        self.of(thread).open = Some(Open { publisher, topic, number, said_by });
    }

    /// Messages wait in their topic; the number of the publish there.
    fn enqueue(&mut self, thread: u32, process: i32, publisher: u32, time_ns: u64, messages: Vec<Message>) -> u64 {
        let topic = self.system.publishers[publisher as usize].topic;
        self.tally.publish(topic, publisher, time_ns);
        let publish = Publish { time_ns, publisher, thread, process, stamp: 0, stamped_ns: 0, messages };
        let (number, out) = self.queues[topic as usize].add(publish);
        for message in out {
            self.outcome(thread, message, time_ns, self.not_taken);
        }
        number
    }

    /// A service answers: what it carried goes on, and what the callback carries that answers while it runs.
    fn answer(&mut self, thread: u32, process: i32, answerer: u32, time_ns: u64, key: i64) {
        let mut messages = self.served.remove(&key).unwrap_or_default();
        messages.extend(self.carried_to(thread, answerer, time_ns));
        self.send(thread, process, answerer, time_ns, key, messages);
    }

    /// A callback is to run later: what goes on with that waits for its run.
    fn schedule(&mut self, thread: u32, process: i32, scheduler: u32, time_ns: u64, key: i64) {
        let mut messages = self.carried_to(thread, scheduler, time_ns);
        if messages.is_empty()
            && let Some(answered) = self.answered.get_mut(&(process, scheduler))
            && let Some(oldest) = answered.pop_front()
        {
            messages = oldest.messages;
        }
        self.send(thread, process, scheduler, time_ns, key, messages);
    }

    fn is_scheduler(&self, publisher: u32) -> bool {
        let topic = self.system.publishers[publisher as usize].topic;
        self.system.topics[topic as usize].kind == TopicKind::Runs
    }

    /// Messages wait in their topic for the take of this key.
    fn send(&mut self, thread: u32, process: i32, publisher: u32, time_ns: u64, key: i64, mut messages: Vec<Message>) {
        for message in &mut messages {
            let out = self.chains.all[message.chain as usize].hops[usize::from(message.hop)].out;
            self.stamp(thread, *message, time_ns, out);
            message.hop += 1;
        }
        let number = self.enqueue(thread, process, publisher, time_ns, messages);
        let topic = self.system.publishers[publisher as usize].topic;
        self.queues[topic as usize].stamp(number, key, time_ns);
    }

    /// Takes the messages out of what the thread runs that leave it through this publisher.
    fn carried_to(&mut self, thread: u32, publisher: u32, time_ns: u64) -> Vec<Message> {
        let Some(running) = self.doing[thread as usize].running.last_mut() else { return Vec::new() };
        running.last_ns = time_ns;
        let chains = &self.chains;
        let leaves = |message: &mut Message| {
            chains.all[message.chain as usize].hops[usize::from(message.hop)].exit == Exit::Publish(publisher)
        };
        running.carried.extract_if(.., leaves).collect()
    }

    /// Messages that a publish sends on.
    fn published(&mut self, thread: u32, publisher: u32, time_ns: u64) -> Vec<Message> {
        self.complete_set(thread, publisher);
        let mut sent = self.carried_to(thread, publisher, time_ns);
        let mut is_first = true;
        let mut callback = None;
        let mut start_ns = time_ns;
        if let Some(running) = self.doing[thread as usize].running.last_mut() {
            is_first = !running.published.contains(&publisher);
            if is_first {
                running.published.push(publisher);
            }
            (callback, start_ns) = (running.callback, running.start_ns);
        }
        for message in &sent {
            let hop = &self.chains.all[message.chain as usize].hops[usize::from(message.hop)];
            let (join, out) = (hop.join, hop.out);
            self.stamp(thread, *message, start_ns, join);
            self.stamp(thread, *message, time_ns, out);
        }
        // What others of the node kept goes into this, too.
        let places = callback.filter(|_| is_first).and_then(|callback| self.chains.used_by.get(&callback)).cloned();
        for place in places.into_iter().flatten() {
            // What came only after the callback had begun it may not have seen.
            let Some((message, since_ns)) = self.kept.get(&place).copied().filter(|(_, since)| *since <= start_ns)
            else {
                continue;
            };
            let hop = &self.chains.all[message.chain as usize].hops[usize::from(message.hop)];
            if hop.exit != Exit::Publish(publisher) {
                continue;
            }
            let (start, out) = (hop.start, hop.out);
            self.stamp(thread, message, start_ns, start);
            self.stamp(thread, message, time_ns, out);
            self.kept.insert(place, (Message { id: 0, ..message }, since_ns));
            sent.push(message);
        }
        // Outside callbacks it begins something, and so does one more of a callback that published this already; the next round; and what a
        // callback sends whose own messages are not followed, as when a parameter is set.
        let is_outside = callback.is_none() && (self.is_known_outside(thread) || !self.scene.is_stretch);
        let is_round = callback.is_some_and(|callback| self.system.is_round(callback, publisher));
        let is_untold = callback.is_some_and(|callback| match self.system.callbacks[callback as usize].of {
            Of::Topic(topic, _) => !self.system.is_followed(topic),
            _ => false,
        });
        if sent.is_empty() && (is_outside || callback.is_some() && !is_first || is_round || is_untold) {
            sent = self.begin(Root::Publisher(publisher), time_ns);
            for message in &sent {
                let out = self.chains.all[message.chain as usize].hops[0].out;
                self.stamp(thread, *message, time_ns, out);
            }
        }
        sent.iter_mut().for_each(|message| message.hop += 1);
        sent
    }

    /// Whether the thread is in no callback, or runs none at all: where a stretch begins, its callback may have begun before.
    fn is_known_outside(&self, thread: u32) -> bool {
        self.doing[thread as usize].is_known || !self.system.runs_callbacks[thread as usize]
    }

    fn stamp_publish(&mut self, thread: u32, stamp: i64, time_ns: u64) {
        if stamp != 0
            && let Some(open) = self.of(thread).open
        {
            self.queues[open.topic as usize].stamp(open.number, stamp, time_ns);
            // Whatever is said next is of another publish.
            self.of(thread).open = None;
        }
    }

    #[inline]
    fn stamp(&mut self, thread: u32, message: Message, time_ns: u64, point: u32) {
        if message.id != 0 && point != 0 {
            self.pass(self.events.tid(thread), message, time_ns, self.point(point));
        }
    }

    fn outcome(&mut self, thread: u32, message: Message, time_ns: u64, reason: u32) {
        if message.id != 0 {
            self.pass(self.events.tid(thread), message, time_ns, self.point(reason).as_outcome());
        }
    }

    fn pass(&mut self, thread: i32, message: Message, time_ns: u64, point: PointId) {
        self.out.passes.push(Pass { message: message.id, time_ns, point, thread });
    }

    /// The point of a chain's name.
    fn point(&self, number: u32) -> PointId {
        PointId::of_name(self.base + number)
    }

    /// How old what a chain ends with is: a value in milliseconds.
    fn age(&mut self, message: Message, time_ns: u64) {
        let age_ns = time_ns.saturating_sub(message.origin_ns);
        let chains = &mut self.chains;
        let ages = self.counts.ages.entry(message.chain).or_insert_with(|| {
            let name = format!("data age (ms), {}", chains.all[message.chain as usize].name);
            let of_ns = Hdr::new(3).expect("three digits are fewer than it has");
            Ages { of_ns, signal: chains.point(name) }
        });
        // It grows with what it takes, so that none is too large.
        let _ = ages.of_ns.record(age_ns);
        let signal = ages.signal;
        self.out.values.push(Value { signal: self.point(signal), time_ns, value: age_ns as f64 / 1e6 });
    }

    /// By process: a callback that had not ended when it was last heard of. It may hang.
    fn stuck(&self) -> HashMap<i32, u32> {
        let running = self.doing.iter().zip(0..).filter_map(|(doing, thread)| Some((thread, doing.running.last()?)));
        let running = running.filter(|(_, last)| !last.is_answer);
        running.filter_map(|(thread, last)| Some((self.events.pid(thread), last.callback?))).collect()
    }

    /// What a callback carries at the end, or will go on with, is under way, also where its process has ended.
    fn leave_under_way(&mut self) {
        let mut under_way: Vec<(u64, Message)> = Vec::new();
        for doing in std::mem::take(&mut self.doing) {
            under_way.extend(doing.running.into_iter().flat_map(|running| {
                let start_ns = running.start_ns;
                running.carried.into_iter().map(move |message| (start_ns, message))
            }));
            let arrived = doing.arrived.into_iter();
            under_way.extend(arrived.flat_map(|of| of.messages.into_iter().map(move |message| (of.ready_ns, message))));
        }
        for running in std::mem::take(&mut self.suspended).into_values() {
            under_way.extend(running.carried.into_iter().map(|message| (running.start_ns, message)));
        }
        for Filter { waiting, longest_ns } in std::mem::take(&mut self.filters).into_values() {
            let patience_ns = IN_FLIGHT_NS.max(longest_ns.saturating_mul(2));
            for filtered in waiting {
                if self.end_ns.saturating_sub(filtered.since_ns) > patience_ns {
                    self.leave_filter(filtered);
                } else {
                    under_way.extend(filtered.messages.into_iter().map(|message| (filtered.since_ns, message)));
                }
            }
        }
        under_way.extend(std::mem::take(&mut self.kept).into_values().map(|(message, since_ns)| (since_ns, message)));
        for (since_ns, message) in under_way {
            self.outcome(0, message, since_ns, self.in_flight);
        }
    }

    /// What waits still at the end was not taken, unless it may be under way. Then names and notes.
    pub fn finish(mut self) {
        for thread in 0..self.events.threads() as u32 {
            self.begin_pending(thread);
            self.stamps_until(thread, u64::MAX);
            // A client that calls once and ends does nothing after it.
            if self.of(thread).running.last().is_some_and(|last| last.is_answer) && !self.scene.is_stretch {
                self.end_answer(thread, self.end_ns);
            }
        }
        let stuck = self.stuck();
        self.leave_under_way();
        for arrived in std::mem::take(&mut self.aside).into_values().flatten() {
            // Taken, and not begun: it waits for its turn.
            arrived.messages.iter().for_each(|message| self.outcome(0, *message, arrived.ready_ns, self.in_flight));
        }
        for answered in std::mem::take(&mut self.answered).into_values().flatten() {
            answered.messages.iter().for_each(|message| self.outcome(0, *message, answered.time_ns, self.ended_early));
        }
        for topic in 0..self.queues.len() {
            let rest: Vec<Publish> = self.queues[topic].rest().collect();
            let mut counted: HashSet<(u64, Option<u32>)> = HashSet::default();
            for (publish, message) in rest.iter().flat_map(|publish| publish.messages.iter().map(move |m| (publish, m)))
            {
                let hop = &self.chains.all[message.chain as usize].hops[usize::from(message.hop)];
                let longest_ns = hop.callback.and_then(|callback| self.longest_ns.get(&callback)).copied().unwrap_or(0);
                let patience_ns = IN_FLIGHT_NS.max(longest_ns.saturating_mul(2));
                let taker = hop.callback.and_then(|callback| self.taker.get(&callback));
                let is_silent = taker.is_some_and(|process| self.last_ns[process] < publish.time_ns);
                let stuck_in = taker.filter(|_| is_silent).and_then(|process| stuck.get(process));
                // In a stretch a callback that has not ended goes on in the next one.
                let may_come = stuck_in.is_some() && self.scene.is_stretch;
                if is_silent && stuck_in.is_none() {
                    self.unheard(publish.thread, *message, publish.time_ns, true);
                } else if self.end_ns.saturating_sub(publish.time_ns) > patience_ns && !may_come {
                    // A message of several chains is one.
                    if let (Some(callback), true) = (hop.callback, counted.insert((publish.time_ns, hop.callback))) {
                        self.tally.lose(callback, 1, false);
                        if let Some(stuck_in) = stuck_in {
                            *self.counts.stuck.entry(*stuck_in).or_default() += 1;
                        }
                    }
                    self.outcome(publish.thread, *message, self.end_ns, self.not_taken);
                } else {
                    self.outcome(publish.thread, *message, publish.time_ns, self.in_flight);
                }
            }
        }
        if !self.unheard.is_empty() {
            self.out.passes.retain(|pass| !self.unheard.contains(&pass.message));
        }
        self.out.ros = Some(self.tally.finish(self.system, self.events, &self.last_ns, self.scene.objects));
        let threads = self.executors.threads().map(|thread| self.events.tid(thread));
        self.out.holds.complete(self.first_id..self.next_id, threads);
        for (name, number) in self.chains.names.iter().zip(1..) {
            self.out.points.insert(self.point(number), shortened(name));
        }
        for start in &self.dues {
            let name = format!("{} due", self.chains.names[*start as usize - 1]);
            self.out.points.insert(self.point(*start).as_due(), shortened(&name));
        }
        for (chain, ages) in &self.counts.ages {
            let name = format!("data age, {}", self.chains.all[*chain as usize].name);
            self.out.histograms.push(durations(shortened(&name), &ages.of_ns));
        }
        self.notes();
    }

    /// What a reader must know to trust the figures.
    fn notes(&mut self) {
        let system = self.system;
        let name = |callback: &Option<u32>| callback.map_or("", |of| system.callbacks[of as usize].name.as_str());
        let mut unheard: Vec<(u64, &str)> = self.counts.unheard.iter().map(|(of, count)| (*count, name(of))).collect();
        unheard.sort_by_key(|(count, _)| Reverse(*count));
        let others = unheard.split_off(MOST_NOTES.min(unheard.len()));
        for (count, name) in unheard {
            self.out.notes.push(format!(
                "{} published before the subscription of {name} took its first from their publisher, or after its process had ended: \
                 they did not go on to it",
                messages_were(count)
            ));
        }
        if !others.is_empty() {
            self.out.notes.push(format!(
                "{} published to {} more subscriptions in the same way: they did not go on to them",
                messages_were(others.iter().map(|(count, _)| count).sum()),
                others.len()
            ));
        }
        for (callback, count) in &self.counts.stuck {
            self.out.notes.push(format!(
                "{} published after {} had begun, which did not end: nothing took them",
                messages_were(*count),
                system.callbacks[*callback as usize].name
            ));
        }
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                self.out.notes.push(format!("{count} {what}"));
            }
        };
        note(
            self.system.unknown,
            "callbacks or publishers were made before the trace began and cannot be named: start tracing before the nodes",
        );
        note(
            self.counts.by_order,
            "messages were separated by the order of their queue alone, because these versions do not record what is taken: \
             where some are lost, others look later than they were",
        );
        note(
            self.counts.by_time,
            "messages were separated by the moment of their source timestamp, because these versions do not record it with the \
             publish",
        );
        note(
            self.system.too_many_clients,
            "services had more clients than can be distinguished: their requests end at the client",
        );
        note(self.counts.unmatched, "messages were taken whose publish is not in the trace, or led nowhere");
        note(
            self.counts.stamped_again,
            "stamps in callbacks are of a point that the callback had stamped before: the first of each run is on the way of its \
             messages",
        );
        note(
            self.counts.several,
            "times a set of message_filters was complete while several messages of one of its topics may have waited: which of them it has \
             is not recorded, so the others of that topic end there, and the message goes on that came last",
        );
        note(
            self.chains.cut,
            "places begin more chains than can be followed: some ways through kept data were left out",
        );
    }
}

fn messages_were(count: u64) -> String {
    match count {
        1 => "1 message was".to_owned(),
        count => format!("{count} messages were"),
    }
}

/// A distribution of durations in nanoseconds, under that name.
fn durations(name: String, of: &Hdr<u64>) -> Histogram {
    let mut histogram = Histogram { name, unit: "ns".to_owned(), ..Histogram::default() };
    for step in of.iter_recorded() {
        let value = step.value_iterated_to();
        histogram.from.push(of.lowest_equivalent(value));
        histogram.to.push(of.highest_equivalent(value));
        histogram.count.push(step.count_since_last_iteration());
    }
    if !of.is_empty() {
        (histogram.min, histogram.max) = (Some(of.min()), Some(of.max()));
    }
    histogram
}

/// Of a longer name the middle is left out.
fn shortened(name: &str) -> String {
    const HALF: usize = 58;
    if name.len() <= NAME_BYTES {
        return name.to_owned();
    }
    let (mut head, mut tail) = (HALF, name.len() - HALF);
    while !name.is_char_boundary(head) {
        head -= 1;
    }
    while !name.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}…{}", &name[..head], &name[tail..])
}
