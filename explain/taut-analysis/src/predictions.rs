//! What the chain would be without a cause: the recorded messages replayed (`replay`), or, where none waited for a busy
//! thread, each message's time less the cause's.

use std::collections::BTreeMap;

use taut_stats::{Distribution, percentile_curve, rank};

use crate::{
    Cause, Chain, ModeCause, Predicted, Prediction,
    factor::Factor,
    kind::Kind,
    ledger::Ledger,
    replay::{Removal, Removals, Removed, Replay, is_off},
    resample::{Blocks, widened},
    walk::Walker,
};

/// Quantiles that are shown before and after.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];
/// By so much do the times that messages take by themselves differ in another run on the same machine, at 95 %: what no recording of one run
/// shows. Calibrated on pairs of recordings and held against others: docs/proof/intervals.md.
const OTHER_RUN: f64 = 0.06;
/// So many causes are named of what remains.
const REMAINING: usize = 3;

/// What all predictions of a chain share.
pub(crate) struct Predictor<'a> {
    ledger: &'a Ledger,
    replay: Option<&'a Replay>,
    walker: &'a Walker<'a>,
    totals: Vec<u64>,
    /// The same, ascending.
    sorted: Vec<u64>,
    /// Highest quantile that is carried.
    quantile: Option<f64>,
    /// And of the messages as measured: of higher ones nothing is stated of them, and nothing predicted.
    carried: f64,
    /// The same, also above p99: how far the predicted curve goes.
    curve_to: f64,
    deadline_ns: Option<u64>,
}

/// Totals of the rows in a prediction.
struct Sample {
    /// By row.
    left: Vec<u64>,
    /// The same, ascending.
    sorted: Vec<u64>,
    blocks: Blocks,
    /// Of a replay: totals of one that is slower by [`OTHER_RUN`], ascending.
    slower: Vec<u64>,
}

/// What a kind of time is to what is removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    /// Index of what owns it.
    Own(usize),
    /// Goes with it.
    Drawn(usize),
}

