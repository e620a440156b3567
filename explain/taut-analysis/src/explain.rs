//! Whose time it was: walks the critical path of every message of a chain, sums it up, and asks what the
//! tail has that the usual messages have not.

use foldhash::HashMap;
use taut_stats::Distribution;

use crate::{
    Budget, BudgetPiece, Cause, CauseShare, Chain, Culprit, Error, Explained, Lane, MessagePath, PathPiece, State,
    Wanted, advice,
    collect::{Context, Stamp},
    kernel,
    ledger::{Kind, Ledger},
    line::Line,
    messages::Messages,
    rows::{RowSink, Teller},
    sides, suspects,
    walk::{Pass, Piece, Walker},
};

/// A message's passes of the chain's points: (column, pass), in order.
pub(crate) struct Passage {
    pub id: u64,
    pub passes: Vec<(usize, Pass)>,
}

impl Passage {
    /// `None` for a message that did not pass both the first and the last point.
    fn of(stamps: &[Stamp], columns: &HashMap<u32, usize>, context: &Context) -> Option<Passage> {
        Some(Passage::partly(stamps, columns, context)).filter(|passage| passage.is_whole(columns.len()))
    }

    /// Of a message that may have passed some of the points only.
    pub fn partly(stamps: &[Stamp], columns: &HashMap<u32, usize>, context: &Context) -> Passage {
        let of_column = |s: &Stamp| {
            let pass = Pass { time_ns: s.time, tid: context.tids[s.thread as usize] };
            Some((*columns.get(&s.point)?, pass))
        };
        let mut passes: Vec<(usize, Pass)> = stamps.iter().filter_map(of_column).collect();
        passes.sort_by_key(|(column, _)| *column);
        // As in the figures: who seems to reach a point before the one ahead of it took no time.
        let mut latest = 0;
        for (_, pass) in &mut passes {
            latest = latest.max(pass.time_ns);
            pass.time_ns = latest;
        }
        Passage { id: stamps[0].id, passes }
    }

    /// Whether it goes from the first to the last of so many points.
    pub fn is_whole(&self, points: usize) -> bool {
        let ends = self.passes.first().zip(self.passes.last());
        ends.is_some_and(|((first, _), (last, _))| *first == 0 && *last == points - 1)
    }

    /// One piece a hop, when nothing can be known.
    pub fn unknown_by_hop(&self) -> Vec<(u16, Piece)> {
        let piece = |pair: &[(usize, Pass)]| {
            let (from, (column, to)) = (pair[0].1, pair[1]);
            (column as u16 - 1, Piece::unknown(from.time_ns, to.time_ns, to.tid))
        };
        self.passes.windows(2).map(piece).collect()
    }

    /// One piece for all, when nothing can be known.
    fn unknown(&self) -> Vec<(u16, Piece)> {
        let (_, first) = self.passes[0];
        vec![(0, Piece::unknown(first.time_ns, first.time_ns + self.total_ns(), first.tid))]
    }

    fn start_ns(&self) -> u64 {
        self.passes[0].1.time_ns
    }

    pub fn total_ns(&self) -> u64 {
        self.passes[self.passes.len() - 1].1.time_ns - self.start_ns()
    }

    /// The pieces of the whole way, each with its hop: that which ends at the next point passed.
    pub fn pieces(&self, walker: &mut Walker<'_>) -> Vec<(u16, Piece)> {
        let mut pieces = Vec::new();
        for pair in self.passes.windows(2) {
            let hop = pair[1].0 as u16 - 1;
            pieces.extend(walker.hop(self.id, pair[0].1, pair[1].1).into_iter().map(|piece| (hop, piece)));
        }
        pieces
    }
}

