//! Root causes of the time that messages wait behind others. A message that waits for a busy thread waits for what that
//! thread spends its time on, and that thread may be late because of a message before that.
//!
//! Beside what happened, each thread is followed as if every message took its typical time (the recursion of Lindley 1952):
//! what a message waits then is load, and stays `queued`. The rest goes to what made the busy thread late: directly, where the
//! message waits while it happens; in proportion, where it waits behind the backlog that it left.

use std::{collections::BTreeSet, rc::Rc};

use foldhash::HashMap;

use crate::{
    Cause,
    kind::Kind,
    passage::Passage,
    pools::Pools,
    walk::{Behind, Moment, Piece, Walker},
};

/// Messages from which typical times are learned, spread over the recording.
const LEARNED: usize = 200;
/// So many stretches of shared CPUs are kept before those that several messages have are made one; later twice as many as were left.
const CLOSED_FIRST: usize = 1 << 16;
/// Messages of which it is remembered how much of their time was typical.
const REMEMBERED: usize = 4096;
/// Longer handling after a message's last stamp makes a thread one that stamps on receipt.
const TRAILING_NS: u64 = 20_000;
/// Blocks of pieces that are remembered: of many more messages than wait at once.
const BLOCKS_MAX: usize = 4096;
/// No server is taken for busier: it would never catch up.
const LOAD_MAX: f64 = 0.95;
/// Causes of one backlog.
const DEBTS_MAX: usize = 32;

const CAUSES: usize = Cause::ALL.len();
/// Time by cause.
type Amounts = [u64; CAUSES];

/// What is known of a chain's threads, message after message.
#[derive(Clone, Default)]
pub(crate) struct Queues {
    /// Median of a message's own time by hop, cause, and whether the thread that ends the hop has it already.
    typical: HashMap<(u16, bool), Amounts>,
    /// By hop: the sum of both.
    typical_ns: HashMap<u16, u64>,
    /// Median of what a thread does for a message after its last stamp of it.
    trailing: HashMap<i32, Amounts>,
    threads: HashMap<i32, Thread>,
    pools: Pools,
    /// By [`Queues::server`].
    servers: HashMap<i32, Server>,
    /// By message and thread: of each cause, the share beyond what is typical.
    beyond: HashMap<(u64, i32), [f32; CAUSES]>,
    /// The same of messages before those.
    beyond_before: HashMap<(u64, i32), [f32; CAUSES]>,
    /// Stretches in which a thread outside the chain had a shared CPU while a message waited for it: the CPU as a server,
    /// from, to, and what it was to the message.
    pub closed: Vec<(i32, u64, u64, Kind)>,
    /// How many may be kept before those that several messages have are made one.
    most_closed: usize,
    /// Blocks of what threads were busy with, as sums, by hop, thread, start and end.
    blocks: HashMap<(u16, i32, u64, u64), Apart>,
}

/// Pieces, each with whether it is what the thread does for every message.
type Apart = Rc<[(Piece, bool)]>;

/// A thread that takes messages.
#[derive(Clone, Default)]
struct Thread {
    /// Its last stamp, and of which message.
    last: Option<(u64, u64)>,
    /// Of which hop that was the end.
    hop: u16,
    /// Up to when debts that belong to no explained message are noted.
    noted_ns: u64,
    /// What it did since that stamp, up to a moment.
    since: Vec<(Kind, u64)>,
    since_to_ns: u64,
}

/// What messages take turns on: a thread, or a CPU that several share.
#[derive(Clone, Default)]
struct Server {
    /// When it would be free if every message took its typical time.
    free_ns: u64,
    /// The same, of each thread of a pool, if messages were taken in the order of their start (Kiefer and Wolfowitz 1955).
    in_order_ns: Vec<u64>,
    /// Messages that it will take: when each comes.
    waiting: BTreeSet<(u64, u64)>,
    /// When the latest message came that it has taken.
    came_ns: u64,
    /// When it had its first message, and for how long it would have been at all since at typical times.
    since_ns: Option<u64>,
    typical_ns: u64,
    /// What made it late since it was idle last.
    debts: Vec<Debt>,
}

#[derive(Clone)]
struct Debt {
    id: u64,
    kind: Kind,
    ns: u64,
}

/// A message's wait for a busy thread.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// From here on the thread was busy without a pause with what `pieces` say: its last stamp of an explained message, or the
    /// end of its last pause.
    pub since_ns: u64,
    /// Whether `since_ns` is such a stamp.
    pub is_linked: bool,
    /// When it took the message.
    pub until_ns: u64,
    /// What it did until then: time, and how much of it was beyond the typical.
    pub pieces: Vec<(Kind, u64, u64)>,
    /// Meanwhile a shared CPU was another's for so long.
    pub away_ns: u64,
}

/// A message's pieces; its waits for busy threads; and for how long, else, a shared CPU was another's. Each with its hop.
#[derive(Default)]
pub(crate) struct Divided {
    pub pieces: Vec<(u16, Piece)>,
    pub waits: Vec<(u16, Wait)>,
    pub away: Vec<(u16, u64)>,
}

