//! A chain: how late, which hop, why, and how its messages ended.

use taut_analysis::{Chain, Hop, Outcomes};
use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Curve, Mark, Quantity, Section, Show, Table, Text, Tone, units,
};
use taut_stats::Distribution;

use super::{View, hop_name::hop_name, message_lanes, tables, tail};
use crate::{
    charts::{self, Percentiles},
    headline::capital,
};

/// Messages in the table of the slowest.
const SLOWEST: usize = 20;
/// Rows of the table of where messages were seen last.
const LAST_SEEN: usize = 8;

pub(super) fn sections(chain: &Chain, view: View<'_>) -> Vec<Section> {
    let late = vec![delays(chain).into(), hops(chain).into()];
    let mut more: Vec<Block> = Vec::new();
    more.extend(
        chain.startup.as_ref().map(|startup| Block::Text(format!("Start-up apart: {}", startup.sentence).into())),
    );
    if let (Some(deadline), Some(missed)) = (chain.deadline_ns, chain.missed) {
        let of = units::count(chain.end_to_end.distribution.n);
        let text = format!("Deadline {}: {} of {of} missed", units::duration(deadline), units::count(missed));
        more.push(Block::Text(text.into()));
    }
    let branch = |branch: &taut_analysis::Branch| {
        let messages = units::quantity(branch.messages, "message");
        Block::Text(format!("Branch: {} after {}, {messages}", branch.point, branch.after).into())
    };
    more.extend(chain.branches.iter().map(branch));
    let mut sections = vec![
        // A heading that both views have.
        Section::new(1, &chain.name, Vec::new()),
        Section::new(2, "", [late, more].concat()).shown(view.in_report()),
        Section::new(2, "", drawn(chain)).shown(Show::Page),
    ];
    sections.extend(tail::sections(chain, view));
    sections.extend(message_lanes::sections(chain, view));
    sections.extend(ended(chain, view));
    let points = tables::points(&chain.points).into();
    sections.push(Section::new(2, "Rate and period", vec![points]).shown(Show::Page));
    sections
}

fn delays(chain: &Chain) -> Table {
    let mut table = Table::new(["end to end", "n", "p50", "p90", "p95", "p99", "p99.9", "max"])
        .priorities([0, 5, 0, 3, 4, 0, 2, 1]);
    let mut row = |name: &str, d: &Distribution| {
        let times = [d.p50_ns, d.p90_ns, d.p95_ns, d.p99_ns, d.p999_ns, d.max_ns].map(Cell::time);
        table.add([Cell::text(name), Cell::Count(d.n)].into_iter().chain(times));
    };
    row("first to last point", &chain.end_to_end.distribution);
    if chain.whole_life.distribution.n > chain.end_to_end.distribution.n {
        row("first point to end or drop", &chain.whole_life.distribution);
    }
    if table.without_missing() {
        table.caption =
            "A quantile that is not here needs more messages: ten bursts (late messages in a row) must lie beyond it"
                .into();
    }
    table
}

fn hops(chain: &Chain) -> Table {
    let head = ["hop", "n", "p50", "p95", "p99", "max", "PDV p99", "of the excess"];
    let mut table = Table::new(head).priorities([0, 5, 0, 4, 0, 1, 3, 0]);
    table.columns[7].bar = true;
    for hop in &chain.hops {
        let d = &hop.delay.distribution;
        let name = hop_name(&hop.from, &hop.to);
        let name = if hop.crosses_threads { name.and(" ⇄") } else { name };
        let times = [d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns, hop.pdv_p99_ns].map(Cell::time);
        let cells = [Cell::text(name), Cell::Count(d.n)].into_iter().chain(times);
        table.add(cells.chain([Cell::share(hop.tail_share)]));
    }
    table.without_missing();
    let any = |is: &dyn Fn(&Hop) -> bool| chain.hops.iter().any(is);
    let has_dashes = table.rows.iter().any(|row| row.cells.contains(&Cell::Missing));
    let explained = [
        (any(&|hop| hop.pdv_p99_ns.is_some()), "PDV (packet delay variation): delay less the hop's smallest"),
        (
            any(&|hop| hop.tail_share.is_some()),
            "of the excess: of the time that late messages take beyond typical ones",
        ),
        (any(&|hop| hop.crosses_threads), "⇄: messages change threads"),
        (has_dashes, "–: fewer than ten bursts (late messages in a row) lie beyond"),
    ];
    let explained = explained.into_iter().filter_map(|(is_there, what)| is_there.then_some(what));
    table.caption = explained.collect::<Vec<_>>().join("; ").into();
    table
}

