//! The terminal form: tables that fit 100 columns.

use comfy_table::{Table, presets};
use taut_analysis::{Analysis, Chain, Outcomes};
use taut_stats::Distribution;

use crate::{
    Named, Style, causes,
    console::{align_right, bar, cut, cut_at, hop_name, indent, table, wrap},
    points,
    short_chains::short_chains,
    words,
};

/// The same of a point or distribution, which has more figures.
const POINT_WIDTH: usize = 26;

/// The report of one recording.
pub fn terminal(named: Named<'_>, style: Style) -> String {
    let analysis = named.analysis;
    let mut out = format!("{}\n{}\n", style.bold(named.name), style.dim(&wrap(&measured(analysis), 98)));
    out += &format!("\n{}\n", wrap(&crate::headline(analysis), 98));
    for damage in &analysis.damage {
        out += &format!("{} {}\n", style.bold("damaged:"), wrap(damage, 89));
    }
    let loops = crate::loops::terminal(analysis, style);
    let is_unmodified = crate::loops::is_unmodified(analysis);
    if is_unmodified {
        out += &loops;
    }
    let (told, listed) = points::told_and_listed(analysis);
    for chain in told {
        out += &section(chain, style);
    }
    out += &short_chains(&listed, style);
    if !is_unmodified {
        out += &loops;
    }
    out += &crate::ros::terminal(analysis, style);
    out += &periods(analysis, style);
    out += &histograms(analysis, style);
    if !analysis.signals.is_empty() {
        out += &signals(analysis, style);
    }
    if !analysis.telemetry.is_empty() {
        out += &telemetry(named, style);
    }
    if analysis.profile.is_some() {
        let run = words::shell(&[named.name.to_owned()]);
        out += &format!("\n{} taut flamegraph {run} -o flame.svg\n", style.dim("where CPU time went:"));
    }
    if !analysis.notes.is_empty() {
        out += "\n";
        for note in &analysis.notes {
            out += &format!("{} {}\n", style.dim("note:"), wrap(note, 92).replace('\n', "\n      "));
        }
    }
    if let Some(next) = crate::loops::next_step(analysis) {
        out += &format!("\n{} {}\n", style.dim("next:"), wrap(&next, 92).replace('\n', "\n      "));
    }
    out
}

/// One line on how it was measured.
pub(crate) fn measured(analysis: &Analysis) -> String {
    let (totals, info) = (&analysis.totals, &analysis.info);
    let lost = |n: u64, is_estimate: bool| match (n, is_estimate) {
        // A chunk that is damaged may have held a few of anything.
        (0, true) => "some LOST".to_owned(),
        (0, false) => "none lost".to_owned(),
        (n, _) => format!("{}{} LOST", if is_estimate { "about " } else { "" }, words::count(n)),
    };
    // Of a trace of ROS 2 it is of no use that there are no stamps.
    let stamps = match (totals.stamps, totals.ros_events) {
        (0, 1..) => String::new(),
        (n, _) => {
            let lost = lost(totals.lost_stamps, totals.lost_stamps_is_estimate);
            format!(" · {} stamps, {lost}", words::count(n))
        }
    };
    let ros = match totals.ros_events {
        0 => String::new(),
        n => {
            let lost = lost(totals.lost_ros_events, totals.lost_ros_events_is_estimate);
            format!(" · {} ROS 2 events, {lost}", words::count(n))
        }
    };
    let kernel = match totals.kernel_events {
        0 => String::new(),
        n => format!(
            " · {} kernel events, {}",
            words::count(n),
            lost(totals.lost_kernel_events, totals.lost_kernel_events_is_estimate)
        ),
    };
    let profile = analysis.profile.as_ref().map_or(String::new(), |of| format!(" · stacks: {}", words::profile(of)));
    let clock = match (words::imported_from(info), totals.clock_error_ns) {
        // Its clock was another's, and how good that was nobody said.
        (Some(kind), _) => format!("imported from {kind}"),
        (None, None) => "clock error unknown".into(),
        (None, Some(error)) => format!("clock\u{a0}±\u{a0}{error:.0}\u{a0}ns"),
    };
    format!("{:.1} s{stamps}{ros}{kernel}{profile} · {} tier · {clock}", totals.duration_s, info.tier.word(),)
}