/// Walks the messages once: tells them to `sink`, and fills in `chain.explained`, unless only rows are wanted; without kernel
/// events and marks, with one line that says so. Returns the suspects that this chain does not know.
#[expect(clippy::too_many_arguments, reason = "what is looked at, what is looked with, and who is told")]
pub(crate) fn explain(
    chain: &mut Chain,
    messages: &Messages,
    line: &Line,
    context: &Context,
    walker: &mut Walker<'_>,
    wanted: &Wanted,
    strangers: &[i32],
    sink: Option<&mut dyn RowSink>,
) -> Vec<Error> {
    let columns = line.columns();
    let mut through: Vec<&[Stamp]> = Vec::new();
    let mut ledger = Ledger::default();
    let mut sides = wanted.sides.then(|| sides::Collector::new(line.points.len() - 1, walker.is_blind()));
    walker.verbose = false;
    let warm = chain.startup.as_ref().map_or(0, |startup| startup.messages);
    let all = line.messages(messages);
    let mut teller = sink.map(|sink| Teller::new(chain, &all, line, context, sink));
    for (nth, (message, stamps)) in (0..).zip(all) {
        let passage = Passage::partly(stamps, &columns, context);
        let told = teller.as_mut().map(|teller| teller.message(nth, message, stamps, &passage, context));
        let counts = !wanted.only_rows && nth >= warm && passage.is_whole(line.points.len());
        let row = match told {
            Some(None) => continue,
            None if !counts => continue,
            told => told.flatten(),
        };
        let pieces = if walker.is_blind() { passage.unknown_by_hop() } else { passage.pieces(walker) };
        if let Some((teller, row)) = teller.as_mut().zip(row) {
            teller.hops(&row, &passage, &pieces, walker);
        }
        if !counts {
            continue;
        }
        if let Some(sides) = &mut sides {
            sides.add(passage.start_ns(), &pieces, walker, strangers);
        }
        let pieces = if walker.is_blind() { passage.unknown() } else { pieces };
        ledger.add(passage.id, passage.start_ns(), passage.total_ns(), pieces.into_iter());
        through.push(stamps);
    }
    if wanted.only_rows {
        return Vec::new();
    }
    let limit = limit(chain, &ledger);
    ledger.close(limit.map(|(_, ns)| ns));
    let mut explained = Explained {
        messages: through.len() as u64,
        tail_messages: ledger.tail.len() as u64,
        tail_quantile: limit.map(|(quantile, _)| quantile),
        tail_limit_ns: limit.map_or(0, |(_, ns)| ns),
        causes: causes(&ledger, walker),
        hops: if walker.is_blind() { Vec::new() } else { hops(&ledger, walker, line.points.len() - 1) },
        culprits: culprits(&ledger, walker),
        sides: sides.map(sides::Collector::finish),
        ..Explained::default()
    };
    let refused = suspects::judge(&mut explained, chain, &ledger, walker, wanted);
    explained.recommendations = advice::recommend(&explained);
    if wanted.budgets {
        explained.budgets = ledger.rows.iter().map(|row| budget(row, &ledger, walker, context)).collect();
    }
    walker.verbose = true;
    explained.paths = chosen(&ledger, wanted)
        .into_iter()
        .filter_map(|at| {
            let passage = Passage::of(through[at], &columns, context)?;
            Some(path(&passage, budget(&ledger.rows[at], &ledger, walker, context), walker, context))
        })
        .collect();
    chain.explained = explained;
    refused
}

/// Where the tail of those that are explained begins, and which quantile that is; a sink may have left some out.
fn limit(chain: &Chain, ledger: &Ledger) -> Option<(f64, u64)> {
    let all = &chain.end_to_end.distribution;
    if all.n == ledger.rows.len() as u64 {
        return all.highest_to_p99();
    }
    let ways: Vec<u64> = ledger.rows.iter().map(|row| row.total_ns).collect();
    let mut sorted = ways.clone();
    sorted.sort_unstable();
    Distribution::of(&ways, &sorted).highest_to_p99()
}

fn causes(ledger: &Ledger, walker: &Walker<'_>) -> Vec<CauseShare> {
    let groups = ledger.groups(|kind| (kind.cause, kind.detail));
    let line = |line: &crate::ledger::Line<(Cause, u32)>| CauseShare {
        cause: line.group.0,
        detail: walker.names.text(line.group.1).to_owned(),
        tail_share: groups.share(line),
        time_ns: line.time_ns,
        usual_ns: line.usual_ns,
    };
    groups.lines.iter().map(line).collect()
}

fn hops(ledger: &Ledger, walker: &Walker<'_>, hops: usize) -> Vec<Vec<CauseShare>> {
    let groups = ledger.groups(|kind| (kind.hop, kind.cause, kind.detail));
    let mut shares = vec![Vec::new(); hops];
    for line in &groups.lines {
        let (hop, cause, detail) = line.group;
        shares[usize::from(hop)].push(CauseShare {
            cause,
            detail: walker.names.text(detail).to_owned(),
            tail_share: groups.share(line),
            time_ns: line.time_ns,
            usual_ns: line.usual_ns,
        });
    }
    shares
}

