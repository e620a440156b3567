//! Causes of a chain's latency: walks the critical path of every message, sums it up, and compares the tail with typical
//! messages.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use foldhash::HashMap;
use taut_points::{Pass, PointId};
use taut_stats::Distribution;
use taut_timelines::{ThreadState, Timelines};

use crate::{
    context::Context,
    crowds::Crowds,
    error::Error,
    explained::{
        Cause, CauseShare, Explained, Lane, MessagePath, MessageTime, Party, PathPiece, Selected, State, TimePiece,
    },
    hypotheses,
    kind::Kind,
    ledger::{self, Groups, Ledger},
    line::ChainLine,
    lock_holders,
    messages::{Message, Messages},
    modes,
    options::{Above, ExplainOptions},
    passage::Passage,
    queues::{Queues, Way},
    recommendations,
    replay::Replay,
    result::Chain,
    rows::{MessageRow, RowSink, Teller},
    sides,
    under_way::{Hops, UnderWay},
    walk::{Behind, KERNEL_EVENTS_LOST, Piece, STAMPS_LOST, Walker},
};

/// Messages that are looked at before the others, to learn what is typical.
const LEARNED_FROM: usize = 200;

/// With so many messages that no quantile is carried says that they depend on each other, not that they are few.
const MANY: usize = 100;