fn section(chain: &Chain, style: Style) -> String {
    let mut out = format!("\n{}\n\n", style.bold(&chain.name));
    out += &indent(&delays(chain));
    out += "\n";
    out += &indent(&hops(chain));
    if let Some(startup) = &chain.startup {
        out += &format!("\n  Start-up apart: {}\n", wrap(&startup.sentence, 80).replace('\n', "\n  "));
    }
    if let (Some(deadline), Some(missed)) = (chain.deadline_ns, chain.missed) {
        out += &format!(
            "\n  Deadline {}: {} of {} missed\n",
            words::duration(deadline),
            words::count(missed),
            words::count(chain.end_to_end.distribution.n)
        );
    }
    out += &causes::summary(chain, style);
    if points::is_whole(chain) {
        out += &format!("\n  {} messages, all of them applied\n", words::count(chain.messages));
    } else {
        out += &format!("\n  {} messages ended so:\n", words::count(chain.messages));
        out += &indent(&outcomes(&chain.outcomes, chain.messages));
        out += &format!("  {}\n", style.dim(&balance(&chain.outcomes, chain.messages)));
    }
    for branch in &chain.branches {
        out +=
            &format!("  branch: {} after {}, {} messages\n", branch.point, branch.after, words::count(branch.messages));
    }
    out
}

/// How steadily messages came, where they enter and leave.
fn periods(analysis: &Analysis, style: Style) -> String {
    let ends = points::ends(analysis);
    if ends.is_empty() {
        return String::new();
    }
    let mut table = table(&points::PERIODS);
    for point in ends {
        table.add_row([cut_at(&point.name, POINT_WIDTH)].into_iter().chain(points::period_row(point)));
    }
    format!("\n{}\n\n{}  gaps: periods above 1.5 times the median\n", style.bold("Periods"), indent(&table))
}

/// Distributions that came without messages.
fn histograms(analysis: &Analysis, style: Style) -> String {
    if analysis.histograms.is_empty() {
        return String::new();
    }
    let mut table = table(&points::HISTOGRAMS);
    for of in &analysis.histograms {
        let name = cut_at(&points::histogram_name(of), POINT_WIDTH);
        table.add_row([name].into_iter().chain(points::histogram_row(of)));
    }
    format!("\n{}\n\n{}", style.bold("Distributions without messages"), indent(&table))
}

/// How closely signals followed their commands; the curves are in the HTML form.
fn signals(analysis: &Analysis, style: Style) -> String {
    let mut out = format!("\n{}\n\n", style.bold("Signals"));
    if !analysis.tracking.is_empty() {
        let mut table = table(&["actual from commanded", "n", "p50", "p99", "max"]);
        for t in &analysis.tracking {
            let figures = [t.p50, t.p99, t.max].map(words::figure);
            table.add_row([cut(&t.name), words::count(t.n)].into_iter().chain(figures));
        }
        out += &indent(&table);
    }
    let others = analysis.signals.len() - 2 * analysis.tracking.len();
    if others > 0 {
        out += &format!("  {}; --format html draws them\n", words::quantity(others as u64, "other signal"));
    }
    out
}

/// What came of each channel, and what did not; the values themselves are for `taut telemetry`.
fn telemetry(named: Named<'_>, style: Style) -> String {
    let head = ["channel (ms)", "values", "messages", "rate, Hz", "period p50", "p99", "max", "missing"];
    let mut table = table(&head);
    for t in &named.analysis.telemetry {
        let rate = t.rate_hz.map_or("–".into(), |hz| format!("{hz:.1}"));
        let mut row = vec![cut(&t.topic), words::count(t.values), words::count(t.messages), rate];
        row.extend([t.period.p50_ns, t.period.p99_ns, t.period.max_ns].map(words::milliseconds));
        row.push(words::missing(t));
        table.add_row(row);
    }
    let values = format!("taut telemetry {} --channel TOPIC", words::shell(&[named.name.to_owned()]));
    format!("\n{}\n\n{}\n  The values: {values}\n", style.bold("Telemetry"), indent(&table))
}