/// How far a message's division is.
pub(crate) struct Way {
    pub passage: Passage,
    pub divided: Divided,
    /// So many of its hops are divided.
    hops: usize,
    /// When it would be there if every message took its typical time.
    typical_ns: u64,
    /// By hop: how long it would wait then if messages were taken in the order of their start.
    waits_ns: Vec<u64>,
    /// By thread: its own time, and what of that is beyond the typical.
    own: Vec<(i32, Amounts, Amounts)>,
}

/// What a message would wait at typical times.
#[derive(Clone, Copy, Default)]
struct Load {
    ns: u64,
    /// Whether that is in the order of the starts.
    is_in_order: bool,
    /// By how much the latest message that went before it came after it.
    overtaken_ns: u64,
    /// Of the time in which its server works for messages.
    share: f64,
}

/// Causes that every message may have some of; only what exceeds the typical makes a backlog.
fn is_ordinary(cause: Cause) -> bool {
    use Cause::*;
    matches!(cause, Cpu | Syscall | Io | Sleep | PageFault | Disk | Wakeup | Irq | TimerSlack)
}

/// Whether the message waits for the thread that has to take it, and not for a turn on its CPU.
fn is_queue(piece: &Piece) -> bool {
    piece.behind.is_some() && !is_turn(piece)
}

/// Marks waits for a thread that the message comes to later and that is at earlier messages: for the GIL while it has it, and for room in
/// its queue. The message would wait for it there in any case, so that this is no time of the thread that waits. Whether there are any.
fn set_receivers_turns(
    pieces: &mut [Piece],
    id: u64,
    from: Moment,
    to: Moment,
    later: &[(usize, Moment)],
    walker: &Walker<'_>,
) -> bool {
    let waits_for_room = from.tid == to.tid && walker.shared.is_empty();
    let is_at_others = |tid: i32, piece: &Piece| {
        let at = walker.spans.within(tid, piece.from_ns);
        at.is_some_and(|other| other != id) || walker.spans.busy_until(tid, id, piece.from_ns, piece.to_ns).is_some()
    };
    let mut any = false;
    for piece in pieces {
        let receiver = match piece.cause {
            _ if waits_for_room && piece.tid != to.tid && piece.behind.is_none() => piece.tid,
            Cause::Gil if piece.other != to.tid => piece.other,
            _ => continue,
        };
        if later.iter().any(|(_, pass)| pass.tid == receiver) && is_at_others(receiver, piece) {
            (piece.is_away, any) = (true, true);
        }
    }
    any
}

fn is_turn(piece: &Piece) -> bool {
    matches!(piece.behind, Some(Behind::Turn(_)))
}

/// Whether a message that waits behind this waits for what its thread does for every message.
pub(crate) fn is_load(piece: &Piece) -> bool {
    piece.behind.is_some() && is_ordinary(piece.cause)
}

impl Queues {
    /// Learns from some of the messages what is typical, and which threads stamp on receipt.
    pub fn learn(passages: &[Passage], all: impl Iterator<Item = Passage>, walker: &mut Walker<'_>) -> Queues {
        let mut queues = Queues::default();
        if walker.is_blind() || !walker.spans.has_stamps() {
            return queues;
        }
        queues.pools = Pools::of(passages, all, walker);
        let every = passages.len().div_ceil(LEARNED).max(1);
        let mut own: HashMap<(u16, bool), Vec<Amounts>> = HashMap::default();
        let mut lead: HashMap<i32, Vec<u64>> = HashMap::default();
        let mut after: HashMap<i32, Vec<Amounts>> = HashMap::default();
        for passage in passages.iter().step_by(every) {
            for pair in passage.passes.windows(2) {
                let (from, (column, to)) = (pair[0].1, pair[1]);
                let hop = column as u16 - 1;
                let pieces = walker.hop(passage.id, from, to);
                let mut sums = [[0; CAUSES]; 2];
                for piece in pieces.iter().filter(|piece| piece.behind.is_none()) {
                    sums[usize::from(is_receivers(piece, from, to))][piece.cause as usize] +=
                        piece.to_ns - piece.from_ns;
                }
                if from.is_handed_to(to) && pieces.iter().all(|piece| piece.behind.is_none()) {
                    let handles = |cause: Cause| sums[1][cause as usize];
                    lead.entry(to.tid).or_default().push(handles(Cause::Cpu) + handles(Cause::Syscall));
                }
                own.entry((hop, false)).or_default().push(sums[0]);
                own.entry((hop, true)).or_default().push(sums[1]);
            }
            for last in lasts(passage) {
                let foreign = walker.spans.next_foreign(last.tid, passage.id, last.time_ns).unwrap_or(u64::MAX);
                let end = foreign.min(walker.timelines.end_ns);
                if let Some((idle, _)) =
                    walker.idles_in(last.tid, last.time_ns, end.min(last.time_ns.saturating_add(1_000_000_000)))
                {
                    let pieces = walker.alone(last, idle);
                    after
                        .entry(last.tid)
                        .or_default()
                        .push(amounts(pieces.iter().map(|p| (p.cause, p.to_ns - p.from_ns))));
                }
            }
        }
        queues.typical = own.into_iter().map(|(key, all)| (key, medians(&all))).collect();
        for ((hop, _), typical) in &queues.typical {
            let ordinary = Cause::ALL.into_iter().filter(|cause| is_ordinary(*cause));
            *queues.typical_ns.entry(*hop).or_default() += ordinary.map(|cause| typical[cause as usize]).sum::<u64>();
        }
        for (tid, all) in after {
            let mut lengths: Vec<u64> = all.iter().map(|amounts| amounts.iter().sum()).collect();
            let leads = lead.get_mut(&tid).map_or(u64::MAX, |lead| median(lead));
            let length = median(&mut lengths);
            if length > TRAILING_NS && length > leads {
                walker.receivers.insert(tid);
            }
            queues.trailing.insert(tid, medians(&all));
        }
        queues
    }

