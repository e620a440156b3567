//! The time of a chain's messages in one table: a row for each message, an amount for each kind of piece.
//! All questions about the tail are sums over it.

use std::ops::Range;

use foldhash::HashMap;

use crate::{
    explained::Cause,
    kind::Kind,
    queues::{Divided, Wait},
};

/// One message's row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub id: u64,
    pub start_ns: u64,
    pub total_ns: u64,
    /// Which of the ledger's amounts are its own.
    amounts: Range<usize>,
    /// Few messages have any.
    queued: Option<Box<Queued>>,
}

/// What a message waited behind others, by hop.
#[derive(Clone, Debug)]
struct Queued {
    waits: Vec<(u16, Wait)>,
    away: Vec<(u16, u64)>,
}

impl Row {
    /// Waits for busy threads, by hop.
    pub fn waits(&self) -> &[(u16, Wait)] {
        self.queued.as_ref().map_or(&[], |queued| &queued.waits)
    }

    /// For how long, else, a shared CPU was another's, by hop.
    pub fn away(&self) -> &[(u16, u64)] {
        self.queued.as_ref().map_or(&[], |queued| &queued.away)
    }
}

/// Time of one kind. A row has a dozen of them: with 64 bits of time, ten million kernel events took 20 MB more.
#[derive(Clone, Copy)]
struct Amount {
    /// Number of the kind.
    kind: u32,
    /// [`LONG`]: it lies apart.
    ns: u32,
}

/// As long, 4.3 s, and longer.
const LONG: u32 = u32::MAX;

/// Amounts of one row after the other.
#[derive(Default)]
struct Amounts {
    all: Vec<Amount>,
    /// By index: those that are too long for an [`Amount`].
    long: HashMap<usize, u64>,
}

impl Amounts {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn push(&mut self, kind: u32) {
        self.all.push(Amount { kind, ns: 0 });
    }

    fn add(&mut self, at: usize, ns: u64) {
        let sum_ns = self.ns(at, self.all[at]) + ns;
        self.all[at].ns = u32::try_from(sum_ns).unwrap_or(LONG);
        if self.all[at].ns == LONG {
            self.long.insert(at, sum_ns);
        }
    }

    /// (number of the kind, time).
    fn of(&self, row: &Row) -> impl Iterator<Item = (u32, u64)> + Clone {
        let of_row = row.amounts.clone().zip(&self.all[row.amounts.clone()]);
        of_row.map(|(at, amount)| (amount.kind, self.ns(at, *amount)))
    }

    fn ns(&self, at: usize, amount: Amount) -> u64 {
        if amount.ns == LONG { self.long[&at] } else { amount.ns.into() }
    }
}

/// Of the row before, so many kinds are looked at for one that comes next.
const AHEAD: usize = 2;

/// All rows, in order of the messages' starts.
#[derive(Default)]
pub(crate) struct Ledger {
    pub rows: Vec<Row>,
    amounts: Amounts,
    pub kinds: Vec<Kind>,
    numbers: HashMap<Kind, u32>,
    /// Mean of each kind over the middle fifth of the rows by total.
    pub typical: Vec<f64>,
    /// Indices of the rows, the shortest first; once they are in order.
    pub by_total: Vec<u32>,
    /// Indices of the rows in the tail.
    pub tail: Vec<usize>,
}

impl Ledger {
    pub fn add(&mut self, id: u64, start_ns: u64, total_ns: u64, divided: Divided) {
        let Divided { pieces, waits, away } = divided;
        let first = self.amounts.len();
        // Of the row before, those that may come next.
        let mut like = self.rows.last().map_or(0..0, |row| row.amounts.clone());
        // Index of the amount of the piece before: of a long queue most are of one kind.
        let mut last: Option<(Kind, usize)> = None;
        for (hop, piece) in pieces {
            let (kind, ns) = (Kind::of(hop, &piece), piece.to_ns - piece.from_ns);
            let at = match last {
                Some((known, at)) if known == kind => at,
                _ => self.place(kind, first, &mut like),
            };
            self.amounts.add(at, ns);
            last = Some((kind, at));
        }
        let amounts = first..self.amounts.len();
        let is_queued = !waits.is_empty() || !away.is_empty();
        let queued = is_queued.then(|| Box::new(Queued { waits, away }));
        self.rows.push(Row { id, start_ns, total_ns, amounts, queued });
    }