fn drawn(chain: &Chain) -> Vec<Block> {
    let d = &chain.end_to_end.distribution;
    if d.n < 2 {
        return vec![Block::Text("Too few messages went all the way for a chart.".into())];
    }
    let known = [("median", d.p50_ns), ("p95", d.p95_ns), ("p99", d.p99_ns)];
    let known = known.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}, ", units::duration(ns?))));
    let finding = format!(
        "{}the slowest of {} messages {}. A flat curve is a steady loop.",
        known.collect::<String>(),
        units::count(d.n),
        units::maybe(d.max_ns)
    );
    let finding = capital(&finding);
    let curve = Percentiles {
        name: chain.name.clone(),
        curve: &chain.end_to_end.percentiles,
        tone: Tone::Series(0),
        dashed: false,
        quiet: false,
    };
    let percentiles = charts::percentiles("Percentiles of the end-to-end latency".into(), finding, &[curve]);
    let bins: Vec<(u64, u64, u64)> =
        chain.end_to_end.histogram.iter().map(|bin| (bin.from_ns, bin.to_ns, bin.count)).collect();
    let histogram = charts::histogram("Histogram of the end-to-end latency".into(), "messages", &bins);
    [percentiles, histogram, over_time(chain)].map(Block::from).into()
}

fn over_time(chain: &Chain) -> Chart {
    let mut slowest = chain.series.clone();
    slowest.sort_by_key(|(at, ns)| (std::cmp::Reverse(*ns), *at));
    let mut table = Table::new(["slowest messages, at", "latency"]);
    for (at, ns) in slowest.iter().take(SLOWEST) {
        table.row([Cell::text(format!("{:.3} s", *at as f64 / 1e9)), Cell::Time(*ns)]);
    }
    let (at, ns) = slowest.first().copied().unwrap_or_default();
    let startup = chain.startup.as_ref().map_or(String::new(), |startup| {
        format!(" Start-up included: {}.", units::quantity(startup.messages, "message"))
    });
    let limits = [(chain.end_to_end.distribution.p99_ns, "p99"), (chain.deadline_ns, "deadline")];
    Chart {
        title: "Latency over time".into(),
        finding: format!(
            "The slowest message, {}, came {:.1} s into the recording.{startup}",
            units::duration(ns),
            at as f64 / 1e9
        )
        .into(),
        x: Axis { label: "time".into(), ..Axis::new(Quantity::Instant, AxisScale::Linear) },
        y: Axis { label: "latency".into(), ..Axis::new(Quantity::Time, AxisScale::Log) },
        curves: vec![Curve {
            name: "latency".into(),
            mark: Mark::Points,
            // The axis is logarithmic and has no zero.
            xy: chain.series.iter().map(|(at, ns)| (*at as f64, (*ns).max(1) as f64)).collect(),
            tone: Tone::Series(0),
            ..Curve::default()
        }],
        limits: limits.into_iter().filter_map(|(ns, name)| Some((ns?.max(1) as f64, name.to_owned()))).collect(),
        table: Some(table),
        wide: true,
        ..Chart::default()
    }
}

