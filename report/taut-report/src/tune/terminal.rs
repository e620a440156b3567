//! The terminal form of a tuning: the answer first, then a table that fits 100 columns.

use comfy_table::{ContentArrangement, Table};
use taut_tune::Tuned;

use super::{rows, sentences};
use crate::{
    Style,
    console::{indent, table, wrap},
};

const WIDTH: usize = 98;

/// What `taut tune` prints.
pub fn tune_terminal(tuned: &Tuned, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&wrap(&sentences::headline(tuned), WIDTH)));
    for line in [tuned.command.join(" "), sentences::about(tuned), sentences::causes(tuned)] {
        if !line.is_empty() {
            out += &format!("{}\n", style.dim(&wrap(&line, WIDTH)));
        }
    }
    for line in sentences::recommendation(tuned) {
        out += &format!("  {}\n", wrap(&line, WIDTH - 2).replace('\n', "\n  "));
    }
    let all = rows::rows(tuned);
    if !all.is_empty() {
        let header = rows::header(tuned);
        let mut shown = table(&header.iter().map(String::as_str).collect::<Vec<_>>());
        for row in all {
            shown.add_row(row.iter().map(|cell| unbroken(cell)).collect::<Vec<_>>());
        }
        out += &format!("\n{}{}\n", narrow(shown), style.dim(&wrap(rows::NOTE, WIDTH)));
    }
    let section = |title: &str, lines: Vec<String>| {
        let lines: String =
            lines.iter().map(|line| format!("  {}\n", wrap(line, WIDTH - 2).replace('\n', "\n    "))).collect();
        if lines.is_empty() { lines } else { format!("\n{}\n{lines}", style.bold(title)) }
    };
    out += &section("Only the program can change", tuned.within.iter().map(sentences::within).collect());
    out += &section("Not tried", tuned.left.iter().map(sentences::left).collect());
    let files = tuned.files.iter().map(|file| {
        let place = tuned.folder.as_ref().map_or(String::new(), |folder| format!("{folder}/"));
        format!("{place}{}: {}", file.name, file.usage)
    });
    match tuned.folder {
        Some(_) => out += &section("Files", files.collect()),
        // Without a folder the prefix is shown: it is what people copy.
        None => {
            if let Some(file) = tuned.files.first() {
                let text: String = file.text.lines().map(|line| format!("    {line}\n")).collect();
                out += &format!("\n{}\n{text}", style.bold(&format!("{}: {}", file.name, file.usage)));
            }
        }
    }
    out += "\n";
    for note in sentences::notes(tuned) {
        out += &format!("{} {}\n", style.dim("note:"), wrap(&note, 92).replace('\n', "\n      "));
    }
    out
}

/// A figure and its unit stay together.
fn unbroken(cell: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for (at, c) in cell.char_indices() {
        let after = cell[at + c.len_utf8()..].chars().next().unwrap_or(' ');
        let is_unit = c == ' ' && before.is_ascii_digit() && (after == '%' || after.is_alphabetic());
        out.push(if is_unit { '\u{a0}' } else { c });
        before = c;
    }
    out
}

fn narrow(mut rows: Table) -> String {
    rows.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH as u16);
    indent(&rows).replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::sample;

    #[test]
    fn the_terminal_tuning() {
        for (name, tuned) in sample::all() {
            let text = tune_terminal(&tuned, Style::default());
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(100), "{widest:?} columns:\n{text}");
            insta::assert_snapshot!(name, text);
        }
    }
}
