//! Each message once: windows overlap, so that a message that ends in one has its beginning in it, too.

use std::collections::BTreeMap;

use foldhash::HashMap;
use taut_analysis::{Cause, CauseRow, HopRow, MessageRow, Row, RowSink};

use crate::state::{Hop, LiveFigures};

/// Messages that were counted, by identity, with the moments of their last stamps. The analysis takes stamps of one id for one message, whatever
/// chain they are of, so a chain that is found again counts no message twice.
#[derive(Default)]
pub struct Counted {
    ends: HashMap<u64, u64>,
    /// What ended before the first turn is not of this stretch, and may be cut.
    begins_ns: Option<u64>,
    /// Whether times are of several hosts: they move by a little from turn to turn, and with them what tells a message that has no id. So each
    /// counts in the turn in which it ended.
    is_of_hosts: bool,
}

impl Counted {
    /// Of several hosts, or of one.
    pub fn new(is_of_hosts: bool) -> Counted {
        Counted { is_of_hosts, ..Counted::default() }
    }

    /// Forgets those that ended before; no later window holds a stamp of theirs.
    pub fn forget(&mut self, before_ns: u64) {
        self.ends.retain(|_, end_ns| *end_ns >= before_ns);
    }

    /// The first turn begins here; later ones do not change it.
    pub fn begin(&mut self, since_ns: u64) {
        self.begins_ns.get_or_insert(since_ns);
    }

    /// Whether this message ended by `until_ns` and was not counted before, in the turn that ended at `since_ns`.
    fn is_new(&mut self, message: &MessageRow<'_>, since_ns: u64, until_ns: u64) -> bool {
        if message.outcome == "in_flight" || message.end_ns > until_ns || self.is_of_hosts && message.end_ns <= since_ns
        {
            return false;
        }
        let end_ns = self.ends.entry(message.identity).or_insert(0);
        // What is left of a message in a later window does not begin after the end that it had.
        let is_new = message.start_ns > *end_ns && self.begins_ns.is_none_or(|begins_ns| message.end_ns > begins_ns);
        *end_ns = message.end_ns.max(*end_ns);
        is_new
    }
}

/// By tid: "comm/tid", and ns by state.
pub type Threads = HashMap<i32, (String, BTreeMap<&'static str, u64>)>;

/// Takes a window's rows.
pub struct Rows<'a> {
    counted: &'a mut Counted,
    since_ns: u64,
    until_ns: u64,
    /// Places in `rowed`.
    chains: HashMap<String, usize>,
    rowed: Vec<Rowed>,
    /// The message that hops and causes are now of, if it counts.
    current: Option<Current>,
    /// What threads did within the turn.
    pub threads: Threads,
}

/// What a chain's messages came to; hops are known by their points until the chain is.
#[derive(Default)]
struct Rowed {
    way: Vec<u64>,
    outcomes: BTreeMap<String, u64>,
    partial: u64,
    hops: Vec<Rowing>,
}

struct Rowing {
    number: u32,
    from: String,
    hop: Hop,
}

struct Current {
    /// Place in `rowed`.
    chain: usize,
    /// By number of the hop's entry in [`Rowed::hops`].
    causes: Vec<(usize, Cause, u64)>,
    hop: usize,
}