    /// Index of the amount of that kind in the row that begins at `first`. Messages have the same kinds in the same order, mostly.
    fn place(&mut self, kind: Kind, first: usize, like: &mut Range<usize>) -> usize {
        let ahead = &self.amounts.all[like.start..like.end.min(like.start + AHEAD)];
        let number = match ahead.iter().position(|amount| self.kinds[amount.kind as usize] == kind) {
            Some(at) => {
                like.start += at + 1;
                ahead[at].kind
            }
            None => self.number(kind),
        };
        let known = self.amounts.all[first..].iter().position(|known| known.kind == number);
        known.map_or_else(
            || {
                self.amounts.push(number);
                self.amounts.len() - 1
            },
            |at| first + at,
        )
    }

    fn number(&mut self, kind: Kind) -> u32 {
        let next = self.kinds.len() as u32;
        *self.numbers.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            next
        })
    }

    /// A row's time by kind: (number of the kind, time).
    pub fn amounts_of(&self, row: &Row) -> impl Iterator<Item = (u32, u64)> + Clone {
        self.amounts.of(row)
    }

    /// The time of all rows of the tail by kind: row, kind, time.
    pub fn amounts_of_tail(&self) -> impl Iterator<Item = (&Row, &Kind, u64)> {
        let rows = self.tail.iter().map(|at| &self.rows[*at]);
        rows.flat_map(move |row| self.amounts_of(row).map(move |(kind, ns)| (row, &self.kinds[kind as usize], ns)))
    }

    /// Once all rows are in: puts them in order of their totals, which are returned.
    pub fn order(&mut self) -> Vec<u64> {
        let mut by_total: Vec<(u64, u32)> = (0..).zip(&self.rows).map(|(at, row)| (row.total_ns, at)).collect();
        by_total.sort_unstable();
        self.by_total = by_total.iter().map(|(_, at)| *at).collect();
        by_total.into_iter().map(|(total_ns, _)| total_ns).collect()
    }

    /// Once they are in order: the tail are those above `limit_ns`.
    pub fn close(&mut self, limit_ns: Option<u64>) {
        // A cause that hits a third of the messages must not look typical.
        let cut = self.by_total.len() * 2 / 5;
        let middle = &self.by_total[cut..self.by_total.len() - cut];
        let mut typical = vec![0.0; self.kinds.len()];
        for (kind, ns) in middle.iter().flat_map(|at| self.amounts_of(&self.rows[*at as usize])) {
            typical[kind as usize] += ns as f64 / middle.len() as f64;
        }
        self.typical = typical;
        let is_late = |at: &usize| limit_ns.is_some_and(|limit| self.rows[*at].total_ns > limit);
        self.tail = (0..self.rows.len()).filter(is_late).collect();
    }

    /// Time of the typical message in the kinds that `of` picks.
    pub fn typical_ns(&self, of: impl Fn(&Kind) -> bool) -> f64 {
        self.kinds.iter().zip(&self.typical).filter(|(kind, _)| of(kind)).map(|(_, ns)| ns).sum()
    }

    /// A row's own time in a hop in the kinds that `of` picks.
    pub fn own_ns(&self, row: usize, hop: u16, of: impl Fn(&Kind) -> bool) -> u64 {
        let kinds = self.amounts_of(&self.rows[row]).map(|(number, ns)| (&self.kinds[number as usize], ns));
        kinds.filter(|(kind, _)| kind.hop == hop && !kind.queued && of(kind)).map(|(_, ns)| ns).sum()
    }

    /// Each row's time in the kinds that `of` picks.
    pub fn amounts(&self, of: impl Fn(&Kind) -> bool) -> Vec<u64> {
        let picked: Vec<bool> = self.kinds.iter().map(of).collect();
        let picks = |(kind, _): &(u32, u64)| picked[*kind as usize];
        let amount = |row: &Row| self.amounts_of(row).filter(picks).map(|(_, ns)| ns).sum();
        self.rows.iter().map(amount).collect()
    }

    /// Sums of the tail by group, and by how much each tail message exceeds the typical one in each.
    pub fn groups<G: Copy + Eq + std::hash::Hash + Ord>(&self, group: impl Fn(&Kind) -> G) -> Groups<G> {
        self.groups_of(&self.tail, group)
    }

    /// The same of some rows.
    pub fn groups_of<G: Copy + Eq + std::hash::Hash + Ord>(
        &self,
        rows: &[usize],
        group: impl Fn(&Kind) -> G,
    ) -> Groups<G> {
        let of: Vec<G> = self.kinds.iter().map(group).collect();
        let mut typical: HashMap<G, f64> = HashMap::default();
        for (group, ns) in of.iter().zip(&self.typical) {
            *typical.entry(*group).or_default() += ns;
        }
        let mut groups = Groups { lines: Vec::new(), excess: Vec::new() };
        let mut lines: HashMap<G, LedgerLine<G>> = HashMap::default();
        for at in rows {
            // In order: sums of floats depend on theirs, and two reports of one recording are equal.
            let of_row = self.amounts_of(&self.rows[*at]);
            let mut amounts: Vec<(G, u64)> = of_row.map(|(kind, ns)| (of[kind as usize], ns)).collect();
            amounts.sort_unstable();
            let mut excess = 0.0;
            for amounts in amounts.chunk_by(|one, next| one.0 == next.0) {
                let group = amounts[0].0;
                let ns: u64 = amounts.iter().map(|(_, ns)| ns).sum();
                let beyond = (ns as f64 - typical[&group]).max(0.0);
                let typical_ns = typical[&group] as u64;
                let line = lines.entry(group).or_insert(LedgerLine {
                    group,
                    time_ns: 0,
                    excess_ns: 0.0,
                    typical_ns,
                    messages: 0,
                });
                line.time_ns += ns;
                line.messages += u64::from(ns > 0);
                line.excess_ns += beyond;
                excess += beyond;
            }
            groups.excess.push(excess);
        }
        groups.lines = lines.into_values().collect();
        groups.lines.sort_by(|a, b| b.excess_ns.total_cmp(&a.excess_ns).then(a.group.cmp(&b.group)));
        groups
    }
}

