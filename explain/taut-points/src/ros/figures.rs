//! What ROS tools show of topics, callbacks and executors, over the whole recording.

use std::collections::BTreeMap;

use foldhash::HashMap;
use hdrhistogram::Histogram as Hdr;
use taut_timelines::Objects;

use super::{
    events::Events,
    system::{Of, System, TopicKind},
};
use crate::ros_figures::{CallbackFigures, Durations, ExecutorFigures, RosFigures, SubscriptionFigures, TopicFigures};

/// Durations, as they come.
pub(super) struct Spread {
    of_ns: Hdr<u64>,
    sum: f64,
    squares: f64,
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { of_ns: Hdr::new(3).expect("three digits are fewer than it has"), sum: 0.0, squares: 0.0 }
    }
}

impl Spread {
    fn add(&mut self, ns: u64) {
        // It grows with what it takes, so that none is too large.
        let _ = self.of_ns.record(ns);
        self.sum += ns as f64;
        self.squares += (ns as f64).powi(2);
    }

    fn finish(&self) -> Durations {
        let n = self.of_ns.len();
        if n == 0 {
            return Durations::default();
        }
        let mean = self.sum / n as f64;
        Durations {
            n,
            mean_ns: Some(mean),
            min_ns: Some(self.of_ns.min()),
            p50_ns: Some(self.of_ns.value_at_quantile(0.5).min(self.of_ns.max())),
            max_ns: Some(self.of_ns.max()),
            deviation_ns: Some((self.squares / n as f64 - mean.powi(2)).max(0.0).sqrt()),
        }
    }
}

#[derive(Default)]
struct Published {
    last_ns: u64,
    count: u64,
    /// By publisher: a topic's period is that of all of them.
    period: Spread,
    by: BTreeMap<u32, u64>,
}

#[derive(Default)]
struct Taken {
    count: u64,
    overwritten: u64,
    not_taken: u64,
    delay: Spread,
}

#[derive(Default)]
struct Threads {
    callbacks: u64,
    busy_ns: u64,
    first_ns: u64,
}

/// Counts while messages are followed.
#[derive(Default)]
pub(super) struct Tally {
    published: HashMap<u32, Published>,
    taken: HashMap<u32, Taken>,
    runs: HashMap<u32, Spread>,
    threads: HashMap<u32, Threads>,
}

impl Tally {
    pub fn publish(&mut self, topic: u32, publisher: u32, time_ns: u64) {
        let published = self.published.entry(topic).or_default();
        if published.count > 0 {
            published.period.add(time_ns.saturating_sub(published.last_ns));
        }
        (published.last_ns, published.count) = (time_ns, published.count + 1);
        *published.by.entry(publisher).or_default() += 1;
    }

    /// A callback took a message.
    pub fn take(&mut self, callback: u32) {
        self.taken.entry(callback).or_default().count += 1;
    }

    /// Messages of its topic came to it no more.
    pub fn lose(&mut self, callback: u32, messages: u64, is_overwritten: bool) {
        let taken = self.taken.entry(callback).or_default();
        *if is_overwritten { &mut taken.overwritten } else { &mut taken.not_taken } += messages;
    }

    /// From a publication to the begin of the callback.
    pub fn delay(&mut self, callback: u32, ns: u64) {
        self.taken.entry(callback).or_default().delay.add(ns);
    }

    /// A thread was in a callback, or in one step of a coroutine; `is_outer`: not within another one.
    pub fn step(&mut self, thread: u32, from_ns: u64, to_ns: u64, is_outer: bool) {
        let of = self.threads.entry(thread).or_insert(Threads { first_ns: from_ns, ..Threads::default() });
        if is_outer {
            of.busy_ns += to_ns.saturating_sub(from_ns);
        }
    }

    /// A callback ended on this thread; all its steps took so long.
    pub fn run(&mut self, thread: u32, callback: Option<u32>, ns: u64, is_outer: bool) {
        if let Some(callback) = callback {
            self.runs.entry(callback).or_default().add(ns);
        }
        self.threads.entry(thread).or_default().callbacks += u64::from(is_outer);
    }

    /// `last_ns`: by process, its last event.
    pub fn finish(
        &self,
        system: &System,
        events: &Events,
        last_ns: &HashMap<i32, u64>,
        objects: &Objects,
    ) -> RosFigures {
        let mut topics: BTreeMap<&str, TopicFigures> = BTreeMap::new();
        let of_messages = |topic: u32| {
            let is_shown = system.topics[topic as usize].kind == TopicKind::Messages && system.is_followed(topic);
            is_shown.then(|| system.topics[topic as usize].name.as_str())
        };
        for (topic, published) in &self.published {
            let Some(name) = of_messages(*topic) else { continue };
            let of = topics.entry(name).or_default();
            let nodes = published.by.keys().map(|publisher| system.publishers[*publisher as usize].node.clone());
            (of.published, of.period, of.publishers) = (published.count, published.period.finish(), nodes.collect());
            of.rate_hz = of.period.mean_ns.filter(|mean_ns| *mean_ns > 0.0).map(|mean_ns| 1e9 / mean_ns);
            of.publishers.dedup();
        }
        for (callback, taken) in &self.taken {
            let of = &system.callbacks[*callback as usize];
            let Of::Topic(topic, depth) = of.of else { continue };
            let Some(name) = of_messages(topic) else { continue };
            topics.entry(name).or_default().subscriptions.push(SubscriptionFigures {
                callback: of.name.clone(),
                depth,
                taken: taken.count,
                overwritten: taken.overwritten,
                not_taken: taken.not_taken,
                delay: taken.delay.finish(),
            });
        }
        let mut topics: Vec<TopicFigures> =
            topics.into_iter().map(|(name, of)| TopicFigures { name: name.to_owned(), ..of }).collect();
        topics.iter_mut().for_each(|of| of.subscriptions.sort_by(|a, b| a.callback.cmp(&b.callback)));
        let callback = |(callback, spread): (&u32, &Spread)| CallbackFigures {
            name: system.callbacks[*callback as usize].name.clone(),
            function: system.functions.get(callback).cloned(),
            duration: spread.finish(),
        };
        let mut callbacks: Vec<CallbackFigures> = self.runs.iter().map(callback).collect();
        callbacks.sort_by(|a, b| a.name.cmp(&b.name));
        let executor = |(thread, of): (&u32, &Threads)| ExecutorFigures {
            thread: objects.name(events.tid(*thread), u64::MAX).into_owned(),
            callbacks: of.callbacks,
            busy: of.busy_ns as f64 / last_ns[&events.pid(*thread)].saturating_sub(of.first_ns).max(1) as f64,
        };
        let mut executors: Vec<ExecutorFigures> = self.threads.iter().map(executor).collect();
        executors.sort_by(|a, b| a.thread.cmp(&b.thread));
        RosFigures { topics, callbacks, executors }
    }
}
