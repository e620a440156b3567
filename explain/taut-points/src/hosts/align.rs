//! Messages between two hosts → what is known of the offset of their clocks, at each moment.
//!
//! A message from A to B that left at x of A's clock and arrived at y of B's bounds the offset o = B − A from above: o(x) ≤ y − x.
//! One from B to A bounds it from below at its arrival. Between messages the offset moves by an unknown rate that is constant but for
//! [`Drift::change`]. From that follows an interval at each moment, and nothing narrower does (an extension of functions with a
//! bounded slope, McShane 1934). No line through the whole recording is assumed: clocks bend.

use std::ops::Range;

use taut_clock::nearest;

use super::host_clock::Near;

/// One message between two hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Which way it went.
    pub way: Way,
    /// Host A's clock at the message's moment there, in ns.
    pub a_ns: i64,
    /// Host B's, at its moment there.
    pub b_ns: i64,
    /// The message, for people.
    pub message: u64,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Sent by A, received by B.
    ToB,
    /// Sent by B, received by A.
    ToA,
}

/// What is assumed of the rate between the two clocks, as shares (1e-6 is 1 ppm).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The rate over the whole recording is at most this far from 0.
    pub most: f64,
    /// The rate at a moment is at most this far from that of the whole recording.
    pub change: f64,
}

impl Default for Drift {
    fn default() -> Drift {
        Drift { most: 500e-6, change: 10e-6 }
    }
}

/// What is known of the offset of B's clock from A's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alignment {
    /// Stretches without a step, in order of time.
    pub pieces: Vec<Piece>,
    /// Messages that contradict the others; they are not used.
    pub refused: Vec<Refused>,
    /// Messages from A to B, and back, that were used.
    pub used: [u64; 2],
    /// There are more contradictions than [`MOST_CUTS`]: nothing here is of use.
    pub is_contradictory: bool,
}

/// A stretch without a step of either clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// A's clock: from when on this is known.
    pub from_ns: i64,
    /// Until when.
    pub to_ns: i64,
    /// How far a moment's rate may be from the piece's: grows the bound between knots.
    pub change: f64,
    /// The rates that the messages allow.
    pub rates: (f64, f64),
    /// In order of time.
    pub knots: Vec<Knot>,
}

/// The offset at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// A's clock.
    pub at_ns: i64,
    /// The least offset that the messages allow; `None`: they say nothing, all that were seen went from A to B.
    pub low_ns: Option<i64>,
    /// The largest.
    pub high_ns: Option<i64>,
}

/// A message that was not used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// It.
    pub crossing: Crossing,
    /// By so much its delay would be negative.
    pub by_ns: i64,
}

/// An offset with its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The middle of what is possible; where one side is open, its other side.
    pub offset_ns: i64,
    /// The offset is at most this far from it; `None` where one side is open.
    pub bound_ns: Option<u64>,
}

/// Messages that are kept at most: of more, the tightest of each stretch.
const MOST: usize = 1 << 14;
/// Knots are this far apart at least.
pub(super) const KNOT_NS: i64 = 10_000_000;
/// And at most so many.
pub(super) const MOST_KNOTS: i64 = 20_000;
/// The rates that the messages allow are covered by so many cells.
const CELLS: usize = 16;
/// A message after a contradiction is a step's if the next ones contradict as well; so many are looked at.
const LOOK_AHEAD: usize = 24;
/// So many of its own side that agree without it show that it was wrong.
const AGREE: usize = 3;
/// Steps and wrong messages that are believed at most.
const MOST_CUTS: usize = 100;
/// Times are whole nanoseconds, and calculated in f64.
pub(super) const ROUNDING_NS: f64 = 2.0;

/// One side of the offset at one moment, from a base.
#[derive(Clone, Copy)]
struct Limit {
    x: f64,
    value: f64,
    is_high: bool,
    /// Index among the crossings.
    of: usize,
}

