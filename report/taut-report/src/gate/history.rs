//! A branch's history for people: which revision changed what.

use taut_history::{Change, FigureHistory};

use super::{html::document, plot};
use crate::{
    Style,
    console::{indent, table, wrap},
    html::escape,
    words,
};

/// A history with what is to be said about it.
#[derive(Clone, Copy, Debug)]
pub struct HistoryShown<'a> {
    /// The folder.
    pub folder: &'a str,
    /// Figures over revisions.
    pub lines: &'a [FigureHistory],
    /// Revisions in it.
    pub revisions: usize,
}

/// "arm: read → plan, own.p50".
pub(super) fn name(line: &FigureHistory) -> String {
    let place = if line.hop.is_empty() { "whole way" } else { &line.hop };
    format!("{}: {place}, {}", line.chain, line.figure)
}

fn is_share(line: &FigureHistory) -> bool {
    !line.figure.contains('.') || line.figure.ends_with(".slow")
}

fn number(line: &FigureHistory, value: f64) -> String {
    if is_share(line) { format!("{:.2} %", value * 100.0) } else { words::scaled(value) }
}

pub(super) fn change(line: &FigureHistory, change: &Change) -> String {
    let (before, after) = (change.point.before, change.point.after);
    match is_share(line) {
        true => format!("{:+.2} pp", (after - before) * 100.0),
        false => format!("{:+.1} %", (after / before - 1.0) * 100.0),
    }
}

/// The newest first.
fn all<'a>(shown: &'a HistoryShown<'_>) -> Vec<(&'a FigureHistory, &'a Change)> {
    let mut all: Vec<_> = shown.lines.iter().flat_map(|line| line.changes.iter().map(move |c| (line, c))).collect();
    all.sort_by_key(|(line, change)| (line.revisions.len() - change.point.at, name(line)));
    all
}

pub(super) fn headline(shown: &HistoryShown<'_>) -> String {
    let revisions = words::quantity(shown.revisions as u64, "revision");
    let all = all(shown);
    match all.first() {
        None if shown.revisions < 2 * taut_stats::compare::FEWEST_BETWEEN_CHANGES => {
            format!("{revisions}: a change needs at least {}", 2 * taut_stats::compare::FEWEST_BETWEEN_CHANGES)
        }
        None => format!("No change in {revisions}"),
        Some((line, newest)) => format!(
            "{} in {revisions}; the newest came with {}: {} {}",
            words::quantity(all.len() as u64, "change"),
            newest.to,
            name(line),
            change(line, newest)
        ),
    }
}

/// What `taut gate --history` prints.
pub fn history_terminal(shown: &HistoryShown<'_>, style: Style) -> String {
    let mut out = format!("{}\n{}\n", style.bold(&wrap(&headline(shown), 98)), style.dim(shown.folder));
    let all = all(shown);
    if !all.is_empty() {
        let mut rows = table(&["figure", "last before", "first after", "before", "after", "change"]);
        for (line, one) in all {
            let point = &one.point;
            rows.add_row([
                name(line),
                short(&one.from),
                short(&one.to),
                number(line, point.before),
                number(line, point.after),
                change(line, one),
            ]);
        }
        rows.set_content_arrangement(comfy_table::ContentArrangement::Dynamic).set_width(98);
        out += &format!("\n{}", indent(&rows));
    }
    out
}

/// A self-contained page with a plot for each figure, those that changed first.
pub fn history_html(shown: &HistoryShown<'_>) -> String {
    let mut body = format!("<p class=\"kicker\"><b>taut</b> history · {}</p>\n", escape(shown.folder));
    body += &format!("<p class=\"headline\">{}</p>\n", escape(&headline(shown)));
    let mut lines: Vec<&FigureHistory> = shown.lines.iter().filter(|line| line.revisions.len() > 1).collect();
    lines.sort_by_key(|line| line.changes.is_empty());
    for line in lines {
        let values: Vec<f64> = line.revisions.iter().map(|(_, value)| *value).collect();
        let said: Vec<String> = line
            .changes
            .iter()
            .map(|one| format!("{} with {} (the last before: {})", change(line, one), one.to, one.from))
            .collect();
        let said = if said.is_empty() { "no change".into() } else { said.join("; ") };
        body += &format!(
            "<h2>{}</h2>\n<figure><p class=\"finding\">{} · {}</p>{}</figure>\n",
            escape(&name(line)),
            escape(&said),
            escape(&line.machine),
            plot::history(&values, &levels(line), &|value| number(line, value), &|at| short(&line.revisions[at].0))
        );
    }
    document("history", &body)
}

/// (first, behind the last, level) of each stretch between changes.
fn levels(line: &FigureHistory) -> Vec<(usize, usize, f64)> {
    let mut cuts: Vec<usize> = line.changes.iter().map(|change| change.point.at).collect();
    cuts.insert(0, 0);
    cuts.push(line.revisions.len());
    let level = |from: usize, to: usize| {
        let mut values: Vec<f64> = line.revisions[from..to].iter().map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        (from, to, (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0)
    };
    cuts.windows(2).map(|two| level(two[0], two[1])).collect()
}

/// A git hash as git shows it.
fn short(revision: &str) -> String {
    let is_hash = revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash { revision[..12].to_owned() } else { revision.to_owned() }
}

#[cfg(test)]
mod tests {
    use taut_history::{Row, lines};

    use super::*;
    use crate::history_json;

    fn rows() -> Vec<Row> {
        let row = |at: u32| Row {
            time_unix_s: f64::from(at),
            revision: format!("r{at:02}"),
            machine: "one".into(),
            chain: "arm".into(),
            hop: "<a> → b".into(),
            figure: "own.p50".into(),
            value: if at < 10 { 1e5 } else { 1.4e5 } + f64::from(at * 37 % 11) * 100.0,
        };
        (0..20).map(row).collect()
    }

    #[test]
    fn the_terminal_history() {
        let lines = lines(&rows(), &["own.p50".into()]);
        let shown = HistoryShown { folder: "history", lines: &lines, revisions: 20 };
        insta::assert_snapshot!(history_terminal(&shown, Style::default()));
        assert_eq!(history_json(&shown)["lines"][0]["changes"][0]["to"], "r10");
    }

    #[test]
    fn the_page_has_a_plot_and_no_foreign_markup() {
        let lines = lines(&rows(), &["own.p50".into()]);
        let page = history_html(&HistoryShown { folder: "<history>", lines: &lines, revisions: 20 });
        assert!(page.contains("<svg") && !page.contains("<a>") && !page.contains("<history>"));
        assert_eq!(page.matches("<circle").count(), 20);
        for named in ["r00", "r10", "r19"] {
            assert!(page.contains(&format!(">{named}</text>")), "{named}");
        }
        // For the test in a browser.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/gate-history.html");
        std::fs::write(path, page).unwrap();
    }
}
