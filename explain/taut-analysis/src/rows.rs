//! Every message, hop, cause and thread state of a recording, row by row: what tables are made of. Unlike the
//! figures, rows leave no message out: neither the start-up nor incomplete ones.

use std::{borrow::Cow, hash::BuildHasher};

use foldhash::fast::FixedState;

use taut_points::Pass;
use taut_timelines::{Objects, ThreadState, Timelines};

use crate::{
    Cause, Chain, SourceKind,
    context::Context,
    line::ChainLine,
    messages::Message,
    outcomes::{Fate, Fates},
    passage::Passage,
    walk::{Piece, Walker},
};

/// One row, borrowed for the call. Moments are CLOCK_MONOTONIC; an empty text says that it is not known, or nothing to say.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A message.
    Message(MessageRow<'a>),
    /// A message on its way from one point to the next one that it passed.
    Hop(HopRow<'a>),
    /// A stretch of a hop.
    Cause(CauseRow<'a>),
    /// What a thread did.
    State(StateRow<'a>),
}

/// Takes rows. Every closure that takes a [`Row`] is one, and wants everything.
pub trait RowSink {
    /// Takes the next row.
    fn row(&mut self, row: Row<'_>);

    /// Takes a message, and says whether it is to be explained: whether its hops and causes are to follow, and whether
    /// [`Chain::explained`] is to count it.
    fn message(&mut self, message: MessageRow<'_>) -> bool {
        self.row(Row::Message(message));
        true
    }
}

impl<F: FnMut(Row<'_>)> RowSink for F {
    fn row(&mut self, row: Row<'_>) {
        self(row);
    }
}

/// A message of a chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageRow<'a> {
    /// Its chain's name.
    pub chain: &'a str,
    /// Which message of the chain in order of start, from 0: ids may begin again, this never does.
    pub nth: u64,
    /// Its id as stamped.
    pub id: u64,
    /// The same in each analysis of a stretch of the recording that holds the message: its id, where the program says that; else
    /// it comes from its chain and its start.
    pub identity: u64,
    /// Its first stamp.
    pub start_ns: u64,
    /// Its last stamp, or its outcome.
    pub end_ns: u64,
    /// From the chain's first to its last point; `None` for a message that did not pass both.
    pub way_ns: Option<u64>,
    /// "applied", "ended_early", the reason why it was dropped, "in_flight" or "unexplained".
    pub outcome: &'a str,
    /// Whether it came while the chain started up, and is not in the report's delays.
    pub is_startup: bool,
}

/// A hop of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct HopRow<'a> {
    /// As in [`MessageRow::chain`].
    pub chain: &'a str,
    /// As in [`MessageRow::nth`].
    pub nth: u64,
    /// As in [`MessageRow::id`].
    pub id: u64,
    /// Number of the chain's hop, from 1; of a message that missed points, that of the last hop.
    pub hop: u32,
    /// The point that it left.
    pub from: &'a str,
    /// The next one that it passed.
    pub to: &'a str,
    /// When it passed `from`.
    pub start_ns: u64,
    /// Until it passed `to`.
    pub duration_ns: u64,
    /// The thread that stamped at `from`, "comm/tid".
    pub from_thread: &'a str,
    /// The thread that stamped at `to`.
    pub to_thread: &'a str,
    /// As in [`MessageRow::is_startup`].
    pub is_startup: bool,
}

/// What a stretch of a hop was spent on; a hop's stretches leave no gap and do not overlap.
#[derive(Clone, Copy, Debug, Default)]
pub struct CauseRow<'a> {
    /// The hop that it is of.
    pub hop: HopRow<'a>,
    /// When it begins.
    pub start_ns: u64,
    /// How long it takes.
    pub duration_ns: u64,
    /// The cause.
    pub cause: Cause,
    /// Which lock, descriptor, interrupt ….
    pub detail: &'a str,
    /// The thread on the path, "comm/tid".
    pub thread: &'a str,
    /// The responsible thread: lock holder, preempting thread, or awaited peer.
    pub by: &'a str,
}

/// A thread's state for a while; a thread's states leave no gap.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateRow<'a> {
    /// The thread's number on the host.
    pub tid: i32,
    /// Its process's, if known.
    pub pid: Option<i32>,
    /// "comm/tid".
    pub thread: &'a str,
    /// Whether it is of the recorded process tree.
    pub is_recorded: bool,
    /// When it begins.
    pub start_ns: u64,
    /// How long it takes.
    pub duration_ns: u64,
    /// "running", "preempted", "woken" (and not yet running), "blocked", "uninterruptible", "stopped" or "unknown".
    pub state: &'static str,
    /// Where it runs, ran last, or was woken for.
    pub cpu: u16,
    /// Woken: the waking thread. Preempted: the thread that was given the CPU.
    pub by: &'a str,
}

/// Tells a chain's messages with their hops and causes.
pub(crate) struct Teller<'a> {
    chain: &'a Chain,
    fates: Fates<'a>,
    /// Of the chain's name, where its messages have no ids of their own.
    name_hash: Option<u64>,
    sink: &'a mut dyn RowSink,
}