/// What the crossings say; in any order.
pub fn align(crossings: &[Crossing], drift: Drift) -> Alignment {
    let Some(first) = crossings.first() else { return Alignment::default() };
    let base = (first.a_ns, first.b_ns.wrapping_sub(first.a_ns));
    let mut limits: Vec<Limit> = crossings.iter().enumerate().map(|(of, crossing)| limit(crossing, of, base)).collect();
    limits.sort_by(|a, b| a.x.total_cmp(&b.x));
    let limits = thinned(limits, drift);
    let sent = |way: Way| crossings.iter().filter(|crossing| crossing.way == way).count() as u64;
    let mut alignment = Alignment { used: [sent(Way::ToB), sent(Way::ToA)], ..Alignment::default() };
    let mut start = 0;
    let mut rest = limits;
    while start < rest.len() && !alignment.is_contradictory {
        alignment.is_contradictory = alignment.refused.len() + alignment.pieces.len() > MOST_CUTS;
        let end = start + feasible(&rest[start..], drift);
        if end < rest.len()
            && let Some(at) = wrong(&rest[start..], end - start, drift)
        {
            let bad = rest.remove(start + at);
            let others = &rest[start..(end + LOOK_AHEAD).min(rest.len())];
            let by_ns = violation_of(others, bad, drift).round() as i64;
            alignment.refused.push(Refused { crossing: crossings[bad.of], by_ns });
            alignment.used[usize::from(!bad.is_high)] -= 1;
            continue;
        }
        let of_piece = &rest[start..end];
        // What came after the last message of the kind that shows the step may be behind it.
        let shown = rest.get(end).and_then(|next| of_piece.iter().rev().find(|limit| limit.is_high == next.is_high));
        let to = if end < rest.len() { shown.map(|limit| limit.x) } else { None };
        alignment.pieces.push(piece(of_piece, base, to, drift));
        start = end;
    }
    alignment
}

impl Alignment {
    /// Without any message: an offset that is taken as it is.
    pub fn constant(at_ns: i64, offset_ns: i64, bound_ns: Option<u64>) -> Alignment {
        let bound_ns = bound_ns.map(|bound_ns| bound_ns as i64);
        let low_ns = bound_ns.map(|bound_ns| offset_ns - bound_ns);
        let knots = vec![Knot { at_ns, low_ns, high_ns: Some(offset_ns + bound_ns.unwrap_or(0)) }];
        let piece = Piece { from_ns: at_ns, to_ns: at_ns, change: 0.0, rates: (0.0, 0.0), knots };
        Alignment { pieces: vec![piece], ..Alignment::default() }
    }

    /// The offset at this moment of A's clock. Between two pieces the nearer one says it, without a bound.
    pub fn at(&self, a_ns: i64) -> Option<Known> {
        let next = self.pieces.partition_point(|piece| piece.from_ns <= a_ns);
        let piece = self.pieces.get(next.saturating_sub(1))?;
        if a_ns <= piece.to_ns || next == self.pieces.len() {
            return piece.at(a_ns);
        }
        let after = &self.pieces[next];
        let nearer = if next > 0 && a_ns - piece.to_ns < after.from_ns - a_ns { piece } else { after };
        nearer.at(a_ns).map(|known| Known { bound_ns: None, ..known })
    }

    /// What is possible at this moment of A's clock; `None` between two pieces.
    pub fn knot(&self, a_ns: i64) -> Option<Knot> {
        let next = self.pieces.partition_point(|piece| piece.from_ns <= a_ns);
        let piece = self.pieces.get(next.saturating_sub(1))?;
        (a_ns <= piece.to_ns || next == self.pieces.len()).then(|| piece.knot(a_ns))?
    }

    /// A's clock when B's shows this. It never goes back, also where a clock stepped.
    pub fn a_of(&self, b_ns: i64) -> Option<i64> {
        self.a_of_near(b_ns, &Near::default())
    }