/// Threads, processes, locks and interrupts that took time from the tail.
fn culprits(ledger: &Ledger, walker: &Walker<'_>) -> Vec<Culprit> {
    let mut culprits: HashMap<(&'static str, String), Culprit> = HashMap::default();
    for at in &ledger.tail {
        let row = &ledger.rows[*at];
        let mut touched: Vec<(&'static str, String)> = Vec::new();
        for (number, ns) in &row.amounts {
            let kind = &ledger.kinds[*number as usize];
            for (what, name) in parties(kind, walker, row.start_ns) {
                let culprit = culprits.entry((what, name.clone())).or_default();
                culprit.time_ns += ns;
                if !culprit.causes.contains(&kind.cause) {
                    culprit.causes.push(kind.cause);
                }
                if !touched.contains(&(what, name.clone())) {
                    culprit.messages += 1;
                    touched.push((what, name));
                }
            }
        }
    }
    let mut all: Vec<Culprit> = culprits
        .into_iter()
        .map(|((kind, name), culprit)| Culprit { kind: kind.to_owned(), name, ..culprit })
        .collect();
    all.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| (&a.kind, &a.name).cmp(&(&b.kind, &b.name))));
    all.truncate(20);
    all
}

/// Who took a piece's time.
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

/// Rows whose path is shown: the worst, worst first, then those asked for.
fn chosen(ledger: &Ledger, wanted: &Wanted) -> Vec<usize> {
    let mut by_total: Vec<usize> = (0..ledger.rows.len()).collect();
    by_total.sort_by_key(|at| (std::cmp::Reverse(ledger.rows[*at].total_ns), *at));
    by_total.truncate(wanted.worst);
    let is_asked = |row: &crate::ledger::Row| {
        wanted.messages.contains(&row.id) || wanted.from_ns.is_some_and(|from_ns| row.total_ns >= from_ns)
    };
    let asked = (0..ledger.rows.len()).filter(|at| is_asked(&ledger.rows[*at]));
    let asked: Vec<usize> = asked.filter(|at| !by_total.contains(at)).collect();
    by_total.extend(asked);
    by_total
}

fn budget(row: &crate::ledger::Row, ledger: &Ledger, walker: &Walker<'_>, context: &Context) -> Budget {
    let mut sums: HashMap<(Cause, u32), u64> = HashMap::default();
    for (number, ns) in &row.amounts {
        let kind = &ledger.kinds[*number as usize];
        *sums.entry((kind.cause, kind.detail)).or_default() += ns;
    }
    let mut pieces: Vec<((Cause, u32), u64)> = sums.into_iter().collect();
    pieces.sort_by_key(|(key, ns)| (std::cmp::Reverse(*ns), *key));
    let piece = |((cause, detail), ns): ((Cause, u32), u64)| BudgetPiece {
        cause,
        detail: walker.names.text(detail).to_owned(),
        ns,
    };
    Budget {
        id: row.id,
        start_ns: row.start_ns.saturating_sub(context.start_ns),
        total_ns: row.total_ns,
        pieces: pieces.into_iter().map(piece).collect(),
    }
}

fn path(passage: &Passage, budget: Budget, walker: &mut Walker<'_>, context: &Context) -> MessagePath {
    let since = |time_ns: u64| time_ns.saturating_sub(context.start_ns);
    let pieces = passage.pieces(walker);
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
        by: if piece.other == 0 { String::new() } else { walker.objects.name(piece.other, piece.from_ns).into_owned() },
        note: piece.note.clone(),
    });
    let path = path.collect();
    let margin = passage.total_ns() / 10;
    let (from, to) = (passage.start_ns().saturating_sub(margin), passage.start_ns() + passage.total_ns() + margin);
    let lane = |tid: &i32| Lane {
        thread: walker.objects.name(*tid, passage.start_ns()).into_owned(),
        states: walker.machine.threads.get(tid).map_or(Vec::new(), |timeline| {
            let states = timeline.between(from, to);
            states.map(|(at, start, end)| (since(start), since(end), state(timeline.segments[at].state))).collect()
        }),
    };
    MessagePath {
        budget,
        passes: passage.passes.iter().map(|(column, pass)| (*column, since(pass.time_ns))).collect(),
        path,
        lanes: tids.iter().map(lane).collect(),
    }
}

fn state(state: kernel::State) -> State {
    match state {
        kernel::State::Running => State::Running,
        kernel::State::Preempted => State::Preempted,
        kernel::State::Woken => State::Woken,
        kernel::State::Blocked | kernel::State::Uninterruptible | kernel::State::Stopped => State::Blocked,
        kernel::State::Unknown | kernel::State::Lost | kernel::State::Gone => State::Unknown,
    }
}
