//! Rows of three tables: hops of short chains, periods of points, and distributions that came without messages.

use taut_analysis::{Analysis, Cause, Chain, Histogram, Hop, Point, Quantile};

use crate::words;

/// Heads of the columns of [`period_row`].
pub(crate) const PERIODS: [&str; 8] = ["period (ms) at", "n", "Hz", "p50", "p99", "max", "jitter p99", "gaps"];
/// Heads of the columns of [`histogram_row`].
pub(crate) const HISTOGRAMS: [&str; 9] = ["of (ms)", "n", "min", "p50", "p90", "p99", "p99.9", "max", "beyond"];

/// Heads of the columns of [`hop_row`].
pub(crate) const SHORT_CHAINS: [&str; 7] = ["hop (ms)", "n", "p50", "p95", "p99", "max", "not passed"];
/// So many short chains are a list, like the topics of a bag, and no story each.
const LIST_MIN: usize = 4;
const SHORT_MAX: usize = 2;

/// The chains that have a section each, and the short ones that are lines of one table, since nothing but delays is known of them.
/// Loops have a table of their own.
pub(crate) fn told_and_listed(analysis: &Analysis) -> (Vec<&Chain>, Vec<&Chain>) {
    let is_short = |chain: &&Chain| {
        let is_blind = chain.explained.causes.iter().all(|share| share.cause == Cause::Unknown);
        let is_bare = chain.deadline_ns.is_none() && chain.startup.is_none() && chain.branches.is_empty();
        let ended = &chain.outcomes;
        chain.hops.len() <= SHORT_MAX
            && !chain.declared
            && is_blind
            && is_bare
            && ended.dropped.is_empty()
            && ended.double == 0
    };
    let chains = || analysis.chains.iter().filter(|chain| !chain.is_loop);
    let (listed, told): (Vec<&Chain>, Vec<&Chain>) = chains().partition(is_short);
    if listed.len() < LIST_MIN { (chains().collect(), Vec::new()) } else { (told, listed) }
}

/// A hop's figures, its name apart; at the end the chain's messages that did not pass it.
pub(crate) fn hop_row(chain: &Chain, hop: &Hop) -> [String; 6] {
    let d = &hop.delay.distribution;
    let [p50, p95, p99, max] = [d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns].map(words::milliseconds);
    [words::count(d.n), p50, p95, p99, max, words::count(chain.messages.saturating_sub(d.n))]
}

/// Whether every message reached the end of the chain, once.
pub(crate) fn is_whole(chain: &Chain) -> bool {
    chain.outcomes.applied == chain.messages && chain.outcomes.double == 0
}

/// Where messages enter and leave each chain, and the points that are of none; those in between follow from their hops. The moments of
/// a schedule are as steady as the schedule, so the first point behind them counts.
pub(crate) fn ends(analysis: &Analysis) -> Vec<&Point> {
    let chains = analysis.chains.iter().filter(|chain| !chain.is_loop);
    let of_chains = chains.flat_map(|chain| {
        let happen: Vec<&Point> = chain.points.iter().filter(|point| !point.is_due).collect();
        match happen.as_slice() {
            [first, .., last] => vec![*first, *last],
            other => other.to_vec(),
        }
    });
    of_chains.chain(&analysis.points).filter(|point| point.period.n > 0).collect()
}

/// A point's figures, its name apart.
pub(crate) fn period_row(point: &Point) -> [String; 7] {
    let (period, jitter) = (&point.period, &point.period_jitter);
    let [p50, p99, max, jitter] = [period.p50_ns, period.p99_ns, period.max_ns, jitter.p99_ns].map(words::milliseconds);
    let rate = point.rate_hz.map_or("–".into(), |hz| format!("{hz:.1}"));
    [words::count(point.messages), rate, p50, p99, max, jitter, words::count(point.gaps)]
}

/// What a distribution is of, with its unit if that is none of time.
pub(crate) fn histogram_name(of: &Histogram) -> String {
    if of.unit == "ns" { of.name.clone() } else { format!("{} ({})", of.name, of.unit) }
}

/// A distribution's figures, its name apart. Values beyond the last bucket are "≥" what it reaches.
pub(crate) fn histogram_row(of: &Histogram) -> [String; 8] {
    let figure = |value: Option<u64>| match value {
        Some(value) if of.unit != "ns" => words::count(value),
        value => words::milliseconds(value),
    };
    let quantile = |quantile: Option<Quantile>| match quantile {
        Some(Quantile::AtLeast(value)) => format!("≥ {}", figure(Some(value))),
        Some(Quantile::AtMost(value)) => figure(Some(value)),
        None => figure(None),
    };
    let beyond = match of.overflow {
        0 => "0".to_owned(),
        n => format!("{} ≥ {}", words::count(n), figure(Some(of.overflow_from))),
    };
    let [p50, p90, p99, p999] = [of.p50, of.p90, of.p99, of.p999].map(quantile);
    [words::count(of.n), figure(of.min), p50, p90, p99, p999, figure(of.max), beyond]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_buckets_is_said() {
        let of = Histogram {
            name: "thread 0".into(),
            unit: "ns".into(),
            n: 2000,
            min: Some(37_000),
            p50: Some(Quantile::AtMost(57_999)),
            p999: Some(Quantile::AtLeast(400_000)),
            max: Some(172_860_999),
            overflow: 31,
            overflow_from: 400_000,
            ..Histogram::default()
        };
        let row = histogram_row(&of).map(|cell| cell.replace('\u{202f}', " "));
        assert_eq!(row, ["2 000", "0.037", "0.058", "–", "–", "≥ 0.400", "172.9", "31 ≥ 0.400"]);
        let counts = Histogram { unit: "frames".into(), ..of };
        assert_eq!(histogram_name(&counts), "thread 0 (frames)");
        assert_eq!(histogram_row(&counts)[1].replace('\u{202f}', " "), "37 000");
    }

    #[test]
    fn a_point_that_was_passed_once_has_no_period() {
        let mut analysis = crate::sample::teleop();
        analysis.points.push(Point { name: "once".into(), messages: 1, ..Point::default() });
        assert!(ends(&analysis).iter().all(|point| point.name != "once"));
    }

    #[test]
    fn many_short_chains_are_lines_of_one_table() {
        let mut analysis = crate::sample::teleop();
        let mut short = analysis.chains[0].clone();
        short.hops.truncate(1);
        (short.declared, short.deadline_ns, short.startup) = (false, None, None);
        short.branches.clear();
        short.explained = taut_analysis::Explained::default();
        short.hops[0].delay.distribution.n = short.messages - 7;
        short.outcomes = taut_analysis::Outcomes { applied: short.messages - 7, in_flight: 7, ..Default::default() };
        analysis.chains.extend(std::iter::repeat_n(short, LIST_MIN));
        let (told, listed) = told_and_listed(&analysis);
        assert_eq!((told.len(), listed.len()), (1, LIST_MIN));
        assert_eq!(hop_row(listed[0], &listed[0].hops[0])[5], "7");
        let named = crate::Named { name: "run.mcap", analysis: &analysis };
        let text = crate::terminal(named, crate::Style::default());
        assert!(text.contains("Short chains") && text.matches("messages ended so").count() == 1, "{text}");
        assert!(crate::markdown(named).contains("| hop (ms) | n | p50 | p95 | p99 | max | not passed |"));
        analysis.chains.pop();
        assert!(told_and_listed(&analysis).1.is_empty());
    }
}