    /// Messages come in the order of their start, each before any hop of it is divided.
    pub fn begin(&mut self, passage: Passage, walker: &Walker<'_>) -> Way {
        let mut way = Way::of(passage);
        let mut now_ns = way.typical_ns;
        let mut at: Option<(i32, usize)> = None;
        for (hop, from, to) in (0..).map_while(|index| way.passage.hop(index)) {
            let key = self.server(to.tid, walker);
            let threads = self.pools.threads(to.tid).len().max(1);
            let server = self.servers.entry(key).or_default();
            server.in_order_ns.resize(threads.max(server.in_order_ns.len()), 0);
            let free = &mut server.in_order_ns;
            let first = (0..free.len()).min_by_key(|nth| free[*nth]).unwrap_or(0);
            let (nth, wait_ns) = match at.filter(|(known, _)| *known == key && !from.is_handed_to(to)) {
                Some((_, nth)) => (nth, 0),
                None if from.is_handed_to(to) => (first, free[first].saturating_sub(now_ns)),
                None => (first, 0),
            };
            if from.is_handed_to(to) {
                server.waiting.insert((from.time_ns, way.passage.id));
            }
            let own_ns = self.typical_ns.get(&hop).copied().unwrap_or(0);
            now_ns = now_ns.saturating_add(wait_ns).saturating_add(own_ns);
            free[nth] = free[nth].max(now_ns);
            at = Some((key, nth));
            way.waits_ns.push(wait_ns);
        }
        way
    }

    /// Puts root causes in place of queues in the pieces of the way's next hop, and notes its wait for a busy thread. Hops come in the
    /// order of their ends: the one of two messages that a thread takes first comes first, whichever of them came first.
    pub fn divide(&mut self, way: &mut Way, mut of_hop: Vec<Piece>, walker: &mut Walker<'_>) {
        let Some((hop, from, to)) = way.passage.hop(way.hops) else { return };
        let id = way.passage.id;
        let later = &way.passage.passes[way.hops + 2..];
        let waits_for_receiver = set_receivers_turns(&mut of_hop, id, from, to, later, walker);
        let in_order_ns = way.waits_ns.get(way.hops).copied().unwrap_or(0);
        way.hops += 1;
        let waits = of_hop.iter().any(is_queue);
        let is_behind = of_hop.iter().any(|piece| piece.behind.is_some());
        let wait = (waits && from.is_handed_to(to)).then(|| self.wait(hop, id, from, to, &of_hop, walker));
        let taken_ns = wait.as_ref().map_or(0, |wait| wait.until_ns);
        let away = of_hop.iter().filter(|piece| piece.is_away && piece.from_ns >= taken_ns);
        let away_ns: u64 = away.map(|piece| piece.to_ns - piece.from_ns).sum();
        self.close(to.tid, hop, &of_hop, walker);
        let load = self.load(id, (from, to), (waits, is_behind), (way.typical_ns, in_order_ns), walker);
        if is_behind {
            let others = self.others_debts(to.tid, wait.as_ref().map_or(from.time_ns, |wait| wait.until_ns), walker);
            of_hop = self.root_causes(hop, to.tid, &of_hop, &load, &others, walker);
        }
        if waits_for_receiver {
            of_hop = self.behind_receivers(to.tid, &of_hop, way.typical_ns, walker);
        }
        let server = self.servers.entry(self.server(to.tid, walker)).or_default();
        // Of those taken together, too, the thread is at one after the other.
        match from.is_handed_to(to) && load.is_in_order {
            true => way.typical_ns = way.typical_ns.saturating_add(load.ns),
            false if from.is_handed_to(to) || waits => way.typical_ns = way.typical_ns.max(server.free_ns),
            false => {}
        }
        let mut sums = [[0; CAUSES]; 2];
        for piece in of_hop.iter().filter(|piece| piece.behind.is_none()) {
            sums[usize::from(is_receivers(piece, from, to))][piece.cause as usize] += piece.to_ns - piece.from_ns;
        }
        let mut shares = [[0.0f64; CAUSES]; 2];
        for (side, sums) in sums.iter().enumerate() {
            let typical = self.typical.get(&(hop, side == 1)).unwrap_or(&[0; CAUSES]);
            for (cause, ns) in sums.iter().enumerate().filter(|(_, ns)| **ns > 0) {
                let kept = if is_ordinary(Cause::ALL[cause]) { (*ns).min(typical[cause]) } else { 0 };
                way.typical_ns = way.typical_ns.saturating_add(kept);
                server.typical_ns += if side == 1 { kept } else { 0 };
                shares[side][cause] = 1.0 - kept as f64 / *ns as f64;
            }
        }
        let owed = of_hop.iter().filter(|piece| piece.behind.is_none() && is_receivers(piece, from, to));
        // Mostly none is beyond the typical.
        for (piece, share) in
            owed.map(|piece| (piece, shares[1][piece.cause as usize])).filter(|(_, share)| *share > 0.0)
        {
            server.owe(id, Kind::of(hop, piece), ((piece.to_ns - piece.from_ns) as f64 * share) as u64);
        }
        server.free_ns = server.free_ns.max(way.typical_ns);
        let thread = self.threads.entry(to.tid).or_default();
        (thread.last, thread.hop) = (thread.last.max(Some((to.time_ns, id))), hop);
        (thread.since_to_ns, thread.noted_ns) = (to.time_ns, thread.noted_ns.max(to.time_ns));
        thread.since.clear();
        let beyond = way.beyond(to.tid, &sums[1], &shares[1]);
        self.remember(id, to.tid, beyond);
        way.divided.waits.extend(wait.map(|wait| (hop, wait)));
        way.divided.away.extend((away_ns > 0).then_some((hop, away_ns)));
        way.divided.pieces.extend(of_hop.into_iter().map(|piece| (hop, piece)));
    }