/// How many messages passed each point, then how they ended. The ends sum to the messages.
fn ended(chain: &Chain, view: View<'_>) -> Vec<Section> {
    let all = chain.messages;
    let share = |n: u64| Cell::Share(n as f64 / all.max(1) as f64);
    let outcomes = &chain.outcomes;
    let is_whole = outcomes.applied == all && outcomes.double == 0;
    let ends: Vec<Block> = if is_whole {
        let text = if all == 1 {
            "1 message, applied.".into()
        } else {
            format!("{} messages, all of them applied.", units::count(all))
        };
        vec![Block::Text(text.into())]
    } else {
        let mut table = Table::new(["outcome", "messages", "share"]);
        table.columns[2].bar = true;
        for (name, n) in outcome_rows(outcomes) {
            table.row([Cell::text(name), Cell::Count(n), share(n)]);
        }
        let wrong = unbalanced(outcomes, all).map(|text| Block::Text(text.into()));
        [table.into()].into_iter().chain(wrong).collect()
    };
    let mut passed = Table::new(["messages that passed", "messages", "share"]);
    passed.columns[2].bar = true;
    for point in &chain.points {
        passed.row([Cell::text(Text::default().code(&point.name)), Cell::Count(point.messages), share(point.messages)]);
    }
    let mut last = Table::new(["where those that ended early were seen last", "reason", "messages"]);
    for of in outcomes.last_seen.iter().take(LAST_SEEN) {
        let name = Text::default().code(&of.point);
        last.row([Cell::text(name), Cell::text(of.reason.as_str()), Cell::Count(of.messages)]);
    }
    vec![
        Section::new(2, "Where the messages ended", ends).shown(view.in_report()),
        Section::new(2, "", vec![passed.into(), last.into()]).shown(Show::Page),
    ]
}

/// Every outcome with its count, in the order of reading; zero rows only where zero is the news.
fn outcome_rows(outcomes: &Outcomes) -> Vec<(String, u64)> {
    let mut rows = vec![("applied".to_owned(), outcomes.applied)];
    if outcomes.ended_early > 0 {
        rows.push(("ended before the last point, none lost".to_owned(), outcomes.ended_early));
    }
    rows.extend(outcomes.dropped.iter().map(|(reason, n)| (format!("dropped: {reason}"), *n)));
    rows.push(("in flight at start or end".to_owned(), outcomes.in_flight));
    if outcomes.lost > 0 {
        rows.push(("unknown: stamps were lost".to_owned(), outcomes.lost));
    }
    rows.push(("unexplained".to_owned(), outcomes.unexplained));
    rows
}

/// That the outcomes do not sum to the messages, or that some messages had two.
fn unbalanced(outcomes: &Outcomes, messages: u64) -> Option<String> {
    let sum: u64 = outcome_rows(outcomes).iter().map(|(_, n)| n).sum();
    let rest = messages as i128 - sum as i128;
    let sum = (rest != 0).then(|| {
        format!("The outcomes sum to {} of {}: {rest} are missing", units::count(sum), units::count(messages))
    });
    let double = (outcomes.double > 0)
        .then(|| format!("{} had a second outcome; the first counts", units::quantity(outcomes.double, "message")));
    let parts: Vec<String> = sum.into_iter().chain(double).collect();
    (!parts.is_empty()).then(|| parts.join(". "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_caption_of_hops_has_what_its_columns_need() {
        let mut chain = sample::teleop().chains.swap_remove(0);
        let caption = |chain: &Chain| hops(chain).caption.plain();
        let all = "PDV (packet delay variation): delay less the hop's smallest; of the excess: of the time that late messages take \
                   beyond typical ones; ⇄: messages change threads";
        assert_eq!(caption(&chain), all);
        chain.hops[0].delay.distribution.p99_ns = None;
        assert!(caption(&chain).ends_with("; –: fewer than ten bursts (late messages in a row) lie beyond"));
        for hop in &mut chain.hops {
            (hop.pdv_p99_ns, hop.tail_share, hop.crosses_threads, hop.delay.distribution.p99_ns) =
                (None, None, false, None);
        }
        assert_eq!(caption(&chain), "", "a column that is not there needs no words");
    }

    #[test]
    fn outcomes_that_do_not_sum_are_said() {
        let outcomes = Outcomes { applied: 3, ..Outcomes::default() };
        assert_eq!(unbalanced(&outcomes, 5).unwrap(), "The outcomes sum to 3 of 5: 2 are missing");
        assert_eq!(unbalanced(&outcomes, 3), None);
        let double = Outcomes { double: 1, ..outcomes };
        assert_eq!(unbalanced(&double, 3).unwrap(), "1 message had a second outcome; the first counts");
    }
}
