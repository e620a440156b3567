//! A turn: the last seconds go through the analysis of a report, and what is new goes into the [`State`].

use std::time::Instant;

use taut_analysis::{Analyzer, Config, DeclaredChain, ExplainOptions, Explained};
use taut_recording::{Info, Record, Tier};

use crate::{
    keep::Keeping,
    messages::{Counted, Rows, Threads},
    state::{Chain, LiveFigures, RECENT_NS, State, Thread},
    window::Window,
};

/// How long a message may take to be seen whole.
pub const HORIZON_NS: u64 = 1_500_000_000;
/// A chain keeps its points once so many messages went all the way.
const ENOUGH_MESSAGES: u64 = 10;

/// Takes in a stream's records and turns them into a [`State`].
pub struct Turner {
    has_tail: bool,
    window: Window,
    counted: Counted,
    /// Declared, or found in an earlier turn.
    followed: Vec<DeclaredChain>,
    declared: usize,
    processor: taut_capture::ThreadTimes,
    pub(crate) keeping: Option<Keeping>,
    /// Stamps and ROS 2 events read before the last turn, if there was one.
    before: Option<(u64, u64)>,
}

impl Turner {
    /// With the chains that the user declares; `has_tail` whether [`Chain::explained`] is wanted.
    pub fn new(declared: Vec<DeclaredChain>, has_tail: bool) -> Turner {
        Turner {
            has_tail,
            window: Window::default(),
            counted: Counted::default(),
            declared: declared.len(),
            followed: declared,
            processor: taut_capture::ThreadTimes::default(),
            keeping: None,
            before: None,
        }
    }

    /// Takes a record; `time_ns` is CLOCK_MONOTONIC of its first row.
    pub fn take(&mut self, time_ns: u64, record: Record) {
        if let Some(keeping) = &mut self.keeping {
            keeping.take(time_ns, &record);
        }
        self.window.take(time_ns, record);
    }

    /// What a recording that begins now needs first.
    pub(crate) fn known(&self) -> Vec<Record> {
        self.window.known()
    }

    /// Counts what ended by `until_ns` (CLOCK_MONOTONIC), up to which the stream is complete. What is slow happens
    /// before `state` is asked for.
    pub fn turn<'s>(
        &mut self,
        info: &Info,
        until_ns: u64,
        state: impl FnOnce() -> std::sync::MutexGuard<'s, State>,
        since_ns: u64,
    ) {
        let began = Instant::now();
        self.window.forget(since_ns.saturating_sub(HORIZON_NS));
        self.counted.begin(since_ns);
        self.counted.forget(since_ns.saturating_sub(2 * HORIZON_NS));
        let (chains, mut threads) = self.analyse(info, since_ns, until_ns);
        chains.iter().for_each(|turned| self.follow(turned));
        if info.tier == Tier::Stamps {
            threads = self.threads_of_proc();
        }
        let span_ns = until_ns.saturating_sub(since_ns);
        let turn_ns = began.elapsed().as_nanos() as u64;
        let mut state = state();
        let state = &mut *state;
        state.info = Some(info.clone());
        (state.until_ns, state.turns, state.turn_ns) = (until_ns, state.turns + 1, turn_ns);
        // The first turn may have read what was before it.
        let before = self.before.replace((self.window.stamps, self.window.ros_events));
        let before = before.unwrap_or((self.window.stamps, self.window.ros_events));
        let per_s = |now: u64, before: u64| (now - before) as f64 * 1e9 / span_ns.max(1) as f64;
        state.stamps_per_s = per_s(self.window.stamps, before.0);
        state.ros_events_per_s = per_s(self.window.ros_events, before.1);
        (state.stamps, state.kernel_events) = (self.window.stamps, self.window.kernel_events);
        state.ros_events = self.window.ros_events;
        (state.telemetry, state.lost) = (self.window.telemetry, self.window.lost);
        state.keeping = self.keeping.as_ref().map(Keeping::told);
        take_chains(state, chains, span_ns);
        take_threads(state, threads);
    }

    fn analyse(&mut self, info: &Info, since_ns: u64, until_ns: u64) -> (Vec<Turned>, Threads) {
        let explain = ExplainOptions { worst: 0, only_rows: !self.has_tail, ..ExplainOptions::default() };
        let followed = self.followed.clone();
        let mut analyzer = Analyzer::new(Config { followed, is_stretch: true, explain, ..Config::default() });
        self.window.feed(&mut analyzer);
        let mut rows = Rows::new(&mut self.counted, since_ns, until_ns);
        let analysis = analyzer.finish_by_row(info.clone(), None, Vec::new(), 0, &mut rows);
        // An error says that nothing happened in these seconds.
        let chains = analysis.map(|analysis| analysis.chains).unwrap_or_default();
        let turned = |chain: taut_analysis::Chain| {
            let points: Vec<String> = chain.points.iter().map(|point| point.name.clone()).collect();
            let figures = rows.figures(&chain.name, &points, chain.deadline_ns);
            Turned { chain, points, figures }
        };
        (chains.into_iter().map(turned).collect(), rows.threads)
    }

    /// What threads did, where no kernel events say it.
    fn threads_of_proc(&mut self) -> Threads {
        let of_tree = self.window.all_recorded().map(|thread| (thread.pid, thread.tid));
        let read = self.processor.read(of_tree);
        let named = |(tid, states)| {
            let comm = self.window.recorded(tid).map_or("", |thread| thread.comm.as_str());
            (tid, (format!("{comm}/{tid}"), states))
        };
        read.into_iter().map(named).collect()
    }

    /// Remembers a chain's points, or forgets them when most of its messages go elsewhere by now.
    fn follow(&mut self, Turned { chain, points, .. }: &Turned) {
        let known = self.followed.iter().position(|followed| followed.name == chain.name);
        let elsewhere = chain.branches.iter().any(|branch| 2 * branch.messages > chain.messages);
        match known {
            Some(at) if at >= self.declared && elsewhere => drop(self.followed.remove(at)),
            None if !elsewhere && chain.end_to_end.distribution.n >= ENOUGH_MESSAGES => {
                self.followed.push(DeclaredChain {
                    name: chain.name.clone(),
                    points: points.clone(),
                    deadline_ns: chain.deadline_ns,
                });
            }
            _ => {}
        }
    }
}