impl<'a> Predictor<'a> {
    pub fn new(
        chain: &Chain,
        ledger: &'a Ledger,
        sorted: Vec<u64>,
        replay: Option<&'a Replay>,
        walker: &'a Walker<'a>,
        quantile: Option<f64>,
    ) -> Predictor<'a> {
        let totals: Vec<u64> = ledger.rows.iter().map(|row| row.total_ns).collect();
        let measured = Distribution::of(&totals, &sorted);
        let carried = measured.highest_to_p99().map(|(quantile, _)| quantile);
        Predictor {
            ledger,
            replay,
            walker,
            totals,
            sorted,
            quantile: quantile.or(carried),
            carried: carried.unwrap_or(0.0),
            curve_to: if measured.p999_ns.is_some() { 0.999 } else { carried.unwrap_or(0.0) },
            deadline_ns: chain.deadline_ns,
        }
    }

    /// The chain with the time of all these brought down: to nothing, or to the typical where it is part of the job. What a
    /// cause draws with it goes in the same proportion: the wait to run after a wait, the interrupts of a computation.
    pub fn without(&self, all: &[&Factor]) -> Prediction {
        // Load and hops are what is left of a message's way, not what a thread did: they are taken off as they are.
        let is_direct = all.iter().any(|s| matches!(s, Factor::Cause(Cause::Queued) | Factor::Hop(..)));
        let replay = self.replay.filter(|_| !is_direct);
        let parts: Vec<Part> = self.ledger.kinds.iter().map(|kind| self.part(all, kind)).collect();
        let kept: Vec<f64> = (0..all.len())
            .map(|nth| match all[nth].is_part_of_the_job() {
                true => self.typical_ns(&parts, nth, replay.is_some()),
                false => 0.0,
            })
            .collect();
        let (left, mut slower): (Vec<u64>, Vec<u64>) = match replay {
            Some(replay) => {
                let of_wait = |kind: &Kind, ns: u64, beyond: u64| match self.part(all, kind) {
                    Part::None => 0,
                    // The typical message has some of it.
                    Part::Own(nth) | Part::Drawn(nth) if kept[nth] >= 1.0 => beyond,
                    Part::Own(_) | Part::Drawn(_) => ns,
                };
                let mut removals = Removals::default();
                (0..self.totals.len())
                    .for_each(|row| removals.push(|all| self.removed(row, &parts, &kept, Some(replay), all)));
                let removal = Removal { of_rows: &removals, of_wait: &of_wait, slower: 1.0 };
                let slower = Removal { slower: 1.0 + OTHER_RUN, ..removal };
                (replay.totals(self.ledger, &removal), replay.totals(self.ledger, &slower))
            }
            None => {
                let mut removed = Vec::new();
                let left = |(row, total): (usize, &u64)| {
                    removed.clear();
                    self.removed(row, &parts, &kept, None, &mut removed);
                    total.saturating_sub(removed.iter().map(|of| of.own_ns + of.behind_ns).sum())
                };
                (self.totals.iter().enumerate().map(left).collect(), Vec::new())
            }
        };
        slower.sort_unstable();
        let blocks = Blocks::of(&left);
        let sorted = blocks.ascending();
        let remaining = self.remaining(&parts, kept.iter().sum(), &left, &sorted);
        let keeps = kept.iter().any(|kept| *kept >= 1.0);
        let half_in = self.half_in(&left, replay.and_then(Replay::base).unwrap_or(&self.totals));
        let sample = Sample { left, sorted, blocks, slower };
        Prediction { remaining, half_in, ..self.predictions(all, &sample, replay.is_some(), keeps) }
    }

    /// How many messages of the tail have half of the time that goes from it.
    fn half_in(&self, left: &[u64], base: &[u64]) -> u64 {
        let mut gone: Vec<u64> = self.ledger.tail.iter().map(|at| base[*at].saturating_sub(left[*at])).collect();
        gone.sort_unstable_by(|a, b| b.cmp(a));
        let half = gone.iter().sum::<u64>() / 2;
        let mut sum = 0;
        let is_needed = |ns: &&u64| {
            let before = sum;
            sum += **ns;
            before < half
        };
        gone.iter().take_while(is_needed).count() as u64
    }

    /// By what messages from the predicted quantile on still exceed typical ones: other causes of their own, and waits behind others
    /// that the run has and the recording had not.
    fn remaining(&self, parts: &[Part], kept_ns: f64, left: &[u64], sorted: &[u64]) -> Vec<ModeCause> {
        let Some(limit_ns) = self.quantile.and_then(|quantile| rank(sorted, quantile)) else { return Vec::new() };
        let mut typical: BTreeMap<Cause, f64> = BTreeMap::new();
        let of_others =
            || self.ledger.kinds.iter().zip(parts).enumerate().filter(|(_, (_, part))| **part == Part::None);
        for (at, (kind, _)) in of_others() {
            *typical.entry(kind.cause).or_default() += self.ledger.typical[at];
        }
        let mut beyond: BTreeMap<Cause, f64> = BTreeMap::new();
        for (row, left_ns) in self.ledger.rows.iter().zip(left).filter(|(_, left_ns)| **left_ns >= limit_ns) {
            let mut own: BTreeMap<Cause, f64> = BTreeMap::new();
            for (kind, ns) in self.ledger.amounts_of(row).filter(|(kind, _)| parts[*kind as usize] == Part::None) {
                *own.entry(self.ledger.kinds[kind as usize].cause).or_default() += ns as f64;
            }
            let more = *left_ns as f64 - kept_ns - own.values().sum::<f64>();
            *own.entry(Cause::Queued).or_default() += more.max(0.0);
            for (cause, ns) in own {
                *beyond.entry(cause).or_default() += (ns - typical.get(&cause).copied().unwrap_or(0.0)).max(0.0);
            }
        }
        let all: f64 = beyond.values().sum();
        let share = |(cause, ns): (Cause, f64)| ModeCause { cause, share: ns / all, ..ModeCause::default() };
        let mut shares: Vec<ModeCause> = beyond.into_iter().filter(|(_, ns)| *ns > 0.0).map(share).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares.truncate(REMAINING);
        shares
    }

    fn part(&self, all: &[&Factor], kind: &Kind) -> Part {
        let (objects, names) = (self.walker.objects, &*self.walker.names);
        let own = all.iter().position(|factor| factor.owns(kind, objects, names)).map(Part::Own);
        let drawn = || all.iter().position(|factor| factor.draws(kind, names)).map(Part::Drawn);
        match own.or_else(drawn) {
            Some(part) if !self.is_left_to_recorder(all, kind, part) => part,
            _ => Part::None,
        }
    }

    /// What the recorder took is no cause of the program's: it stays in a prediction, unless that is about the recorder itself.
    fn is_left_to_recorder(&self, all: &[&Factor], kind: &Kind, part: Part) -> bool {
        let objects = self.walker.objects;
        let is_named = || match part {
            Part::Own(nth) => match all[nth] {
                Factor::Process(name) => objects.process_is(kind.other, name),
                Factor::Thread(name) => objects.thread_is(kind.other, name),
                _ => false,
            },
            _ => false,
        };
        kind.other != 0 && objects.is_recorder(kind.other) && !is_named()
    }

    fn typical_ns(&self, parts: &[Part], nth: usize, own_only: bool) -> f64 {
        let kinds = self.ledger.kinds.iter().zip(&self.ledger.typical).zip(parts);
        let is = |kind: &Kind, part: &Part| *part == Part::Own(nth) && !(own_only && kind.queued);
        kinds.filter(|((kind, _), part)| is(kind, part)).map(|((_, ns), _)| ns).sum()
    }

    /// Appends by hop what goes of a message's own time, and of that behind others.
    fn removed(&self, row: usize, parts: &[Part], kept: &[f64], replay: Option<&Replay>, removed: &mut Vec<Removed>) {
        let own_only = replay.is_some();
        let amounts = self.ledger.amounts_of(&self.ledger.rows[row]);
        let kind = |number: u32| &self.ledger.kinds[number as usize];
        let share = |nth: usize| {
            let is_own = |(number, _): &(u32, u64)| {
                parts[*number as usize] == Part::Own(nth) && !(own_only && kind(*number).queued)
            };
            let own: u64 = amounts.clone().filter(is_own).map(|(_, ns)| ns).sum();
            if own > 0 { (own as f64 - kept[nth].floor()).max(0.0) / own as f64 } else { 0.0 }
        };
        let first = removed.len();
        let mut known: Option<(usize, f64)> = None;
        for (number, ns) in amounts.clone() {
            let (Part::Own(nth) | Part::Drawn(nth)) = parts[number as usize] else { continue };
            let kind = kind(number);
            // For how long a shared CPU is another's comes out of the run.
            if kind.is_away && own_only {
                continue;
            }
            let (own_ns, behind_ns) = match kind.queued && own_only {
                true => (0, ns),
                false => {
                    let (_, share) =
                        *known.insert(known.filter(|known| known.0 == nth).unwrap_or_else(|| (nth, share(nth))));
                    ((share * ns as f64).round() as u64, 0)
                }
            };
            let shared = replay.filter(|_| !self.walker.shared.is_empty());
            let server = shared.and_then(|replay| replay.server(row, kind.hop));
            let off_ns = if is_off(kind, server == Some(self.walker.server(kind.tid))) { own_ns } else { 0 };
            match removed[first..].iter_mut().find(|of| of.hop == kind.hop) {
                Some(sum) => {
                    (sum.own_ns, sum.off_ns, sum.behind_ns) =
                        (sum.own_ns + own_ns, sum.off_ns + off_ns, sum.behind_ns + behind_ns);
                }
                None => removed.push(Removed { hop: kind.hop, own_ns, off_ns, behind_ns }),
            }
        }
    }

    fn predictions(&self, all: &[&Factor], sample: &Sample, is_replayed: bool, keeps: bool) -> Prediction {
        let Sample { left, sorted, blocks, slower } = sample;
        let distribution = Distribution::of(left, sorted);
        let is_shown = |q: &f64| *q <= self.carried || Some(*q) == self.quantile;
        let of_another_run = |quantile| {
            let value_ns = rank(sorted, quantile)?;
            // Where messages queue, they wait longer for longer ones: more than in proportion (Kingman 1961).
            let queued = rank(slower, quantile).map_or(1.0, |slower_ns| slower_ns as f64 / value_ns.max(1) as f64);
            let ratio = queued.max(1.0 + OTHER_RUN);
            Some(widened(value_ns, blocks.interval(quantile)?, ratio))
        };
        let least_ns = of_another_run(0.5).map_or(0, |(low, _)| low);
        // No quantile above the median is below it; of few bursts a resample may say so.
        let interval = |quantile| of_another_run(quantile).map(|(low, high)| (low.max(least_ns.min(high)), high));
        let predicted = |quantile: f64| {
            Some(Predicted {
                quantile,
                before_ns: rank(&self.sorted, quantile)?,
                after_ns: rank(sorted, quantile)?,
                interval_ns: interval(quantile)?,
            })
        };
        let at = |values: &[u64]| self.quantile.and_then(|q| rank(values, q)).unwrap_or(0);
        let (was, is) = (at(&self.sorted), at(sorted));
        let words: Vec<String> = all.iter().map(|factor| factor.word()).collect();
        let what = words.join(" and ");
        let objects = self.walker.objects;
        let is_kept = |kind: &Kind| {
            kind.other != 0
                && objects.is_recorder(kind.other)
                && self.part(all, kind) == Part::None
                && all.iter().any(|factor| factor.owns(kind, objects, self.walker.names))
        };
        let kept = if self.ledger.kinds.iter().any(is_kept) { "; what this recorder took of it stays" } else { "" };
        let alone = match is_replayed {
            true => {
                "; messages start when they have arrived and their thread is free, sources keep their times, and nothing else takes its place"
            }
            false => "; what waited behind it or interrupted it goes with it, and nothing else takes its place",
        };
        Prediction {
            p50_ns: distribution.p50_ns,
            p99_ns: distribution.p99_ns,
            quantiles: QUANTILES.into_iter().filter(is_shown).filter_map(predicted).collect(),
            percentiles: percentile_curve(sorted).into_iter().filter(|(q, _)| *q <= self.curve_to).collect(),
            gain_quantile: self.quantile,
            gain: if was > 0 { 1.0 - is as f64 / was as f64 } else { 0.0 },
            missed: self.deadline_ns.map(|deadline| left.iter().filter(|total| **total > deadline).count() as u64),
            is_replayed,
            half_in: 0,
            remaining: Vec::new(),
            keeps_typical: keeps,
            assumption: match keeps {
                true => format!("{what} never takes longer than in the typical message{alone}{kept}"),
                false => format!("no message spends time on {what}{alone}{kept}"),
            },
            without: what,
        }
    }
}