    /// What a message would wait in a hop at typical times: by when it would be there then, and how long it would wait in the order of the
    /// starts. A server that was idle is no longer late.
    fn load(
        &mut self,
        id: u64,
        (from, to): (Moment, Moment),
        (waits, is_behind): (bool, bool),
        (typical_ns, in_order_ns): (u64, u64),
        walker: &mut Walker<'_>,
    ) -> Load {
        let key = self.server(to.tid, walker);
        let is_from_outside = from.is_due || self.server(from.tid, walker) != key || from.tid == to.tid;
        let last_ns = self.threads.get(&to.tid).and_then(|thread| thread.last).map_or(0, |(last_ns, _)| last_ns);
        let server = self.servers.entry(key).or_default();
        if !from.is_handed_to(to) {
            return Load { ns: if waits { u64::MAX } else { 0 }, ..Load::default() };
        }
        server.waiting.remove(&(from.time_ns, id));
        let overtakes = server.waiting.first().is_some_and(|(came_ns, _)| *came_ns < from.time_ns);
        // Where others wait it may only have come in between.
        let mut was_idle = || !overtakes || walker.idled_until(to.tid, last_ns, to.time_ns).is_some();
        if is_from_outside && !is_behind && was_idle() {
            server.debts.clear();
        }
        let overtaken_ns = server.came_ns.saturating_sub(from.time_ns);
        server.came_ns = server.came_ns.max(from.time_ns);
        // At typical times nothing overtakes what it overtook, threads of one CPU do not work off one stage's backlog after the other's,
        // and a pool has all of its threads.
        let is_in_order = overtaken_ns > 0 || key != to.tid || server.in_order_ns.len() > 1;
        let since_ns = *server.since_ns.get_or_insert(from.time_ns);
        let all_ns = to.time_ns.saturating_sub(since_ns).max(1) as f64 * server.in_order_ns.len().max(1) as f64;
        Load {
            ns: if is_in_order { in_order_ns } else { server.free_ns.saturating_sub(typical_ns) },
            is_in_order,
            overtaken_ns,
            share: (server.typical_ns as f64 / all_ns).min(LOAD_MAX),
        }
    }

    /// What the thread takes its messages from: itself, or its pool.
    pub fn line(&self, tid: i32) -> i32 {
        self.pools.line(tid)
    }

    /// What the thread typically does for a message after its last stamp of it.
    pub fn trailing_ns(&self, tid: i32) -> u64 {
        self.trailing.get(&tid).map_or(0, |amounts| amounts.iter().sum())
    }

