//! The Markdown form of a gate: a comment for a pull request.

use super::{GateShown, rows, sentences};
use taut_document::escape::{Form, code, escaped};

/// Hidden in every comment.
pub(super) const MARKER: &str = "<!-- taut gate -->";

/// A comment: the verdict, what decided it, and the rest folded away.
pub fn gate_markdown(shown: &GateShown<'_>) -> String {
    // The marker is how a workflow finds its own comment again.
    let mut out = format!("{MARKER}\n### taut gate: {}\n\n", escape(&sentences::headline(shown)));
    out += &format!("A: {}  \nB: {}  \n{}\n\n", code(shown.a), code(shown.b), escape(&rows::about(shown)));
    for note in sentences::notes(shown) {
        out += &format!("> {}\n\n", escape(&note));
    }
    let ballots = rows::ballots(shown);
    if !ballots.is_empty() {
        out += &figures(&ballots, &rows::HEADER);
    }
    let hops = rows::hops(shown);
    if !hops.is_empty() {
        out += &format!("\n<details><summary>{}</summary>\n\n", rows::HOPS_TITLE);
        out += &head(&rows::HOP_HEADER);
        hops.iter().for_each(|row| out += &line(row.iter().map(String::as_str)));
        out += &format!("\n{}\n\n</details>\n", rows::HOPS_NOTE);
    }
    let described = rows::described(shown);
    if !described.is_empty() {
        out += "\n<details><summary>What does not decide</summary>\n\n";
        out += &figures(&described, &rows::HEADER[..6]);
        out += "\n</details>\n";
    }
    out
}

fn figures(all: &[rows::Row], header: &[&str]) -> String {
    let mut out = head(header);
    for row in all {
        let cells = [&row.figure, &row.a, &row.b, &row.change, &row.bounds, &row.verdict, &row.smallest];
        out += &line(cells.into_iter().take(header.len()).map(String::as_str));
    }
    out
}

pub(super) fn head(columns: &[&str]) -> String {
    let rule = columns.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" });
    line(columns.iter().copied()) + &line(rule)
}

pub(super) fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.map(|cell| escape(cell.trim())).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Foreign text as text.
pub(super) fn escape(text: &str) -> String {
    escaped(text, Form::Markdown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn the_pull_request_comment() {
        let (_, outcome) = sample::outcomes().remove(0);
        insta::assert_snapshot!(gate_markdown(&sample::shown(&outcome)));
    }
}