/// A chain of a turn, with what is new of it.
struct Turned {
    chain: taut_analysis::Chain,
    points: Vec<String>,
    figures: LiveFigures,
}

fn take_chains(state: &mut State, turned: Vec<Turned>, span_ns: u64) {
    let until_ns = state.until_ns;
    // Who was silent was so for as long as the others spoke.
    for silent in state.chains.iter_mut().filter(|known| turned.iter().all(|turned| turned.chain.name != known.name)) {
        silent.recent.push_back((until_ns, span_ns, LiveFigures::default()));
        silent.explained = Explained::default();
    }
    for Turned { chain, points, figures } in turned {
        let at = state.chains.iter().position(|known| known.name == chain.name).unwrap_or_else(|| {
            state.chains.push(Chain { name: chain.name.clone(), ..Chain::default() });
            state.chains.len() - 1
        });
        let known = &mut state.chains[at];
        if known.points != points {
            // As many figures as hops, of these points.
            known.recent.clear();
            known.total.hops.clear();
            known.points = points;
        }
        known.deadline_ns = chain.deadline_ns;
        known.explained = chain.explained;
        known.total.add(&figures);
        known.recent.push_back((until_ns, span_ns, figures));
    }
    for chain in &mut state.chains {
        chain.recent.retain(|(at_ns, _, _)| at_ns.saturating_add(RECENT_NS) > until_ns);
    }
    state.chains.sort_by(|a, b| b.total.messages().cmp(&a.total.messages()).then_with(|| a.name.cmp(&b.name)));
}

fn take_threads(state: &mut State, turned: Threads) {
    let until_ns = state.until_ns;
    for (tid, (name, states)) in turned {
        let at = state.threads.iter().position(|known| known.tid == tid).unwrap_or_else(|| {
            state.threads.push(Thread { tid, ..Thread::default() });
            state.threads.len() - 1
        });
        state.threads[at].name = name;
        state.threads[at].recent.push_back((until_ns, states));
    }
    for thread in &mut state.threads {
        thread.recent.retain(|(at_ns, _)| at_ns.saturating_add(RECENT_NS) > until_ns);
    }
    state.threads.retain(|thread| !thread.recent.is_empty());
    state.threads.sort_by_key(|thread| thread.tid);
}