    /// What the thread did before it took the message, as far as it is no explained message's own time; notes what made it late.
    fn wait(&mut self, hop: u16, id: u64, from: Moment, to: Moment, of_hop: &[Piece], walker: &mut Walker<'_>) -> Wait {
        let until_ns = of_hop.iter().filter(|piece| is_queue(piece)).map(|p| p.to_ns).max().unwrap_or(from.time_ns);
        let queue = || of_hop.iter().filter(|piece| piece.behind.is_some() && piece.from_ns < until_ns);
        let start_ns = queue().map(|p| p.from_ns).min().unwrap_or(from.time_ns);
        let last = self.threads.get(&to.tid).and_then(|thread| thread.last);
        // A thread that idled at the message's arrival is busy since its wake.
        let mut since_ns = last.map_or(start_ns, |(time_ns, _)| time_ns.min(until_ns));
        let mut is_linked = last.is_some_and(|(time_ns, _)| time_ns <= until_ns);
        if start_ns > from.time_ns && since_ns < start_ns {
            (since_ns, is_linked) = (start_ns, false);
        }
        let mut before = Vec::new();
        if since_ns < start_ns {
            if let Some(end) = walker.idled_until(to.tid, since_ns, start_ns) {
                (since_ns, is_linked) = (end, false);
            }
            if since_ns < start_ns {
                before = walker.alone(Moment::of(to.tid, since_ns), start_ns);
            }
        }
        let clip = |piece: &Piece| {
            let from_ns = piece.from_ns.max(since_ns);
            (from_ns < piece.to_ns).then_some(Piece { from_ns, ..*piece })
        };
        for piece in queue() {
            match piece.behind {
                Some(Behind::Block(_)) if since_ns < piece.to_ns => {
                    before.extend(walker.block(hop, piece).iter().filter_map(clip));
                }
                _ => before.extend(clip(piece)),
            }
        }
        let away_ns = before.iter().filter(|piece| piece.is_away).map(|p| p.to_ns - p.from_ns).sum();
        let key = self.server(to.tid, walker);
        self.close(to.tid, 0, &before, walker);
        before.retain(|piece| !is_turn(piece));
        let trailing = self.trailing.get(&to.tid).copied().unwrap_or([0; CAUSES]);
        let all = amounts(before.iter().map(|p| (p.cause, p.to_ns - p.from_ns)));
        // Who stamps on receipt handles one message there; else it is what lies between two.
        let is_receiver = walker.receivers.contains(&to.tid);
        let share: [f64; CAUSES] = std::array::from_fn(|cause| match (is_ordinary(Cause::ALL[cause]), all[cause]) {
            (_, 0) => 0.0,
            (false, _) => 1.0,
            (true, ns) if is_receiver => 1.0 - ns.min(trailing[cause]) as f64 / ns as f64,
            (true, _) => 0.0,
        });
        if let (true, Some((_, before_id))) = (is_receiver, last) {
            self.beyond.insert((before_id, to.tid), share.map(|share| share as f32));
        }
        let thread = self.threads.entry(to.tid).or_default();
        let server = self.servers.entry(key).or_default();
        // Others of a shared CPU may have had it meanwhile.
        let was_idle = !is_linked && key == to.tid && server.in_order_ns.len() <= 1;
        if was_idle {
            server.debts.clear();
        }
        let mut pieces = Vec::with_capacity(before.len());
        let mut ordinary_ns = 0;
        for piece in &before {
            let ns = piece.to_ns - piece.from_ns;
            let beyond_ns = (ns as f64 * share[piece.cause as usize]) as u64;
            pieces.extend((!piece.is_away).then(|| (Kind::of(0, piece), ns, beyond_ns)));
            ordinary_ns += ns - beyond_ns;
            let new_ns = piece.to_ns.saturating_sub(piece.from_ns.max(thread.noted_ns));
            let owner = match piece.behind {
                Some(Behind::Message(id)) => id,
                _ => last.map_or(id, |(_, id)| id),
            };
            server.owe(owner, Kind::of(0, piece), (new_ns as f64 * share[piece.cause as usize]) as u64);
        }
        server.free_ns = if was_idle { since_ns } else { server.free_ns } + ordinary_ns;
        thread.noted_ns = thread.noted_ns.max(until_ns);
        Wait { since_ns, is_linked, until_ns, pieces, away_ns }
    }

    /// Of what a message waits behind, what the thread does for every message, apart from the rest: each piece with whether it is that.
    fn apart(&mut self, hop: u16, tid: i32, pieces: &[Piece], walker: &mut Walker<'_>) -> Vec<(Piece, bool)> {
        let mut known: Option<((u64, i32), [f32; CAUSES])> = None;
        let mut apart: Vec<(Piece, bool)> = Vec::with_capacity(pieces.len() + 4);
        for piece in pieces {
            if let Some(Behind::Block(_)) = piece.behind {
                apart.extend_from_slice(&self.block(hop, tid, piece, walker));
                continue;
            }
            if !is_load(piece) {
                apart.push((*piece, false));
                continue;
            }
            // Marked work is no message's: it stays what the message waited for.
            let key = match piece.behind {
                Some(Behind::Message(id)) => (id, tid),
                Some(Behind::Turn(id)) => (id, piece.tid),
                other => {
                    let with = if let Some(Behind::Work(name)) = other { name } else { 0 };
                    let detail = was_busy(walker, tid, piece.from_ns, with);
                    apart.push((Piece { cause: Cause::Queued, detail, tid, other: tid, after: None, ..*piece }, false));
                    continue;
                }
            };
            let shares = match known {
                Some((known, shares)) if known == key => shares,
                _ => self.shares_beyond(key),
            };
            known = Some((key, shares));
            let share = f64::from(shares[piece.cause as usize]);
            let cut_ns = piece.from_ns + ((piece.to_ns - piece.from_ns) as f64 * share) as u64;
            let parts = [(Piece { to_ns: cut_ns, ..*piece }, false), (Piece { from_ns: cut_ns, ..*piece }, true)];
            apart.extend(parts.into_iter().filter(|(part, _)| part.from_ns < part.to_ns));
        }
        apart
    }