fn delays(chain: &Chain) -> Table {
    let mut table = table(&["ms", "n", "p50", "p90", "p95", "p99", "p99.9", "max"]);
    let mut row = |name: &str, d: &Distribution| {
        let figures = [d.p50_ns, d.p90_ns, d.p95_ns, d.p99_ns, d.p999_ns, d.max_ns].map(words::milliseconds);
        table.add_row([name.to_owned(), words::count(d.n)].into_iter().chain(figures));
    };
    row("first to last point", &chain.end_to_end.distribution);
    if chain.whole_life.distribution.n > chain.end_to_end.distribution.n {
        row("including dropped", &chain.whole_life.distribution);
    }
    table
}

fn hops(chain: &Chain) -> Table {
    let mut table = table(&["hop (ms)", "n", "p50", "p95", "p99", "max", "PDV p99", "of the tail"]);
    for hop in &chain.hops {
        let d = &hop.delay.distribution;
        let share = hop.tail_share.map_or("–".into(), |s| format!("{} {:>3.0} %", bar(s), s * 100.0));
        let mut row = vec![hop_name(&hop.from, &hop.to), words::count(d.n)];
        row.extend([d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns, hop.pdv_p99_ns].map(words::milliseconds));
        row.push(share);
        table.add_row(row);
    }
    table
}

fn outcomes(outcomes: &Outcomes, messages: u64) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, n) in outcome_rows(outcomes) {
        let share = n as f64 / messages.max(1) as f64;
        table.add_row([name, words::count(n), words::percent(share), bar(share)]);
    }
    align_right(&mut table, 1..3);
    table
}

/// Every fate with its count, in the order of reading; zero rows only where zero is the news.
pub(crate) fn outcome_rows(outcomes: &Outcomes) -> Vec<(String, u64)> {
    let mut rows = vec![("applied".to_owned(), outcomes.applied)];
    rows.extend(outcomes.dropped.iter().map(|(reason, n)| (format!("dropped: {reason}"), *n)));
    rows.push(("in flight at start or end".to_owned(), outcomes.in_flight));
    if outcomes.lost > 0 {
        rows.push(("unknown: stamps were lost".to_owned(), outcomes.lost));
    }
    rows.push(("unexplained".to_owned(), outcomes.unexplained));
    rows
}

/// Whether the fates sum to the messages.
pub(crate) fn balance(outcomes: &Outcomes, messages: u64) -> String {
    let sum: u64 = outcome_rows(outcomes).iter().map(|(_, n)| n).sum();
    let double = match outcomes.double {
        0 => String::new(),
        n => format!("; {} had a second outcome (the first counts)", words::count(n)),
    };
    match messages as i128 - sum as i128 {
        0 => format!("sum {} of {}: balances{double}", words::count(sum), words::count(messages)),
        rest => format!("sum {} of {}: {rest} DO NOT BALANCE{double}", words::count(sum), words::count(messages)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_terminal_report() {
        let analysis = sample::teleop();
        let text = terminal(Named { name: "run.mcap", analysis: &analysis }, Style::default());
        insta::assert_snapshot!(text);
    }

    #[test]
    fn it_fits_100_columns_even_with_long_names() {
        let mut analysis = sample::teleop();
        analysis.chains[0].hops[0].to = "a_namespace.".to_owned() + &"x".repeat(107);
        for hop in &mut analysis.chains[0].hops {
            hop.delay.distribution.n = 123_456;
        }
        analysis.points[0].name = "/".to_owned() + &"x".repeat(118);
        analysis.histograms[0].name = "x".repeat(119);
        let text = terminal(Named { name: "run.mcap", analysis: &analysis }, Style::default());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }

    #[test]
    fn fates_that_do_not_sum_are_said() {
        let outcomes = Outcomes { applied: 3, ..Outcomes::default() };
        assert!(balance(&outcomes, 5).contains("2 DO NOT BALANCE"));
        assert!(balance(&outcomes, 3).ends_with("balances"));
    }
}