/// Walks the messages once: hands them to `sink`, and fills in `chain.explained`, unless only rows are wanted; without kernel
/// events and marks, with one line that reports it. Returns an error for each hypothesis about a factor that this chain does not have.
#[expect(clippy::too_many_arguments, reason = "what is examined, with what, and where rows go")]
pub(crate) fn explain(
    chain: &mut Chain,
    messages: &Messages,
    line: &ChainLine,
    context: &Context<'_>,
    walker: &mut Walker<'_>,
    wanted: &ExplainOptions,
    strangers: &[i32],
    sink: Option<&mut dyn RowSink>,
) -> Vec<Error> {
    let columns = line.columns();
    let all = line.messages(messages);
    // Of each row: which of the messages it is.
    let mut through: Vec<u32> = Vec::new();
    let mut ledger = Ledger::default();
    let mut sides = wanted.sides.then(|| sides::Collector::new(line.points.len() - 1, walker.is_blind()));
    walker.verbose = false;
    walker.receivers.clear();
    walker.shared = shared(&all, &columns, walker.timelines);
    let warm = chain.startup.as_ref().map_or(0, |startup| startup.messages);
    let counted = &all[(warm as usize).min(all.len())..];
    let passages = counted.iter().filter_map(|(_, stamps)| Passage::of(stamps, &columns));
    let mut queues = Queues::learn(&some(counted, &columns), passages, walker);
    walker.busy.clear();
    // Where nothing but the queue has to be known of what is in a block.
    let is_plain = !walker.spans.has_locks() && walker.holds.is_empty();
    walker.sums_blocks =
        is_plain && sides.is_none() && sink.is_none() && walker.spans.holes_between(0, u64::MAX).next().is_none();
    let mut kept = Kept::new(wanted);
    let mut teller = sink.map(|sink| Teller::new(chain, &all, line, context, sink));
    // Messages that do not count have rows all the same. They come from queues of their own: the figures of the others do not depend
    // on whether rows are read.
    let mut of_all = teller.as_ref().map(|_| queues.clone());
    let mut under_way = UnderWay::new();
    for (nth, next) in (0..).zip(all.iter().map(Some).chain([None])) {
        let next_ns = next.map_or(u64::MAX, |(_, stamps)| stamps[0].time_ns);
        loop {
            walker.since_ns = under_way.since_ns().unwrap_or(0);
            let went_on = under_way.go_on(next_ns, |one: &mut OnWay<'_>| {
                let Some((hop, from, to)) = one.way.next() else { return };
                walker.at_hop = hop;
                let pieces = match walker.is_blind() {
                    true => vec![Piece::unknown(from.time_ns, to.time_ns, to.tid)],
                    false => walker.hop(one.way.passage.id, from, to),
                };
                if sides.is_some() {
                    one.walked.extend(pieces.iter().map(|piece| (hop, *piece)));
                }
                if let Some((queues, way)) = of_all.as_mut().zip(one.of_all.as_mut()) {
                    queues.divide(way, pieces.clone(), walker);
                }
                match one.counts || one.of_all.is_none() {
                    true => queues.divide(&mut one.way, pieces, walker),
                    false => one.way.skip(),
                }
            });
            while let Some(one) = under_way.pop() {
                let OnWay { nth, way: Way { passage, mut divided, .. }, of_all, row, is_explained, counts, walked } =
                    one;
                match &mut sides {
                    Some(sides) if counts => sides.add(passage.start_ns(), &walked, walker, strangers),
                    Some(sides) if is_explained => sides.add_startup(&walked, walker, strangers),
                    _ => {}
                }
                if let Some((teller, row)) = teller.as_mut().zip(row) {
                    let told = of_all.filter(|_| !counts).map(|way| way.divided);
                    teller.hops(&row, &passage, &told.as_ref().unwrap_or(&divided).pieces, walker);
                }
                if !counts {
                    continue;
                }
                if walker.is_blind() {
                    divided.pieces = passage.unknown();
                }
                kept.take(&passage, &divided.pieces);
                ledger.add(passage.id, passage.start_ns(), passage.total_ns(), divided);
                through.push(nth);
            }
            if !went_on {
                break;
            }
        }
        let Some(&(message, stamps)) = next else { break };
        let passage = Passage::partly(stamps, &columns);
        let told = teller.as_mut().map(|teller| teller.message(nth.into(), message, stamps, &passage, context));
        let is_explained = !wanted.only_rows && passage.is_whole(line.points.len());
        let counts = is_explained && u64::from(nth) >= warm;
        let row = match told {
            Some(None) => continue,
            None if !(counts || is_explained && sides.is_some()) => continue,
            told => told.flatten(),
        };
        let of_all = of_all.as_mut().map(|of_all| of_all.begin(passage.clone(), walker));
        let way = if counts || of_all.is_none() { queues.begin(passage, walker) } else { Way::of(passage) };
        under_way.push(OnWay { nth, way, of_all, row, is_explained, counts, walked: Vec::new() });
    }
    if wanted.only_rows {
        return Vec::new();
    }
    let totals = ledger.order();
    let selection = select(chain, line.period_ns, &ledger, &totals, wanted);
    ledger.close(selection.limit_ns);
    let whole = ledger.groups(|kind| kind.cause);
    let crowds = Crowds::of(&ledger, walker);
    let mut explained = Explained {
        messages: through.len() as u64,
        tail_messages: ledger.tail.len() as u64,
        tail_in_holes: in_holes(&ledger, walker),
        selected: selection.by,
        tail_quantile: match selection.by {
            Selected::Tail(quantile) | Selected::AboveQuantile(quantile) => Some(quantile),
            _ => None,
        },
        tail_limit_ns: selection.limit_ns.unwrap_or(0),
        modes: modes::modes(chain, &ledger, walker),
        causes: causes(&ledger, &whole, &crowds, walker),
        by_cause: by_cause(&whole),
        hops: if walker.is_blind() {
            Vec::new()
        } else {
            hops(&ledger, &whole, &crowds, walker, line.points.len() - 1)
        },
        responsible: responsible(&ledger, &crowds, walker),
        sides: sides.map(sides::Collector::finish),
        ..Explained::default()
    };
    let mut refused = Vec::new();
    if !wanted.only_causes {
        let closed = std::mem::take(&mut queues.closed);
        let replay = Replay::of(
            &ledger,
            |row| Passage::of(all[through[row] as usize].1, &columns),
            |tid| walker.server(tid),
            |tid| queues.line(tid),
            |tid| queues.trailing_ns(tid),
            closed,
        );
        refused = hypotheses::judge(&mut explained, chain, &ledger, totals, replay.as_ref(), walker, wanted);
        explained.recommendations =
            recommendations::recommend(&explained, chain, &recommendations::late_threads(&ledger, walker));
    }
    explained.lock_holders = lock_holders::of(&ledger, walker);
    explained.name_locks();
    if wanted.all {
        explained.times = ledger.rows.iter().map(|row| message_time(row, &ledger, walker, context)).collect();
    }
    // One excess is divided in one way: by causes where they are known, else by delays.
    if explained.by_cause.first().is_some_and(|share| share.cause != Cause::Unknown && share.tail_share > 0.0) {
        for (hop, shares) in chain.hops.iter_mut().zip(&explained.hops) {
            hop.tail_share = Some(shares.iter().map(|share| share.tail_share).sum());
        }
    }
    (walker.verbose, walker.sums_blocks) = (true, false);
    explained.paths = chosen(&ledger, wanted)
        .into_iter()
        .filter_map(|at| {
            let passage = Passage::of(all[through[at] as usize].1, &columns)?;
            let divided = kept.pieces.remove(&at);
            Some(path(&passage, divided, message_time(&ledger.rows[at], &ledger, walker, context), walker, context))
        })
        .collect();
    chain.explained = explained;
    refused
}