    /// The same of a block, in sums over its messages, one after the other in its time.
    fn block(&mut self, hop: u16, tid: i32, of: &Piece, walker: &mut Walker<'_>) -> Apart {
        let key = (hop, tid, of.from_ns, of.to_ns);
        if let Some(known) = self.blocks.get(&key) {
            return known.clone();
        }
        let mut sums: Vec<(Kind, bool, Piece)> = Vec::new();
        for (piece, is_ordinary) in self.apart(hop, tid, &walker.block(hop, of), walker) {
            // Another thread's turn stays a turn.
            let behind = if is_turn(&piece) { piece.behind } else { piece.behind.and(of.behind) };
            let kind = Kind::of(hop, &piece);
            let same =
                |(known, is, sum): &&mut (Kind, bool, Piece)| (*known, *is, sum.behind) == (kind, is_ordinary, behind);
            match sums.iter_mut().find(same) {
                Some((.., sum)) => sum.to_ns += piece.to_ns - piece.from_ns,
                None => sums.push((kind, is_ordinary, Piece { behind, ..piece })),
            }
        }
        let mut now_ns = of.from_ns;
        let mut summed = Vec::with_capacity(sums.len());
        for (_, is_ordinary, sum) in sums {
            let (from_ns, ns) = (now_ns, sum.to_ns - sum.from_ns);
            now_ns += ns;
            summed.push((Piece { from_ns, to_ns: now_ns, ..sum }, is_ordinary));
        }
        debug_assert_eq!(now_ns, of.to_ns, "the sums of a block are all of its time");
        let block: Apart = summed.into();
        if self.blocks.len() >= BLOCKS_MAX {
            self.blocks.clear();
        }
        self.blocks.insert(key, block.clone());
        block
    }

    /// Puts root causes in place of what a message waited behind.
    fn root_causes(
        &mut self,
        hop: u16,
        tid: i32,
        pieces: &[Piece],
        load: &Load,
        others: &[Debt],
        walker: &mut Walker<'_>,
    ) -> Vec<Piece> {
        let server = self.server(tid, walker);
        let divided = self.apart(hop, tid, pieces, walker);
        // By thread: of a long queue nearly all is of one.
        let mut known: Option<(i32, u32)> = None;
        let mut busy = |tid: i32, time_ns: u64| match known {
            Some((known, detail)) if known == tid => detail,
            _ => {
                let detail = was_busy(walker, tid, time_ns, 0);
                known = Some((tid, detail));
                detail
            }
        };
        let ordinary = divided.iter().filter(|(_, is_ordinary)| *is_ordinary);
        let ordinary_ns: u64 = ordinary.map(|(piece, _)| piece.to_ns - piece.from_ns).sum();
        let none = Server::default();
        let server = self.servers.get(&server).unwrap_or(&none);
        // Portions of the ordinary time, in order: each debt's, then what stays queued.
        let debts: Vec<&Debt> = server.debts.iter().chain(others).collect();
        let portions = portions(&debts, ordinary_ns.saturating_sub(load.ns), load);
        let portions = portions.map(|(debt, ns)| (Some(debt), ns));
        let mut portions = portions.chain([(None, u64::MAX)]);
        let mut now = portions.next();
        let mut result = Vec::with_capacity(divided.len() + debts.len());
        for (piece, is_ordinary) in divided {
            if !is_ordinary {
                result.push(piece);
                continue;
            }
            let mut from_ns = piece.from_ns;
            let (of, is_turn) = if is_turn(&piece) { (piece.tid, true) } else { (tid, false) };
            while from_ns < piece.to_ns {
                let Some((debt, left)) = &mut now else { break };
                let to_ns = piece.to_ns.min(from_ns.saturating_add(*left));
                let part = Piece { from_ns, to_ns, ..piece };
                result.push(match debt {
                    Some(debt) => {
                        debt.as_piece(part, if is_turn { Behind::Turn(debt.id) } else { Behind::Message(debt.id) })
                    }
                    None => {
                        let detail = busy(of, piece.from_ns);
                        Piece { cause: Cause::Queued, detail, tid: of, other: of, after: None, ..part }
                    }
                });
                *left -= to_ns - from_ns;
                if *left == 0 {
                    now = portions.next();
                }
                from_ns = to_ns;
            }
        }
        result
    }