impl<'a> Rows<'a> {
    /// Counts messages that ended by `until_ns`, and states from `since_ns` on.
    pub fn new(counted: &'a mut Counted, since_ns: u64, until_ns: u64) -> Rows<'a> {
        let (chains, threads) = (HashMap::default(), HashMap::default());
        Rows { counted, since_ns, until_ns, chains, rowed: Vec::new(), current: None, threads }
    }

    /// The figures of a chain with these points.
    pub fn figures(&mut self, chain: &str, points: &[String], deadline_ns: Option<u64>) -> LiveFigures {
        self.close();
        let Some(at) = self.chains.remove(chain) else { return LiveFigures::default() };
        let rowed = std::mem::take(&mut self.rowed[at]);
        let mut figures = LiveFigures { outcomes: rowed.outcomes, partial: rowed.partial, ..LiveFigures::default() };
        rowed.way.iter().for_each(|ns| figures.way.record(*ns));
        figures.missed =
            rowed.way.iter().filter(|ns| deadline_ns.is_some_and(|deadline| **ns > deadline)).count() as u64;
        figures.hops.resize_with(points.len().saturating_sub(1), Hop::default);
        for Rowing { number, from, hop } in rowed.hops {
            // Who left out points did not take the hop.
            let at = number as usize - 1;
            if points.get(at) == Some(&from) {
                figures.hops[at] = hop;
            }
        }
        figures
    }

    fn hop(&mut self, row: &HopRow<'_>) {
        let Some(current) = &mut self.current else { return };
        let hops = &mut self.rowed[current.chain].hops;
        let is_it = |rowing: &Rowing| rowing.number == row.hop && rowing.from == row.from;
        // Hops come in order, so it is mostly the next one.
        let after = current.hop + 1;
        let known = if hops.get(after).is_some_and(is_it) { Some(after) } else { hops.iter().position(is_it) };
        current.hop = known.unwrap_or_else(|| {
            hops.push(Rowing { number: row.hop, from: row.from.to_owned(), hop: Hop::default() });
            hops.len() - 1
        });
        hops[current.hop].hop.delay.record(row.duration_ns);
    }

    fn cause(&mut self, row: &CauseRow<'_>) {
        let Some(current) = &mut self.current else { return };
        let hop = current.hop;
        match current.causes.iter_mut().find(|(at, cause, _)| (*at, *cause) == (hop, row.cause)) {
            Some((_, _, ns)) => *ns += row.duration_ns,
            None => current.causes.push((hop, row.cause, row.duration_ns)),
        }
    }

    /// The message has no more rows.
    fn close(&mut self) {
        let Some(Current { chain, causes, .. }) = self.current.take() else { return };
        for (hop, cause, ns) in causes {
            self.rowed[chain].hops[hop].hop.causes.entry(cause).or_default().record(ns);
        }
    }
}

impl RowSink for Rows<'_> {
    fn row(&mut self, row: Row<'_>) {
        match row {
            Row::Hop(hop) => self.hop(&hop),
            Row::Cause(cause) => self.cause(&cause),
            Row::State(state) if state.is_recorded => {
                let from = state.start_ns.max(self.since_ns);
                let ns = state.start_ns.saturating_add(state.duration_ns).min(self.until_ns).saturating_sub(from);
                if ns > 0 {
                    let (name, states) = self.threads.entry(state.tid).or_default();
                    state.thread.clone_into(name);
                    *states.entry(state.state).or_default() += ns;
                }
            }
            // `message` takes these.
            Row::Message(_) | Row::State(_) => {}
        }
    }

    /// What was counted is not walked again: windows overlap by most of their length.
    fn message(&mut self, message: MessageRow<'_>) -> bool {
        self.close();
        if !self.counted.is_new(&message, self.since_ns, self.until_ns) {
            return false;
        }
        let chain = match self.chains.get(message.chain) {
            Some(at) => *at,
            None => {
                self.rowed.push(Rowed::default());
                self.chains.insert(message.chain.to_owned(), self.rowed.len() - 1);
                self.rowed.len() - 1
            }
        };
        let rowed = &mut self.rowed[chain];
        match rowed.outcomes.get_mut(message.outcome) {
            Some(count) => *count += 1,
            None => drop(rowed.outcomes.insert(message.outcome.to_owned(), 1)),
        }
        rowed.way.extend(message.way_ns);
        rowed.partial += u64::from(message.way_ns.is_none() && message.outcome == "applied");
        self.current = Some(Current { chain, causes: Vec::new(), hop: 0 });
        true
    }
}