/// The tail's time by group.
pub(crate) struct Groups<G> {
    /// Most excess first.
    pub lines: Vec<LedgerLine<G>>,
    /// Of each tail message: the sum of its groups' excess.
    pub excess: Vec<f64>,
}

/// One group.
pub(crate) struct LedgerLine<G> {
    pub group: G,
    pub time_ns: u64,
    /// By how much the tail's messages exceed the typical one, none counted negative.
    pub excess_ns: f64,
    pub typical_ns: u64,
    /// Messages of the tail with any of it.
    pub messages: u64,
}

impl<G> Groups<G> {
    /// The line's share of all excess.
    pub fn share(&self, line: &LedgerLine<G>) -> f64 {
        let total = self.all_excess_ns();
        if total > 0.0 { line.excess_ns / total } else { 0.0 }
    }

    /// A share of all excess as a time.
    pub fn excess_ns(&self, share: f64) -> u64 {
        (share * self.all_excess_ns()).round() as u64
    }

    fn all_excess_ns(&self) -> f64 {
        self.lines.iter().map(|line| line.excess_ns).sum()
    }

    /// The lines' shares of all excess where they divide causes: each cause has its share as a whole, and its lines have theirs of that.
    /// Else a cause with many parties would have more than its time: a party that few messages meet is never typical.
    pub fn shares_of(&self, causes: &Groups<Cause>, cause: impl Fn(&G) -> Cause) -> Vec<f64> {
        let mut within: HashMap<Cause, f64> = HashMap::default();
        for line in &self.lines {
            *within.entry(cause(&line.group)).or_default() += line.excess_ns;
        }
        let whole: HashMap<Cause, f64> = causes.lines.iter().map(|line| (line.group, causes.share(line))).collect();
        let share = |line: &LedgerLine<G>| {
            let cause = cause(&line.group);
            if within[&cause] > 0.0 { whole[&cause] * line.excess_ns / within[&cause] } else { 0.0 }
        };
        self.lines.iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Piece;

    fn piece(from_ns: u64, to_ns: u64, cause: Cause) -> (u16, Piece) {
        (0, Piece { cause, ..Piece::unknown(from_ns, to_ns, 1) })
    }

    #[test]
    fn a_long_time_is_exact() {
        let mut ledger = Ledger::default();
        let long_ns = u64::from(LONG);
        for (id, total_ns) in (0..).zip([long_ns - 1, long_ns, long_ns + 1, 3 * long_ns, 7]) {
            let pieces = vec![piece(0, 5, Cause::Cpu), piece(5, 6, Cause::Lock), piece(6, total_ns, Cause::Cpu)];
            ledger.add(id, id, total_ns, Divided { pieces, ..Divided::default() });
            let of_row: Vec<u64> = ledger.amounts_of(&ledger.rows[id as usize]).map(|(_, ns)| ns).collect();
            assert_eq!(of_row, [total_ns - 1, 1]);
        }
    }

    #[test]
    fn what_everybody_has_is_nobodys_fault() {
        let mut ledger = Ledger::default();
        for id in 0..100 {
            let late = if id < 3 { 50 } else { 0 };
            let pieces = [piece(0, 100, Cause::Cpu), piece(100, 100 + late, Cause::Lock)];
            let pieces = pieces.into_iter().filter(|(_, p)| p.from_ns < p.to_ns).collect();
            ledger.add(id, id, 100 + late, Divided { pieces, ..Divided::default() });
        }
        ledger.order();
        ledger.close(Some(120));
        let groups = ledger.groups(|kind| kind.cause);
        let shares: Vec<_> = groups.lines.iter().map(|l| (l.group, groups.share(l), l.time_ns, l.typical_ns)).collect();
        assert_eq!(shares, [(Cause::Lock, 1.0, 150, 0), (Cause::Cpu, 0.0, 300, 100)]);
        assert_eq!(groups.excess, [50.0; 3]);
    }

    #[test]
    fn a_cause_is_as_large_whoever_its_parties_are() {
        let mut ledger = Ledger::default();
        // Everybody waits 100 for one of many; three wait 50 for a lock besides.
        for id in 0..100u32 {
            let late = if id % 33 == 5 { 50 } else { 0 };
            let wait = (0, Piece { cause: Cause::Wakeup, detail: id, ..Piece::unknown(0, 100, 1) });
            let pieces = [wait, piece(100, 100 + late, Cause::Lock)];
            let pieces = pieces.into_iter().filter(|(_, p)| p.from_ns < p.to_ns).collect();
            ledger.add(id.into(), id.into(), 100 + late, Divided { pieces, ..Divided::default() });
        }
        ledger.order();
        ledger.close(Some(120));
        let causes = ledger.groups(|kind| kind.cause);
        let groups = ledger.groups(|kind| (kind.cause, kind.detail));
        let shares = groups.shares_of(&causes, |(cause, _)| *cause);
        let of = |wanted: Cause| -> f64 {
            groups.lines.iter().zip(&shares).filter(|(line, _)| line.group.0 == wanted).map(|(_, share)| share).sum()
        };
        assert_eq!((of(Cause::Lock), of(Cause::Wakeup)), (1.0, 0.0));
    }
}