/// A message on its way through the division.
struct OnWay<'a> {
    nth: u32,
    way: Way,
    /// The same among those that do not count, too.
    of_all: Option<Way>,
    row: Option<MessageRow<'a>>,
    is_explained: bool,
    counts: bool,
    /// Pieces as walked, where sides are wanted.
    walked: Vec<(u16, Piece)>,
}

impl Hops for OnWay<'_> {
    fn starts_ns(&self) -> u64 {
        self.way.passage.passes.first().map_or(u64::MAX, |(_, pass)| pass.time_ns)
    }

    fn next_ends_ns(&self) -> Option<u64> {
        self.way.next().map(|(_, _, to)| to.time_ns)
    }
}

/// Threads that stamp a chain's messages and run on one CPU only, which another of them runs on, too.
fn shared(all: &[(&Message, &[Pass])], columns: &HashMap<PointId, usize>, timelines: &Timelines) -> HashMap<i32, u16> {
    let of_line = all.iter().flat_map(|(_, stamps)| *stamps).filter(|stamp| columns.contains_key(&stamp.point));
    let mut threads: Vec<i32> = of_line.map(|stamp| stamp.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let only = |tid: &i32| Some((*tid, timelines.threads.get(tid)?.only_cpu()?));
    let mut on: HashMap<i32, u16> = threads.iter().filter_map(only).collect();
    let alone: Vec<i32> = on
        .iter()
        .filter(|(_, cpu)| on.values().filter(|other| other == cpu).count() < 2)
        .map(|(tid, _)| *tid)
        .collect();
    on.retain(|tid, _| !alone.contains(tid));
    on
}

/// Some of the messages that pass the whole chain, spread over all.
fn some(all: &[(&Message, &[Pass])], columns: &HashMap<PointId, usize>) -> Vec<Passage> {
    let every = all.len().div_ceil(LEARNED_FROM).max(1);
    all.iter().step_by(every).filter_map(|(_, stamps)| Passage::of(stamps, columns)).collect()
}

/// Pieces of the rows whose path may be shown, where a message waited behind others.
struct Kept<'a> {
    wanted: &'a ExplainOptions,
    rows: usize,
    pieces: HashMap<usize, Vec<(u16, Piece)>>,
    /// (total, row) of the worst so far that are not named, the least of them first.
    worst: BinaryHeap<Reverse<(u64, Reverse<usize>)>>,
}