    /// The same; `near` is where the last moment was found.
    pub(super) fn a_of_near(&self, b_ns: i64, near: &Near) -> Option<i64> {
        if let [piece] = self.pieces.as_slice() {
            return piece.a_of(b_ns, near);
        }
        let shown = |piece: &Piece, a_ns: i64| piece.at(a_ns).map_or(i64::MAX, |known| a_ns + known.offset_ns);
        let next = self.pieces.partition_point(|piece| shown(piece, piece.from_ns) <= b_ns);
        let before = self.pieces.get(next.saturating_sub(1))?;
        let by_before = before.a_of(b_ns, near)?;
        let Some(after) = self.pieces.get(next).filter(|_| next > 0 && by_before > before.to_ns) else {
            return Some(by_before);
        };
        // Between two pieces: when the step was is not known. It was not where it would take the moment out of the gap.
        let by_after = after.a_of(b_ns, &Near::default())?;
        let gap = before.to_ns..=after.from_ns;
        let is_nearer_after = shown(after, after.from_ns) - b_ns < b_ns - shown(before, before.to_ns);
        Some(match (gap.contains(&by_before), gap.contains(&by_after)) {
            (true, true) => {
                if is_nearer_after {
                    by_after
                } else {
                    by_before
                }
            }
            (true, false) => by_before,
            (false, true) => by_after,
            // Foreign times may wrap, so that the pieces' ends are not in order.
            (false, false) => by_before.max(before.to_ns).min(after.from_ns),
        })
    }
}

impl Piece {
    fn at(&self, a_ns: i64) -> Option<Known> {
        let (knot, away_ns) = self.level(a_ns)?;
        let known = knot.known()?;
        Some(Known { bound_ns: known.bound_ns.map(|bound| bound + away_ns.unsigned_abs()), ..known })
    }

    fn knot(&self, a_ns: i64) -> Option<Knot> {
        let (knot, away_ns) = self.level(a_ns)?;
        let (low_ns, high_ns) =
            (knot.low_ns.map(|low| low.saturating_sub(away_ns)), knot.high_ns.map(|high| high.saturating_add(away_ns)));
        Some(Knot { low_ns, high_ns, ..knot })
    }

    /// Both sides as the nearest knots have them, and how far the offset can be beyond either.
    fn level(&self, a_ns: i64) -> Option<(Knot, i64)> {
        let next = self.knots.partition_point(|knot| knot.at_ns <= a_ns);
        let (Some(before), Some(after)) = (next.checked_sub(1).map(|at| self.knots[at]), self.knots.get(next)) else {
            let knot = if next == 0 { self.knots.first()? } else { self.knots.last()? };
            // By the rate; its uncertainty widens what is possible.
            let (away, (low, high)) = (a_ns.saturating_sub(knot.at_ns) as f64, self.rates);
            let moved = |side: Option<i64>| side.map(|at| at.saturating_add(nearest(away * (low + high) / 2.0)));
            let grows = (self.change + (high - low) / 2.0) * away.abs();
            let level = Knot { at_ns: a_ns, low_ns: moved(knot.low_ns), high_ns: moved(knot.high_ns) };
            return Some((level, grows.ceil() as i64));
        };
        let (left, right) = (a_ns.saturating_sub(before.at_ns) as f64, after.at_ns.saturating_sub(a_ns) as f64);
        let share = left / (left + right);
        let between = |from: Option<i64>, to: Option<i64>| {
            let (from, to) = (from?, to?);
            Some(from.saturating_add(nearest(to.saturating_sub(from) as f64 * share)))
        };
        let (low_ns, high_ns) = (between(before.low_ns, after.low_ns), between(before.high_ns, after.high_ns));
        // The offset leaves the straight line between two knots by this much at most.
        let bends = 2.0 * self.change * left.min(right);
        Some((Knot { at_ns: a_ns, low_ns, high_ns }, bends.ceil() as i64))
    }

