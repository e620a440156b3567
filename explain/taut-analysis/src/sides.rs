//! Splits every message's time, hop by hop, into the program's own and the machine's.
//!
//! What is not proven to be the machine's is the program's. So a program cannot get slower unseen, and a recording
//! without kernel events has no machine's side at all. `docs/reference/gate.md` says in words what is counted where.

use foldhash::HashMap;

use crate::{
    Cause, SideShare, Sides, Spent, queues,
    walk::{Moment, Piece, Walker},
};

/// Holders followed from one wait: a lock's holder may itself wait for the next.
const DEPTH_MAX: usize = 6;

/// Hop, cause, whether it is the machine's, and how long.
type Share = (u16, Cause, bool, u64);

/// Collects the sides of one chain, message by message in order of their start.
pub(crate) struct Collector {
    sides: Sides,
    shares: HashMap<(u16, Cause, bool), u64>,
    /// Machine time that each thread suffered since it last had nothing to do: the backlog that the machine made.
    debts: HashMap<i32, u64>,
}

impl Collector {
    pub fn new(hops: usize, is_blind: bool) -> Collector {
        let sides = Sides { hops, is_blind, ..Sides::default() };
        Collector { sides, shares: HashMap::default(), debts: HashMap::default() }
    }

    /// Takes in one message's path: pieces in order of time, each with its hop.
    pub fn add(&mut self, start_ns: u64, pieces: &[(u16, Piece)], walker: &mut Walker<'_>, strangers: &[i32]) {
        let (row, shares) = self.divide(pieces, walker, strangers);
        self.sides.start_ns.push(start_ns);
        self.sides.spent.extend(row);
        for (hop, cause, is_machine, ns) in shares {
            if cause == Cause::Unknown {
                self.sides.unknown_ns += ns;
            }
            *self.shares.entry((hop, cause, is_machine)).or_default() += ns;
        }
    }

    /// The same of a message of the start-up.
    pub fn add_startup(&mut self, pieces: &[(u16, Piece)], walker: &mut Walker<'_>, strangers: &[i32]) {
        let (row, _) = self.divide(pieces, walker, strangers);
        let whole = row.iter().fold(Spent::default(), |whole, hop| Spent {
            total_ns: whole.total_ns + hop.total_ns,
            machine_ns: whole.machine_ns + hop.machine_ns,
            work_ns: whole.work_ns + hop.work_ns,
        });
        self.sides.startup.push(whole);
    }

    /// What a message spent in each hop; and piece by piece, the time of a cause on a side.
    fn divide(
        &mut self,
        pieces: &[(u16, Piece)],
        walker: &mut Walker<'_>,
        strangers: &[i32],
    ) -> (Vec<Spent>, Vec<Share>) {
        let mut shares = Vec::new();
        let mut row = vec![Spent::default(); self.sides.hops];
        for hop in pieces.chunk_by(|one, next| one.0 == next.0) {
            let (number, server) = (hop[0].0, hop[hop.len() - 1].1.tid);
            let waited_behind = |(_, piece): &(u16, Piece)| piece.behind.is_some();
            // A thread that takes over a message at once had nothing to do before.
            if hop[0].1.tid != server && !hop.iter().any(waited_behind) {
                self.debts.remove(&server);
            }
            // What a message waits for behind others while the machine takes it, and then what is left of the backlog.
            let mut backlog = self.debts.get(&server).copied().unwrap_or(0);
            let mut machine: Vec<u64> = Vec::with_capacity(hop.len());
            for (_, piece) in hop {
                let length = piece.to_ns - piece.from_ns;
                machine.push(match queues::is_load(piece) {
                    true => 0,
                    false => machine_ns(piece, walker, strangers, DEPTH_MAX).min(length),
                });
                match piece.behind {
                    // What a message waits for behind another is that one's already.
                    Some(_) => backlog = backlog.saturating_sub(machine[machine.len() - 1]),
                    None => *self.debts.entry(piece.tid).or_default() += machine[machine.len() - 1],
                }
            }
            for ((_, piece), mut machine) in hop.iter().zip(machine) {
                let length = piece.to_ns - piece.from_ns;
                // In a queue that never idles, taking a stall out takes at most its length out of the waits behind it
                // (Lindley 1952).
                if queues::is_load(piece) {
                    machine = length.min(backlog);
                    backlog -= machine;
                }
                let spent = &mut row[usize::from(number)];
                spent.total_ns += length;
                spent.machine_ns += machine;
                let is_work = matches!(piece.cause, Cause::Cpu | Cause::Syscall | Cause::PageFault)
                    || walker.is_in_senders_kernel(piece);
                if is_work && piece.behind.is_none() {
                    spent.work_ns += length - machine;
                }
                let cause = if queues::is_load(piece) { Cause::Queued } else { piece.cause };
                let sides = [(false, length - machine), (true, machine)];
                shares.extend(sides.into_iter().filter(|(_, ns)| *ns > 0).map(|(side, ns)| (number, cause, side, ns)));
            }
        }
        (row, shares)
    }

    pub fn finish(mut self) -> Sides {
        let share =
            |((hop, cause, is_machine), time_ns)| SideShare { hop: usize::from(hop), cause, is_machine, time_ns };
        self.sides.shares = self.shares.into_iter().map(share).collect();
        self.sides.shares.sort_by_key(|s| (s.hop, std::cmp::Reverse(s.time_ns), s.cause, s.is_machine));
        self.sides
    }
}

/// How much of a piece is the machine's doing; queues apart.
fn machine_ns(piece: &Piece, walker: &mut Walker<'_>, strangers: &[i32], depth: usize) -> u64 {
    let length = piece.to_ns - piece.from_ns;
    match piece.cause {
        // The program decides how much it sends.
        Cause::Network if walker.is_in_senders_kernel(piece) => 0,
        Cause::Irq | Cause::Hypervisor | Cause::Stopped | Cause::Network => length,
        // The program's own threads use its quota up, as far as anybody knows: then it is the more held, the more it computes.
        Cause::Throttled => 0,
        Cause::Preempted | Cause::Wakeup if is_own(piece.other, walker, strangers) => 0,
        Cause::Preempted | Cause::Wakeup => length,
        // The slack is what the program asked for; what comes after it is not.
        Cause::TimerSlack if walker.names.text(piece.detail).starts_with(crate::walk::TIMER_LATE) => length,
        // A holder that was kept from running kept everybody waiting.
        Cause::Lock | Cause::Gil | Cause::Io | Cause::Executor
            if piece.other != 0 && (piece.other != piece.tid || piece.cause == Cause::Executor) && depth > 0 =>
        {
            let start = Moment::of(piece.other, piece.from_ns);
            let holders = walker.alone(start, piece.to_ns);
            holders.iter().map(|piece| machine_ns(piece, walker, strangers, depth - 1)).sum()
        }
        _ => 0,
    }
}

/// Whether a thread is the program's; idle is not, and neither is the probe that runs beside it.
fn is_own(tid: i32, walker: &Walker<'_>, strangers: &[i32]) -> bool {
    let objects = walker.objects;
    tid != 0 && objects.is_recorded(tid) && !strangers.contains(&objects.pid(tid).unwrap_or(tid))
}