impl<'a> Kept<'a> {
    fn new(wanted: &'a ExplainOptions) -> Kept<'a> {
        Kept { wanted, rows: 0, pieces: HashMap::default(), worst: BinaryHeap::new() }
    }

    fn take(&mut self, passage: &Passage, pieces: &[(u16, Piece)]) {
        let (row, total_ns) = (self.rows, passage.total_ns());
        self.rows += 1;
        if pieces.iter().all(|(_, piece)| piece.behind.is_none()) {
            return;
        }
        if !is_asked(self.wanted, passage.id, total_ns) {
            let is_full = self.worst.len() >= self.wanted.worst;
            if is_full && self.worst.peek().is_none_or(|Reverse(least)| *least >= (total_ns, Reverse(row))) {
                return;
            }
            self.worst.push(Reverse((total_ns, Reverse(row))));
            if is_full && let Some(Reverse((_, Reverse(least)))) = self.worst.pop() {
                self.pieces.remove(&least);
            }
        }
        self.pieces.insert(row, pieces.to_vec());
    }
}

/// Which messages are explained, and above which time they begin.
struct Selection {
    by: Selected,
    limit_ns: Option<u64>,
}

/// Those that the user names; else those that missed the deadline, all of them; else the tail. `sorted`: the rows' totals.
fn select(
    chain: &Chain,
    period_ns: Option<u64>,
    ledger: &Ledger,
    sorted: &[u64],
    wanted: &ExplainOptions,
) -> Selection {
    match wanted.above {
        Some(Above::Quantile(q)) => {
            return Selection { by: Selected::AboveQuantile(q), limit_ns: taut_stats::rank(sorted, q) };
        }
        Some(Above::Ns(ns)) => return Selection { by: Selected::AboveTime, limit_ns: Some(ns) },
        None => {}
    }
    if let Some(deadline_ns) = chain.deadline_ns.filter(|deadline| sorted.last().is_some_and(|last| last > deadline)) {
        return Selection { by: Selected::Missed, limit_ns: Some(deadline_ns) };
    }
    let all = &chain.end_to_end.distribution;
    // A sink may have left some out.
    let carried = match all.n == ledger.rows.len() as u64 {
        true => all.highest_to_p99(),
        false => {
            let ways: Vec<u64> = ledger.rows.iter().map(|row| row.total_ns).collect();
            Distribution::of(&ways, sorted).highest_to_p99()
        }
    };
    let tail = match carried {
        // Where many messages tie with the slowest, those are the tail.
        Some((quantile, ns)) if sorted.last() == Some(&ns) && sorted[0] < ns => {
            Selection { by: Selected::Tail(quantile), limit_ns: Some(ns - 1) }
        }
        Some((quantile, ns)) => Selection { by: Selected::Tail(quantile), limit_ns: Some(ns) },
        // One long burst has no tail, as where more comes than is handled: what the longest tenth was spent on is known all the same.
        None if sorted.len() >= MANY => {
            Selection { by: Selected::AboveQuantile(0.9), limit_ns: taut_stats::rank(sorted, 0.9) }
        }
        None => Selection { by: Selected::Nothing, limit_ns: None },
    };
    let overruns = |period_ns: &u64| sorted.last().is_some_and(|last| last > period_ns);
    match period_ns.filter(|period_ns| overruns(period_ns) && tail.limit_ns.is_none_or(|limit| *period_ns < limit)) {
        Some(period_ns) => Selection { by: Selected::Overran, limit_ns: Some(period_ns) },
        None => tail,
    }
}

/// How many messages of the tail have time of which stamps or kernel events are missing.
fn in_holes(ledger: &Ledger, walker: &Walker<'_>) -> u64 {
    let is_hole = |kind: &Kind| [STAMPS_LOST, KERNEL_EVENTS_LOST].contains(&walker.names.text(kind.detail));
    let holes: Vec<bool> = ledger.kinds.iter().map(is_hole).collect();
    let is_in = |at: &&usize| ledger.amounts_of(&ledger.rows[**at]).any(|(kind, ns)| ns > 0 && holes[kind as usize]);
    ledger.tail.iter().filter(is_in).count() as u64
}

fn causes(ledger: &Ledger, whole: &Groups<Cause>, crowds: &Crowds, walker: &Walker<'_>) -> Vec<CauseShare> {
    let groups = ledger.groups(|kind| (kind.cause, crowds.detail(kind.cause, kind.detail)));
    let shares = groups.shares_of(whole, |(cause, _)| *cause);
    let line = |(line, tail_share): (&ledger::LedgerLine<(Cause, u32)>, f64)| CauseShare {
        messages: line.messages,
        cause: line.group.0,
        detail: walker.names.text(line.group.1).to_owned(),
        tail_share,
        excess_ns: whole.excess_ns(tail_share),
        time_ns: line.time_ns,
        typical_ns: line.typical_ns,
    };
    let mut all: Vec<CauseShare> = groups.lines.iter().zip(shares).map(line).collect();
    all.sort_by(by_share);
    all
}

/// The same by cause alone: shares are those of its details together.
fn by_cause(whole: &Groups<Cause>) -> Vec<CauseShare> {
    let line = |line: &ledger::LedgerLine<Cause>| CauseShare {
        cause: line.group,
        detail: String::new(),
        tail_share: whole.share(line),
        excess_ns: whole.excess_ns(whole.share(line)),
        time_ns: line.time_ns,
        typical_ns: line.typical_ns,
        messages: line.messages,
    };
    whole.lines.iter().map(line).collect()
}

fn hops(
    ledger: &Ledger,
    whole: &Groups<Cause>,
    crowds: &Crowds,
    walker: &Walker<'_>,
    hops: usize,
) -> Vec<Vec<CauseShare>> {
    let groups = ledger.groups(|kind| (kind.hop, kind.cause, crowds.detail(kind.cause, kind.detail)));
    let shares = groups.shares_of(whole, |(_, cause, _)| *cause);
    let mut by_hop = vec![Vec::new(); hops];
    for (line, tail_share) in groups.lines.iter().zip(shares) {
        let (hop, cause, detail) = line.group;
        by_hop[usize::from(hop)].push(CauseShare {
            messages: line.messages,
            cause,
            detail: walker.names.text(detail).to_owned(),
            tail_share,
            excess_ns: whole.excess_ns(tail_share),
            time_ns: line.time_ns,
            typical_ns: line.typical_ns,
        });
    }
    by_hop.iter_mut().for_each(|causes| causes.sort_by(by_share));
    by_hop
}

/// The largest first. What has the same share, as none, is in an order of its own: a report does not change by itself.
fn by_share(a: &CauseShare, b: &CauseShare) -> Ordering {
    let by_time = || b.time_ns.cmp(&a.time_ns).then_with(|| (a.cause, &a.detail).cmp(&(b.cause, &b.detail)));
    b.tail_share.total_cmp(&a.tail_share).then_with(by_time)
}

/// Threads, processes, locks and interrupts that took time from the tail.
fn responsible(ledger: &Ledger, crowds: &Crowds, walker: &Walker<'_>) -> Vec<Party> {
    let mut responsible: HashMap<(&'static str, String), Party> = HashMap::default();
    for at in &ledger.tail {
        let row = &ledger.rows[*at];
        let mut touched: Vec<(&'static str, String)> = Vec::new();
        for (number, ns) in ledger.amounts_of(row) {
            let kind = &ledger.kinds[number as usize];
            for (what, name) in parties(kind, walker, row.start_ns) {
                let name = crowds.party(what, name);
                let party = responsible.entry((what, name.clone())).or_default();
                party.time_ns += ns;
                if !party.causes.contains(&kind.cause) {
                    party.causes.push(kind.cause);
                }
                if !touched.contains(&(what, name.clone())) {
                    party.messages += 1;
                    touched.push((what, name));
                }
            }
        }
    }
    let mut all: Vec<Party> =
        responsible.into_iter().map(|((kind, name), party)| Party { kind: kind.to_owned(), name, ..party }).collect();
    all.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| (&a.kind, &a.name).cmp(&(&b.kind, &b.name))));
    all.truncate(20);
    all
}

/// The party responsible for a piece.
fn parties(kind: &Kind, walker: &Walker<'_>, time_ns: u64) -> Vec<(&'static str, String)> {
    let mut parties = Vec::new();
    match kind.cause {
        Cause::Lock => parties.push(("lock", walker.names.text(kind.detail).to_owned())),
        Cause::Irq => parties.push(("irq", walker.names.text(kind.detail).to_owned())),
        _ => {}
    }
    if kind.other != 0 {
        parties.push(("thread", walker.objects.name(kind.other, time_ns).into_owned()));
        parties.push(("process", walker.objects.process(kind.other)));
    }
    parties
}

fn is_asked(wanted: &ExplainOptions, id: u64, total_ns: u64) -> bool {
    wanted.messages.contains(&id) || wanted.from_ns.is_some_and(|from_ns| total_ns >= from_ns)
}

/// Rows whose path is shown: the worst, worst first, then those asked for.
fn chosen(ledger: &Ledger, wanted: &ExplainOptions) -> Vec<usize> {
    let mut worst: Vec<usize> = ledger.by_total.iter().map(|at| *at as usize).collect();
    let total_ns = |at: &usize| ledger.rows[*at].total_ns;
    let limit_ns = worst.iter().nth_back(wanted.worst).map_or(0, total_ns);
    worst.drain(..worst.partition_point(|at| total_ns(at) < limit_ns));
    worst.sort_by_key(|at| (Reverse(total_ns(at)), *at));
    worst.truncate(wanted.worst);
    let asked = (0..ledger.rows.len()).filter(|at| is_asked(wanted, ledger.rows[*at].id, total_ns(at)));
    let asked: Vec<usize> = asked.filter(|at| !worst.contains(at)).collect();
    worst.extend(asked);
    worst
}

fn message_time(row: &ledger::Row, ledger: &Ledger, walker: &Walker<'_>, context: &Context<'_>) -> MessageTime {
    let mut sums: HashMap<(Cause, u32), u64> = HashMap::default();
    for (number, ns) in ledger.amounts_of(row) {
        let kind = &ledger.kinds[number as usize];
        *sums.entry((kind.cause, kind.detail)).or_default() += ns;
    }
    let mut pieces: Vec<((Cause, u32), u64)> = sums.into_iter().collect();
    pieces.sort_by_key(|((cause, detail), ns)| (Reverse(*ns), *cause, walker.names.text(*detail)));
    let piece = |((cause, detail), ns): ((Cause, u32), u64)| TimePiece {
        cause,
        detail: walker.names.text(detail).to_owned(),
        ns,
    };
    MessageTime {
        id: row.id,
        start_ns: row.start_ns.saturating_sub(context.start_ns),
        total_ns: row.total_ns,
        pieces: pieces.into_iter().map(piece).collect(),
    }
}

/// `divided`: the message's pieces where it waited behind others; what is to be read of them comes from another walk.
fn path(
    passage: &Passage,
    divided: Option<Vec<(u16, Piece)>>,
    time: MessageTime,
    walker: &mut Walker<'_>,
    context: &Context<'_>,
) -> MessagePath {
    let since = |time_ns: u64| time_ns.saturating_sub(context.start_ns);
    let walked = passage.pieces(walker);
    let pieces = match divided {
        None => walked,
        Some(pieces) => with_notes(pieces, &walked),
    };
    let mut tids: Vec<i32> = Vec::new();
    for (_, piece) in &pieces {
        if !tids.contains(&piece.tid) {
            tids.push(piece.tid);
        }
    }
    let path = pieces.iter().map(|(hop, piece)| PathPiece {
        from_ns: since(piece.from_ns),
        to_ns: since(piece.to_ns),
        hop: usize::from(*hop),
        lane: tids.iter().position(|tid| *tid == piece.tid).unwrap_or(0),
        cause: piece.cause,
        detail: walker.names.text(piece.detail).to_owned(),
        behind: match piece.behind {
            Some(Behind::Message(id) | Behind::Turn(id)) => Some(id),
            _ => None,
        },
        by: if piece.other == 0 { String::new() } else { walker.objects.name(piece.other, piece.from_ns).into_owned() },
        note: note(piece, walker),
    });
    let path = path.collect();
    let margin = passage.total_ns() / 10;
    // Damaged recordings have moments as far away as numbers go.
    let end_ns = passage.start_ns().saturating_add(passage.total_ns());
    let (from, to) = (passage.start_ns().saturating_sub(margin), end_ns.saturating_add(margin));
    let lane = |tid: &i32| Lane {
        thread: walker.objects.name(*tid, passage.start_ns()).into_owned(),
        states: walker.timelines.threads.get(tid).map_or(Vec::new(), |timeline| {
            let states = timeline.between(from, to);
            states.map(|(at, start, end)| (since(start), since(end), state(timeline.segments[at].state))).collect()
        }),
    };
    MessagePath {
        time,
        passes: passage.passes.iter().map(|(column, pass)| (*column, since(pass.time_ns))).collect(),
        path,
        lanes: tids.iter().map(lane).collect(),
    }
}

/// The notes of the walked pieces that lie where these do and say the same.
fn with_notes(mut pieces: Vec<(u16, Piece)>, walked: &[(u16, Piece)]) -> Vec<(u16, Piece)> {
    // A sum over many lies where none of them was.
    for (_, piece) in pieces.iter_mut().filter(|(_, piece)| !matches!(piece.behind, Some(Behind::Block(_)))) {
        let at = walked.partition_point(|(_, other)| other.to_ns <= piece.from_ns);
        if let Some((_, other)) = walked.get(at).filter(|(_, other)| other.cause == piece.cause) {
            piece.note = other.note;
        }
    }
    pieces
}

/// What is known of the piece besides, and what it was behind.
fn note(piece: &Piece, walker: &Walker<'_>) -> String {
    let note = walker.names.text(piece.note);
    let behind = match piece.behind {
        None => return note.to_owned(),
        Some(Behind::Message(id) | Behind::Turn(id)) => format!("behind message {id}"),
        Some(Behind::Work(name)) => format!("behind {}", walker.names.text(name)),
        Some(Behind::Block(_)) => "a sum over many messages that it waited behind".to_owned(),
    };
    if note.is_empty() { behind } else { format!("{behind}: {note}") }
}

fn state(state: ThreadState) -> State {
    match state {
        ThreadState::Running => State::Running,
        ThreadState::Preempted => State::Preempted,
        ThreadState::Woken => State::Woken,
        ThreadState::Blocked | ThreadState::Uninterruptible | ThreadState::Stopped => State::Blocked,
        ThreadState::Unknown | ThreadState::Lost | ThreadState::Gone => State::Unknown,
    }
}