    fn a_of(&self, b_ns: i64, near: &Near) -> Option<i64> {
        let shows = |knot: &Knot| knot.known().map_or(i64::MIN, |known| knot.at_ns.saturating_add(known.offset_ns));
        let next = near.partition_point(self.knots.len(), |at| shows(&self.knots[at]) <= b_ns);
        let (Some(before), Some(after)) = (next.checked_sub(1).map(|at| self.knots[at]), self.knots.get(next)) else {
            let knot = if next == 0 { self.knots.first()? } else { self.knots.last()? };
            // Damaged recordings have moments as far away as numbers go.
            let away = b_ns.saturating_sub(shows(knot)) as f64;
            let rate = 1.0 + (self.rates.0 + self.rates.1) / 2.0;
            return Some(knot.at_ns.saturating_add(nearest(away / rate)));
        };
        let (from, to) = (shows(&before), shows(after));
        let share = b_ns.saturating_sub(from) as f64 / to.saturating_sub(from) as f64;
        let span = after.at_ns.saturating_sub(before.at_ns) as f64;
        Some(before.at_ns.saturating_add(nearest(span * share)))
    }
}

impl Knot {
    /// The middle, with half of the width.
    pub fn known(&self) -> Option<Known> {
        match (self.low_ns, self.high_ns) {
            (Some(low), Some(high)) => {
                Some(Known { offset_ns: low.midpoint(high), bound_ns: Some(high.abs_diff(low).div_ceil(2)) })
            }
            (one, other) => Some(Known { offset_ns: one.or(other)?, bound_ns: None }),
        }
    }
}

fn limit(crossing: &Crossing, of: usize, (x0, o0): (i64, i64)) -> Limit {
    let value = crossing.b_ns.wrapping_sub(crossing.a_ns).wrapping_sub(o0) as f64;
    Limit { x: crossing.a_ns.wrapping_sub(x0) as f64, value, is_high: crossing.way == Way::ToB, of }
}

/// Of more limits than [`MOST`], the tightest of each stretch and side. To leave one out only widens the result.
fn thinned(limits: Vec<Limit>, drift: Drift) -> Vec<Limit> {
    if limits.len() <= MOST {
        return limits;
    }
    // Those that are tightest without a rate are enough to tell the rate.
    let rate = least(&tightest(&limits, 0.0), drift).0;
    tightest(&limits, rate)
}

/// The tightest limit of each stretch and side, compared at this rate.
fn tightest(limits: &[Limit], rate: f64) -> Vec<Limit> {
    let (first, last) = (limits[0].x, limits[limits.len() - 1].x);
    let width = ((last - first) / (MOST / 2) as f64).max(1.0);
    let mut kept: Vec<Limit> = Vec::new();
    let (mut high, mut low): (Option<Limit>, Option<Limit>) = (None, None);
    let mut bucket = 0.0;
    for limit in limits {
        let of = ((limit.x - first) / width).floor();
        if of != bucket {
            kept.extend(high.take().into_iter().chain(low.take()));
            bucket = of;
        }
        let side = if limit.is_high { &mut high } else { &mut low };
        let level = |limit: &Limit| limit.value - rate * limit.x;
        let is_tighter =
            |old: &Limit| if limit.is_high { level(limit) < level(old) } else { level(limit) > level(old) };
        if side.as_ref().is_none_or(is_tighter) {
            *side = Some(*limit);
        }
    }
    kept.extend(high.into_iter().chain(low));
    kept.sort_by(|a, b| a.x.total_cmp(&b.x));
    kept
}

/// By how much the tightest pair of limits contradicts itself at this rate; negative: by so much they are apart.
fn violation(limits: &[Limit], rate: f64, change: f64) -> f64 {
    let mut worst = f64::NEG_INFINITY;
    let (mut high, mut low) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut at = limits.first().map_or(0.0, |limit| limit.x);
    // Each pair is met once: the earlier one has moved by then by what the rate may do.
    for limit in limits {
        let passed = limit.x - at;
        (high, low, at) = (high + (rate + change) * passed, low + (rate - change) * passed, limit.x);
        if limit.is_high {
            worst = worst.max(low - limit.value);
            high = high.min(limit.value);
        } else {
            worst = worst.max(limit.value - high);
            low = low.max(limit.value);
        }
    }
    worst
}

