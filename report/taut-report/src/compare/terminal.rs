//! The comparison in a terminal: tables that fit 100 columns.

use super::{Comparison, DELAY_HEAD, cause_rows, delay_rows, end_rows};
use crate::{
    Named, Style,
    console::{indent, table, wrap},
    terminal::measured,
};

/// Runs side by side in one table; more of them go below.
const RUNS_ACROSS: usize = 3;
/// The longest name of a row or a run that leaves room for the figures.
const NAME_WIDTH: usize = 30;
const RUN_WIDTH: usize = 17;

/// Several recordings side by side.
pub fn comparison_terminal(recordings: &[Named<'_>], style: Style) -> String {
    let comparison = Comparison::new(recordings);
    let mut out = String::new();
    for (run, named) in comparison.runs.iter().zip(recordings) {
        let line = wrap(&measured(named.analysis), 96).replace('\n', "\n  ");
        out += &format!("{}  {}\n  {}\n", style.bold(&run.short), named.name, style.dim(&line));
    }
    out += &format!("\n{}\n", wrap(&comparison.headline, 98));
    for chain in &comparison.chains {
        out += &format!("\n{}\n\n", style.bold(&chain.name));
        let mut delays = table(&DELAY_HEAD);
        for mut row in delay_rows(&comparison, chain) {
            row[0] = cut(&row[0], RUN_WIDTH);
            delays.add_row(row);
        }
        out += &indent(&delays);
        let names: Vec<String> = chain.runs.iter().map(|side| cut(comparison.short(side), RUN_WIDTH)).collect();
        out += &matrix("ended so", &names, &end_rows(&comparison, chain));
        if !chain.causes.is_empty() {
            let first = "of the tail · in each message of it";
            out += &matrix(&cut(first, NAME_WIDTH + 6), &names, &cause_rows(chain));
        }
    }
    for alone in &comparison.alone {
        out +=
            &format!("\nonly in {}: {} ({} messages)\n", comparison.runs[alone.run].short, alone.chain, alone.messages);
    }
    out += "\n";
    for note in &comparison.notes {
        out += &format!("{} {}\n", style.dim("note:"), wrap(note, 92).replace('\n', "\n      "));
    }
    out += &format!("{}\n", style.dim("Each by itself: taut report RUN"));
    out
}

fn matrix(first: &str, names: &[String], rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (at, group) in names.chunks(RUNS_ACROSS).enumerate() {
        let head: Vec<&str> = [first].into_iter().chain(group.iter().map(String::as_str)).collect();
        let mut table = table(&head);
        for row in rows {
            let from = 1 + at * RUNS_ACROSS;
            let cells = row[from..from + group.len()].iter().cloned();
            table.add_row([cut(&row[0], NAME_WIDTH + 6)].into_iter().chain(cells));
        }
        out += &format!("\n{}", indent(&table));
    }
    out
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_terminal_comparison() {
        let (before, after) = (sample::teleop(), sample::teleop_made_right());
        let named = [Named { name: "source.mcap", analysis: &before }, Named { name: "right.mcap", analysis: &after }];
        insta::assert_snapshot!(comparison_terminal(&named, Style::default()));
    }

    #[test]
    fn six_runs_with_long_names_fit_100_columns() {
        let analysis = sample::teleop();
        let names: Vec<String> = (0..6).map(|n| format!("{}{n}.mcap", "a long name ".repeat(5))).collect();
        let named: Vec<Named<'_>> = names.iter().map(|name| Named { name, analysis: &analysis }).collect();
        let text = comparison_terminal(&named, Style::default());
        // File names stand on their own lines, as they are.
        for line in text.lines().filter(|line| !line.contains(".mcap")) {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }
}