    /// What of the waits of [`set_receivers_turns`] is beyond the receiver's load goes to what made it late.
    fn behind_receivers(&self, tid: i32, pieces: &[Piece], typical_ns: u64, walker: &Walker<'_>) -> Vec<Piece> {
        let mut result = Vec::with_capacity(pieces.len() + 1);
        for piece in pieces {
            let receiver = if piece.tid == tid { piece.other } else { piece.tid };
            let is_turn = piece.is_away
                && piece.behind.is_none()
                && (piece.cause == Cause::Gil || piece.tid != tid && is_ordinary(piece.cause));
            let server = self.servers.get(&self.server(receiver, walker)).filter(|_| is_turn);
            let mut from_ns = piece.from_ns;
            if let Some(server) = server {
                let load_ns = server.free_ns.saturating_sub(typical_ns);
                let late_ns = (piece.to_ns - piece.from_ns).saturating_sub(load_ns);
                let debts: Vec<&Debt> = server.debts.iter().collect();
                for (debt, ns) in portions(&debts, late_ns, &Load::default()) {
                    let part =
                        debt.as_piece(Piece { from_ns, to_ns: from_ns + ns, ..*piece }, Behind::Message(debt.id));
                    from_ns = part.to_ns;
                    result.push(part);
                }
            }
            result.extend((from_ns < piece.to_ns).then_some(Piece { from_ns, ..*piece }));
        }
        result
    }

    /// What messages that the thread takes wait for: a thread, a pool, or a CPU that threads share.
    fn server(&self, tid: i32, walker: &Walker<'_>) -> i32 {
        match walker.server(tid) {
            alone if alone == tid => self.pools.line(tid),
            shared => shared,
        }
    }

    /// What other threads of the pool are at for longer than they typically are: they have no hand free for the message.
    fn others_debts(&mut self, tid: i32, until_ns: u64, walker: &mut Walker<'_>) -> Vec<Debt> {
        let mut debts = Vec::new();
        for other in self.pools.threads(tid).iter().copied().filter(|other| *other != tid) {
            let Some(thread) = self.threads.get_mut(&other) else { continue };
            let Some((_, id)) = thread.last else { continue };
            if thread.since_to_ns < until_ns {
                for piece in walker.alone(Moment::of(other, thread.since_to_ns), until_ns) {
                    let (kind, ns) = (Kind::of(thread.hop + 1, &piece), piece.to_ns - piece.from_ns);
                    match thread.since.iter_mut().find(|(known, _)| *known == kind) {
                        Some((_, sum)) => *sum += ns,
                        None => thread.since.push((kind, ns)),
                    }
                }
                thread.since_to_ns = until_ns;
            }
            let typical = self.typical.get(&(thread.hop + 1, true)).copied().unwrap_or([0; CAUSES]);
            // Else it may have nothing to do.
            let is_at_it = walker.spans.within(other, until_ns).is_some();
            let mut left = typical;
            for (kind, ns) in &thread.since {
                let kept = match is_ordinary(kind.cause) {
                    true if is_at_it => (*ns).min(left[kind.cause as usize]),
                    true => *ns,
                    false => 0,
                };
                left[kind.cause as usize] -= kept.min(left[kind.cause as usize]);
                debts.extend((kept < *ns).then_some(Debt { id, kind: *kind, ns: ns - kept }));
            }
        }
        debts
    }

    /// Keeps when a CPU that the thread shares was run by a thread that is not of the chain.
    fn close(&mut self, tid: i32, hop: u16, pieces: &[Piece], walker: &Walker<'_>) {
        if !walker.shared.contains_key(&tid) {
            return;
        }
        let others = pieces.iter().filter(|piece| piece.is_away && !is_turn(piece) && piece.cause != Cause::Gil);
        let server = walker.server(tid);
        self.closed.extend(others.map(|piece| (server, piece.from_ns, piece.to_ns, Kind::of(hop, piece))));
        // All that wait at once have the same stretches.
        if self.closed.len() >= self.most_closed.max(CLOSED_FIRST) {
            let stretch = |(server, from_ns, to_ns, _): &(i32, u64, u64, Kind)| (*server, *from_ns, *to_ns);
            self.closed.sort_unstable_by_key(stretch);
            self.closed.dedup_by_key(|one| stretch(one));
            self.most_closed = 2 * self.closed.len();
        }
    }

    fn shares_beyond(&self, key: (u64, i32)) -> [f32; CAUSES] {
        self.beyond.get(&key).or_else(|| self.beyond_before.get(&key)).copied().unwrap_or([0.0; CAUSES])
    }

    fn remember(&mut self, id: u64, tid: i32, beyond: [f32; CAUSES]) {
        if self.beyond.len() > REMEMBERED {
            std::mem::swap(&mut self.beyond, &mut self.beyond_before);
            self.beyond.clear();
        }
        self.beyond.insert((id, tid), beyond);
    }
}

