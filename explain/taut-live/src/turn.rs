//! A turn: the last seconds go through the analysis of a report, and what is new goes into the [`State`].

use std::time::Instant;

use taut_analysis::{Analyzer, Config, DeclaredChain, ExplainOptions, Explained};
use taut_recording::{Info, Record, Tier};

use crate::{
    hosts::Hosts,
    keep::Keeping,
    messages::{Counted, Rows, Threads},
    state::{Chain, LiveFigures, Lost, RECENT_NS, State, Thread},
    window::Window,
};

/// How long a message may take to be seen whole.
pub const HORIZON_NS: u64 = 1_500_000_000;
/// What is kept while nothing is known of the clocks of several hosts.
const UNALIGNED_NS: u64 = 10_000_000_000;
/// And at most for so long where another host is behind.
const LONGEST_LAG_NS: u64 = 60_000_000_000;
/// A chain keeps its points once so many messages went all the way.
const ENOUGH_MESSAGES: u64 = 10;

/// Takes in the records of a stream, or of one for each of several hosts, and turns them into a [`State`].
pub struct Turner {
    has_tail: bool,
    /// Whether its threads are in this host's /proc.
    is_here: bool,
    /// One a host.
    windows: Vec<Window>,
    /// What makes one of them, where there are several.
    hosts: Option<Hosts>,
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
        Turner::of_hosts(1, true, declared, has_tail)
    }

    /// The same of so many hosts, which get their names later. `is_here`: it is this host alone.
    pub(crate) fn of_hosts(hosts: usize, is_here: bool, declared: Vec<DeclaredChain>, has_tail: bool) -> Turner {
        Turner {
            has_tail,
            is_here,
            windows: (0..hosts).map(|_| Window::default()).collect(),
            hosts: None,
            counted: Counted::new(hosts > 1),
            declared: declared.len(),
            followed: declared,
            processor: taut_capture::ThreadTimes::default(),
            keeping: None,
            before: None,
        }
    }

    /// Takes a record; `time_ns` is CLOCK_MONOTONIC of its first row.
    pub fn take(&mut self, time_ns: u64, record: Record) {
        self.take_of(0, time_ns, record);
    }

    /// The same of a host's stream, by its clock.
    pub(crate) fn take_of(&mut self, host: usize, time_ns: u64, record: Record) {
        if let Some(keeping) = &mut self.keeping {
            keeping.take(time_ns, &record);
        }
        self.windows[host].take(time_ns, record);
    }

    /// What a recording of the first host that begins now needs first.
    pub(crate) fn known(&self) -> Vec<Record> {
        self.windows[0].known()
    }

    /// CLOCK_MONOTONIC of a host's latest record; 0 before the first.
    pub(crate) fn latest_ns(&self, host: usize) -> u64 {
        self.windows[host].latest_ns
    }

    /// What a host is called; empty where there is one.
    pub(crate) fn host_name(&self, host: usize) -> &str {
        self.hosts.as_ref().map_or("", |hosts| hosts.name(host))
    }

    /// Aligns the clocks of several hosts by their last seconds. `hosts` makes them when they are needed first.
    ///
    /// # Errors
    /// Nothing is known of the clocks yet: why.
    pub(crate) fn align(&mut self, infos: &[&Info], hosts: impl FnOnce() -> Hosts) -> Result<(), String> {
        let aligned = self.hosts.get_or_insert_with(hosts).align(&self.windows, infos, &self.followed);
        if aligned.is_err() {
            self.forget_old();
        }
        aligned
    }

    /// For a round that analyses nothing.
    pub(crate) fn forget_old(&mut self) {
        self.windows.iter_mut().for_each(|window| window.forget(window.latest_ns.saturating_sub(UNALIGNED_NS)));
    }

    /// The first host's CLOCK_MONOTONIC when this one's shows `time_ns`.
    pub(crate) fn time(&self, host: usize, time_ns: u64) -> Option<u64> {
        self.hosts.as_ref().map_or(Some(time_ns), |hosts| hosts.time(host, time_ns))
    }

    /// Counts what ended by `until_ns` (CLOCK_MONOTONIC of the first host), up to which the streams are complete. What is slow happens
    /// before `state` is asked for.
    pub fn turn<'s>(
        &mut self,
        infos: &[&Info],
        until_ns: u64,
        state: impl FnOnce() -> std::sync::MutexGuard<'s, State>,
        since_ns: u64,
    ) {
        let began = Instant::now();
        for host in 0..self.windows.len() {
            // By the host's own clock.
            let latest_ns = self.windows[host].latest_ns;
            let Some(ahead_ns) = self.time(host, latest_ns).map(|at_ns| at_ns.saturating_sub(since_ns)) else { return };
            let since_ns = if self.hosts.is_some() { latest_ns.saturating_sub(ahead_ns) } else { since_ns };
            // A host whose stream is slower than its recording delays the others by at most this time.
            let longest_ns = latest_ns.saturating_sub(LONGEST_LAG_NS);
            self.windows[host].forget(since_ns.saturating_sub(HORIZON_NS).max(longest_ns));
        }
        self.counted.begin(since_ns);
        self.counted.forget(since_ns.saturating_sub(2 * HORIZON_NS));
        let joined = self.hosts.as_ref().and_then(|hosts| hosts.info(infos));
        let info = joined.unwrap_or_else(|| infos[0].clone());
        let (chains, mut threads) = self.analyse(infos, &info, since_ns, until_ns);
        chains.iter().for_each(|turned| self.follow(turned));
        if info.tier == Tier::Stamps && self.is_here {
            threads = self.threads_of_proc();
        }
        let span_ns = until_ns.saturating_sub(since_ns);
        let turn_ns = began.elapsed().as_nanos() as u64;
        let mut state = state();
        let state = &mut *state;
        state.info = Some(info);
        (state.until_ns, state.turns, state.turn_ns) = (until_ns, state.turns + 1, turn_ns);
        let sum = |of: fn(&Window) -> u64| self.windows.iter().map(of).sum::<u64>();
        (state.stamps, state.ros_events) = (sum(|of| of.stamps), sum(|of| of.ros_events));
        (state.kernel_events, state.telemetry) = (sum(|of| of.kernel_events), sum(|of| of.telemetry));
        // The first turn may have read what was before it.
        let before = self.before.replace((state.stamps, state.ros_events)).unwrap_or((state.stamps, state.ros_events));
        let per_s = |now: u64, before: u64| (now - before) as f64 * 1e9 / span_ns.max(1) as f64;
        state.stamps_per_s = per_s(state.stamps, before.0);
        state.ros_events_per_s = per_s(state.ros_events, before.1);
        state.lost = self.windows.iter().fold(Lost::default(), |lost, of| lost.and(of.lost));
        state.keeping = self.keeping.as_ref().map(Keeping::told);
        state.clocks = self.hosts.as_ref().map_or(Vec::new(), Hosts::clocks);
        state.unaligned = None;
        take_chains(state, chains, span_ns);
        take_threads(state, threads);
    }

    fn analyse(&mut self, infos: &[&Info], info: &Info, since_ns: u64, until_ns: u64) -> (Vec<Turned>, Threads) {
        let explain = ExplainOptions { worst: 0, only_rows: !self.has_tail, ..ExplainOptions::default() };
        let followed = self.followed.clone();
        let mut analyzer = Analyzer::new(Config { followed, is_stretch: true, explain, ..Config::default() });
        match &self.hosts {
            Some(hosts) => hosts.feed(&self.windows, infos, &mut analyzer),
            None => self.windows[0].feed(&mut analyzer),
        }
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
        let of_tree = self.windows[0].all_recorded().map(|thread| (thread.pid, thread.tid));
        let read = self.processor.read(of_tree);
        let named = |(tid, states)| {
            let comm = self.windows[0].recorded(tid).map_or("", |thread| thread.comm.as_str());
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