/// The rate with the least violation, and that.
fn least(limits: &[Limit], drift: Drift) -> (f64, f64) {
    let (mut from, mut to) = (-drift.most, drift.most);
    let of = |rate: f64| violation(limits, rate, drift.change);
    // The violation is convex in the rate.
    for _ in 0..48 {
        let (one, other) = (from + (to - from) / 3.0, to - (to - from) / 3.0);
        let (at_one, at_other) = (of(one), of(other));
        if at_one <= ROUNDING_NS {
            return (one, at_one);
        }
        if at_one < at_other { to = other } else { from = one }
    }
    let rate = (from + to) / 2.0;
    (rate, of(rate))
}

fn is_feasible(limits: &[Limit], drift: Drift) -> bool {
    least(limits, drift).1 <= ROUNDING_NS
}

/// How many of the first limits agree with each other.
fn feasible(limits: &[Limit], drift: Drift) -> usize {
    if is_feasible(limits, drift) {
        return limits.len();
    }
    let (mut good, mut bad) = (1, limits.len());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if is_feasible(&limits[..middle], drift) { good = middle } else { bad = middle }
    }
    good
}

/// Which limit is wrong, where the one at `end` contradicts those before and one alone explains it; `None` at a step.
fn wrong(limits: &[Limit], end: usize, drift: Drift) -> Option<usize> {
    let until = (end + LOOK_AHEAD).min(limits.len());
    // A step that shows in the last message only is not told from a wrong one.
    let without = |at: usize| -> Vec<Limit> {
        limits[..until].iter().enumerate().filter(|(other, _)| *other != at).map(|(_, limit)| *limit).collect()
    };
    let agree = |at: usize| feasible(&without(at), drift);
    // The one that came last, or that of the other side which it contradicts most.
    let rate = least(&limits[..end], drift).0;
    let last = limits[end];
    let against = limits[..end].iter().enumerate().filter(|(_, limit)| limit.is_high != last.is_high);
    let tightness = |limit: &Limit| {
        let moved = limit.value + rate * (last.x - limit.x);
        let away = drift.change * (last.x - limit.x);
        if limit.is_high { last.value - moved - away } else { moved - last.value - away }
    };
    let tightest = against.max_by(|a, b| tightness(a.1).total_cmp(&tightness(b.1))).map(|(at, _)| at);
    let candidates = [tightest, Some(end)].into_iter().flatten();
    let (agrees, at) = candidates.map(|at| (agree(at), at)).max_by_key(|(agrees, at)| (*agrees, *at))?;
    // One limit is missing among them: the next one that disagrees is at `agrees + 1`.
    let after = limits[end + 1..(agrees + 1).max(end + 1)].iter();
    let of_side = after.filter(|limit| limit.is_high == last.is_high).count();
    (agrees + 1 == until || of_side >= AGREE).then_some(at)
}

fn violation_of(others: &[Limit], bad: Limit, drift: Drift) -> f64 {
    let rate = least(others, drift).0;
    let by = |limit: &Limit| {
        let moved = limit.value + rate * (bad.x - limit.x);
        let away = drift.change * (bad.x - limit.x).abs();
        if bad.is_high { moved - away - bad.value } else { bad.value - moved - away }
    };
    others.iter().filter(|limit| limit.is_high != bad.is_high).map(by).fold(0.0, f64::max)
}