impl Way {
    pub fn of(passage: Passage) -> Way {
        let typical_ns = passage.passes.first().map_or(0, |(_, pass)| pass.time_ns);
        Way { passage, divided: Divided::default(), hops: 0, typical_ns, waits_ns: Vec::new(), own: Vec::new() }
    }

    /// The next hop that is to be divided.
    pub fn next(&self) -> Option<(u16, Moment, Moment)> {
        self.passage.hop(self.hops)
    }

    /// Leaves the next one out.
    pub fn skip(&mut self) {
        self.hops += 1;
    }

    /// Adds its own time in a thread, and the share of that beyond what is typical: of each cause, the share of all of its time there.
    fn beyond(&mut self, tid: i32, own: &Amounts, shares: &[f64; CAUSES]) -> [f32; CAUSES] {
        let known = self.own.iter().position(|(known, ..)| *known == tid).unwrap_or_else(|| {
            self.own.push((tid, [0; CAUSES], [0; CAUSES]));
            self.own.len() - 1
        });
        let (_, all, beyond) = &mut self.own[known];
        for (cause, ns) in own.iter().enumerate().filter(|(_, ns)| **ns > 0) {
            all[cause] += ns;
            beyond[cause] += (*ns as f64 * shares[cause]) as u64;
        }
        std::array::from_fn(|cause| if all[cause] > 0 { beyond[cause] as f32 / all[cause] as f32 } else { 0.0 })
    }
}

impl Debt {
    /// The time of the piece as this.
    fn as_piece(&self, piece: Piece, behind: Behind) -> Piece {
        let Kind { cause, detail, tid, other, after, .. } = self.kind;
        Piece { cause, detail, tid, other, after, behind: Some(behind), ..piece }
    }
}

impl Server {
    fn owe(&mut self, id: u64, kind: Kind, ns: u64) {
        if ns == 0 {
            return;
        }
        if let Some(debt) = self.debts.iter_mut().find(|debt| debt.kind == kind && debt.id == id) {
            debt.ns += ns;
        } else if self.debts.len() < DEBTS_MAX {
            self.debts.push(Debt { id, kind, ns });
        } else if let Some(least) = self.debts.iter_mut().min_by_key(|debt| debt.ns)
            && least.ns < ns
        {
            *least = Debt { id, kind, ns };
        }
    }
}

/// What of so long a wait goes to each debt. What made a server late by so much makes no message wait for longer (Lindley 1952), unless
/// others go before it until the server is no longer late.
fn portions<'a>(debts: &[&'a Debt], waited_ns: u64, load: &Load) -> impl Iterator<Item = (&'a Debt, u64)> {
    let owed: u64 = debts.iter().map(|debt| debt.ns).sum();
    let most_ns = match load.overtaken_ns {
        0 => owed as f64,
        ns => (owed as f64 + load.share * ns as f64).min(owed as f64 / (1.0 - load.share)),
    };
    let late_ns = waited_ns.min(most_ns as u64);
    let portion = move |debt: &Debt| (u128::from(late_ns) * u128::from(debt.ns) / u128::from(owed.max(1))) as u64;
    debts.iter().map(move |debt| (*debt, portion(debt))).filter(|(_, ns)| *ns > 0)
}

/// Whether a hop's piece is of the time in which the thread that ends it has the message already.
fn is_receivers(piece: &Piece, from: Moment, to: Moment) -> bool {
    from.tid == to.tid || piece.tid != from.tid
}

/// Number of the detail of waiting for a thread that is busy.
/// `work`: number of the name of the marked work that it was busy with; 0: with messages.
fn was_busy(walker: &mut Walker<'_>, tid: i32, time_ns: u64, work: u32) -> u32 {
    let with = if work == 0 { String::new() } else { format!(" with {}", walker.names.text(work)) };
    walker.names.of(&format!("{} was busy{with}", walker.objects.name(tid, time_ns)))
}

/// Each thread's last pass.
fn lasts(passage: &Passage) -> Vec<Moment> {
    let mut lasts: Vec<Moment> = Vec::new();
    for (_, pass) in passage.passes.iter().rev() {
        if !lasts.iter().any(|known| known.tid == pass.tid) {
            lasts.push(*pass);
        }
    }
    lasts
}

fn amounts(of: impl Iterator<Item = (Cause, u64)>) -> Amounts {
    let mut amounts = [0; CAUSES];
    of.for_each(|(cause, ns)| amounts[cause as usize] += ns);
    amounts
}

/// Of those of which all is known: what a hole hides is not typically zero. If there are none, of all.
fn medians(all: &[Amounts]) -> Amounts {
    let is_known = |amounts: &&Amounts| amounts[Cause::Unknown as usize] == 0;
    let any_is_known = all.iter().any(|amounts| is_known(&amounts));
    let used: Vec<&Amounts> = all.iter().filter(|amounts| !any_is_known || is_known(amounts)).collect();
    std::array::from_fn(|cause| median(&mut used.iter().map(|amounts| amounts[cause]).collect::<Vec<u64>>()))
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
