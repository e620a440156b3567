//! Modes of a chain's latency above the main one, each with what its messages have beyond typical ones: a defect of two in a
//! hundred messages lies below the tail, and stands apart all the same.

use taut_stats::modes as peaks;

use crate::{Cause, Chain, Mode, ModeCause, ledger::Ledger, walk::Walker};

/// Width of a bin: modes this close to each other are one.
const BIN: f64 = 1.1;
/// A mode has at least so many messages.
const MESSAGES_MIN: usize = 10;
/// In at least so many bursts: one stall makes many messages late.
const BURSTS_MIN: usize = 3;
/// Causes of a mode.
const CAUSES_MAX: usize = 3;

/// In order of time; none where the distribution has one peak.
pub(crate) fn modes(chain: &Chain, ledger: &Ledger, walker: &Walker<'_>) -> Vec<Mode> {
    let Some(median) = chain.end_to_end.distribution.p50_ns else { return Vec::new() };
    let row = |at: &u32| (ledger.rows[*at as usize].total_ns, *at as usize);
    let rows: Vec<(u64, usize)> = ledger.by_total.iter().map(row).collect();
    let bins = bins(&rows);
    let mut peaks: Vec<usize> = peaks(&bins).iter().map(|peak| bins.partition_point(|bin| bin.1 <= *peak)).collect();
    // The main one is that next to the median; what is faster needs no explanation.
    let of_median = bins.partition_point(|bin| bin.1 <= median);
    let Some(main) = (0..peaks.len()).min_by_key(|at| peaks[*at].abs_diff(of_median)) else { return Vec::new() };
    peaks.drain(..main);
    let mut found = Vec::new();
    for (nth, pair) in peaks.windows(2).enumerate() {
        // From the lowest bin between two peaks to the next such bin.
        let lowest = |from: usize, to: usize| (from..=to).min_by_key(|bin| bins[*bin].2).unwrap_or(from);
        let from_ns = bins[lowest(pair[0], pair[1])].0;
        let to_ns = peaks.get(nth + 2).map_or(u64::MAX, |next| bins[lowest(pair[1], *next)].0);
        let of_mode = &rows[rows.partition_point(|row| row.0 < from_ns)..rows.partition_point(|row| row.0 < to_ns)];
        if of_mode.len() < MESSAGES_MIN || !has_bursts(of_mode, |row| ledger.rows[row].total_ns < from_ns) {
            continue;
        }
        found.push(Mode {
            from_ns: of_mode[0].0,
            to_ns: of_mode[of_mode.len() - 1].0,
            p50_ns: of_mode[of_mode.len() / 2].0,
            messages: of_mode.len() as u64,
            share: of_mode.len() as f64 / rows.len() as f64,
            causes: causes(of_mode, ledger, walker),
        });
    }
    found
}

/// Whether the mode's messages come in [`BURSTS_MIN`] bursts: between two of them is a message that is faster than all of the mode.
fn has_bursts(of_mode: &[(u64, usize)], is_faster: impl Fn(usize) -> bool) -> bool {
    let mut rows: Vec<usize> = of_mode.iter().map(|(_, row)| *row).collect();
    rows.sort_unstable();
    let is_apart = |pair: &&[usize]| (pair[0] + 1..pair[1]).any(&is_faster);
    rows.windows(2).filter(is_apart).take(BURSTS_MIN - 1).count() + 1 >= BURSTS_MIN
}

/// Bins whose edges grow by a factor, without a gap: (from, to, count).
fn bins(sorted: &[(u64, usize)]) -> Vec<(u64, u64, u64)> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let mut bins = Vec::new();
    let (mut from, mut at) = (first.0.max(1), 0);
    while from <= last.0 {
        let to = ((from as f64 * BIN) as u64).max(from + 1);
        let next = sorted.partition_point(|row| row.0 < to);
        bins.push((from, to, (next - at) as u64));
        (from, at) = (to, next);
    }
    bins
}

fn causes(of_mode: &[(u64, usize)], ledger: &Ledger, walker: &Walker<'_>) -> Vec<ModeCause> {
    let rows: Vec<usize> = of_mode.iter().map(|(_, at)| *at).collect();
    let causes = ledger.groups_of(&rows, |kind| kind.cause);
    let details = ledger.groups_of(&rows, |kind| (kind.cause, kind.detail));
    let shares = details.shares_of(&causes, |(cause, _)| *cause);
    let all = causes.lines.iter().map(|line| (line.group, causes.share(line)));
    let all = all.filter(|(_, share)| *share >= 0.05).take(CAUSES_MAX);
    // The detail where one makes most of it.
    let detail = |cause: Cause, share: f64| {
        let first = details.lines.iter().zip(&shares).find(|(line, _)| line.group.0 == cause);
        let first = first.filter(|(_, of_detail)| **of_detail > 0.8 * share);
        first.map_or(String::new(), |(line, _)| walker.names.text(line.group.1).to_owned())
    };
    all.map(|(cause, share)| ModeCause { cause, detail: detail(cause, share), share }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stall_is_no_mode_however_many_it_makes_late() {
        let is_mode = |late: &[usize]| {
            let of_mode: Vec<(u64, usize)> = late.iter().map(|row| (3_000, *row)).collect();
            has_bursts(&of_mode, |row| !late.contains(&row))
        };
        assert!(!is_mode(&(100..140).collect::<Vec<_>>()));
        assert!(!is_mode(&(100..140).chain(160..180).collect::<Vec<_>>()));
        assert!(is_mode(&[100, 150, 200]));
        assert!(is_mode(&(0..40).step_by(2).collect::<Vec<_>>()), "every other message");
        // The longest of a stall are of a mode above it.
        let of_mode: Vec<(u64, usize)> = [100, 103, 106, 109].map(|row| (3_000, row)).into();
        assert!(!has_bursts(&of_mode, |row| !(100..110).contains(&row)));
    }
}