/// The interval at each knot: over all rates that the limits allow.
fn piece(limits: &[Limit], base: (i64, i64), to: Option<f64>, drift: Drift) -> Piece {
    let (low_rate, high_rate) = rates(limits, drift);
    let cell = (high_rate - low_rate) / CELLS as f64;
    let change = drift.change + cell / 2.0;
    let (first, last) = (limits[0].x, to.unwrap_or(limits[limits.len() - 1].x).max(limits[0].x));
    let step = KNOT_NS.max((last - first) as i64 / MOST_KNOTS) as f64;
    let count = ((last - first) / step).ceil() as usize + 1;
    let at = |knot: usize| (first + knot as f64 * step).min(last);
    let mut knots = vec![(f64::INFINITY, f64::NEG_INFINITY); count];
    for number in 0..CELLS {
        let rate = low_rate + cell * (number as f64 + 0.5);
        if violation(limits, rate, change) > ROUNDING_NS * 2.0 {
            continue;
        }
        let (highs, lows) =
            (swept(limits, true, rate, change, count, &at), swept(limits, false, rate, change, count, &at));
        for (knot, (high, low)) in knots.iter_mut().zip(highs.into_iter().zip(lows)) {
            (knot.0, knot.1) = (knot.0.min(low), knot.1.max(high));
        }
    }
    let whole = |value: f64, away: f64| value.is_finite().then(|| base.1.wrapping_add((value + away).round() as i64));
    let knots = knots.into_iter().enumerate().map(|(knot, (low, high))| Knot {
        at_ns: base.0.wrapping_add(at(knot).round() as i64),
        low_ns: whole(low, -ROUNDING_NS),
        high_ns: whole(high, ROUNDING_NS),
    });
    Piece {
        from_ns: base.0.wrapping_add(first as i64),
        to_ns: base.0.wrapping_add(last as i64),
        change: drift.change,
        rates: (low_rate, high_rate),
        knots: knots.collect(),
    }
}

/// The tightest limit of one side at each knot, moved there from its own moment.
fn swept(limits: &[Limit], is_high: bool, rate: f64, change: f64, count: usize, at: &dyn Fn(usize) -> f64) -> Vec<f64> {
    let sign = if is_high { 1.0 } else { -1.0 };
    let of_side: Vec<(f64, f64)> = limits
        .iter()
        .filter(|limit| limit.is_high == is_high)
        .map(|limit| (limit.x, sign * (limit.value - rate * limit.x)))
        .collect();
    let mut tightest = vec![f64::INFINITY; count];
    let mut sweep =
        |knots: &mut dyn Iterator<Item = usize>, limits: &mut dyn Iterator<Item = &(f64, f64)>, ahead: f64| {
            let mut limits = limits.peekable();
            let (mut value, mut from) = (f64::INFINITY, 0.0);
            for knot in knots {
                let x = at(knot);
                while let Some((of, limit)) = limits.next_if(|limit| (x - limit.0) * ahead >= 0.0) {
                    (value, from) = ((value + change * (of - from).abs()).min(*limit), *of);
                }
                tightest[knot] = tightest[knot].min(value + change * (x - from).abs());
            }
        };
    sweep(&mut (0..count), &mut of_side.iter(), 1.0);
    sweep(&mut (0..count).rev(), &mut of_side.iter().rev(), -1.0);
    tightest.iter().enumerate().map(|(knot, value)| sign * value + rate * at(knot)).collect()
}

/// The rates at which the limits do not contradict each other.
fn rates(limits: &[Limit], drift: Drift) -> (f64, f64) {
    let is_allowed = |rate: f64| violation(limits, rate, drift.change) <= ROUNDING_NS;
    let inside = least(limits, drift).0;
    let edge = |range: Range<f64>| -> f64 {
        if is_allowed(range.end) {
            return range.end;
        }
        let (mut good, mut bad) = (range.start, range.end);
        for _ in 0..40 {
            let middle = (good + bad) / 2.0;
            if is_allowed(middle) { good = middle } else { bad = middle }
        }
        bad
    };
    (edge(inside..-drift.most), edge(inside..drift.most))
}