impl<'a> Teller<'a> {
    pub fn new(
        chain: &'a Chain,
        all: &[(&Message, &[Pass])],
        line: &ChainLine,
        context: &'a Context<'a>,
        sink: &'a mut dyn RowSink,
    ) -> Teller<'a> {
        let fates = Fates::new(context, line, all, &chain.end_to_end.distribution, &chain.whole_life.distribution);
        let is_numbered = chain.source != SourceKind::Wakes;
        let name_hash = (!is_numbered).then(|| FixedState::default().hash_one(&chain.name));
        Teller { chain, fates, name_hash, sink }
    }

    /// The chain's nth message, `None` if it is not to be explained.
    pub fn message(
        &mut self,
        nth: u64,
        message: &Message,
        stamps: &[Pass],
        passage: &Passage,
        context: &Context<'_>,
    ) -> Option<MessageRow<'a>> {
        let reason;
        let outcome = match self.fates.of(message, stamps) {
            Fate::Applied => "applied",
            Fate::EndedEarly => "ended_early",
            Fate::InFlight => "in_flight",
            Fate::Lost => "lost",
            Fate::Unexplained => "unexplained",
            Fate::Dropped(id) => {
                reason = context.name(id);
                &reason
            }
        };
        let told = MessageRow {
            chain: &self.chain.name,
            nth,
            id: passage.id,
            identity: self.name_hash.map_or(passage.id, |hash| hash.wrapping_add(stamps[0].time_ns)),
            start_ns: stamps[0].time_ns,
            end_ns: message.last_ns.max(stamps[0].time_ns),
            way_ns: passage.is_whole(self.chain.points.len()).then(|| passage.total_ns()),
            outcome,
            is_startup: nth < self.chain.startup.as_ref().map_or(0, |startup| startup.messages),
        };
        let chain = &self.chain.name;
        self.sink.message(told).then_some(MessageRow { chain, outcome: "", ..told })
    }

    /// That message's hops, each with its causes behind it.
    pub fn hops(&mut self, message: &MessageRow<'_>, passage: &Passage, pieces: &[(u16, Piece)], walker: &Walker<'_>) {
        for pair in passage.passes.windows(2) {
            let [(before, from), (point, to)] = [pair[0], pair[1]];
            let [from_thread, to_thread] = [from, to].map(|pass| walker.objects.name(pass.tid, pass.time_ns));
            let hop = HopRow {
                chain: message.chain,
                nth: message.nth,
                id: message.id,
                hop: point as u32,
                from: &self.chain.points[before].name,
                to: &self.chain.points[point].name,
                start_ns: from.time_ns,
                duration_ns: to.time_ns - from.time_ns,
                from_thread: &from_thread,
                to_thread: &to_thread,
                is_startup: message.is_startup,
            };
            self.sink.row(Row::Hop(hop));
            let of_hop = pieces.iter().filter(|(hop, _)| usize::from(*hop) + 1 == point);
            for (_, piece) in of_hop.filter(|(_, piece)| piece.from_ns < piece.to_ns) {
                let name = |tid: i32| walker.objects.name(tid, piece.from_ns);
                self.sink.row(Row::Cause(CauseRow {
                    hop,
                    start_ns: piece.from_ns,
                    duration_ns: piece.to_ns - piece.from_ns,
                    cause: piece.cause,
                    detail: walker.names.text(piece.detail),
                    thread: &name(piece.tid),
                    by: &if piece.other == 0 { Cow::Borrowed("") } else { name(piece.other) },
                }));
            }
        }
    }
}

/// Every thread's states, by thread number; the idle tasks have none.
pub(crate) fn of_threads(timelines: &Timelines, objects: &Objects, sink: &mut dyn RowSink) {
    let mut tids: Vec<i32> = timelines.threads.keys().copied().filter(|tid| *tid != 0).collect();
    tids.sort_unstable();
    for tid in tids {
        let timeline = &timelines.threads[&tid];
        for (at, start_ns, end_ns) in timeline.between(0, timelines.end_ns) {
            let segment = timeline.segments[at];
            let Some(state) = word(segment.state) else { continue };
            let by = match segment.state {
                ThreadState::Woken | ThreadState::Preempted if segment.other != 0 => {
                    objects.name(segment.other, start_ns)
                }
                _ => Cow::Borrowed(""),
            };
            sink.row(Row::State(StateRow {
                tid,
                pid: objects.pid(tid),
                thread: &objects.name(tid, start_ns),
                is_recorded: objects.is_recorded(tid),
                start_ns,
                duration_ns: end_ns - start_ns,
                state,
                cpu: segment.cpu,
                by: &by,
            }));
        }
    }
}

/// `None` before its birth and after its death.
fn word(state: ThreadState) -> Option<&'static str> {
    Some(match state {
        ThreadState::Running => "running",
        ThreadState::Preempted => "preempted",
        ThreadState::Woken => "woken",
        ThreadState::Blocked => "blocked",
        ThreadState::Uninterruptible => "uninterruptible",
        ThreadState::Stopped => "stopped",
        ThreadState::Unknown | ThreadState::Lost => "unknown",
        ThreadState::Gone => return None,
    })
}
