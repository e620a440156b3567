//! The Markdown form of a tuning.

use taut_tune::Tuned;

use super::{rows, sentences};
use crate::escape::{Form, code, escaped};

fn escape(text: &str) -> String {
    escaped(text, Form::Markdown)
}

/// The answer, the table, what was not tried, and the shell prefix.
pub fn tune_markdown(tuned: &Tuned) -> String {
    let mut out = format!("### taut tune: {}\n\n", escape(&sentences::headline(tuned)));
    out += &format!(
        "{}  \n{}  \n{}\n\n",
        code(&tuned.command.join(" ")),
        escape(&sentences::about(tuned)),
        escape(&sentences::causes(tuned))
    );
    for line in sentences::recommendation(tuned) {
        out += &format!("- {}\n", escape(&line));
    }
    let all = rows::rows(tuned);
    if !all.is_empty() {
        let header = rows::header(tuned);
        out += &format!("\n| {} |\n|---{}|\n", header.join(" | "), "|---:".repeat(header.len() - 1));
        for row in all {
            out += &format!("| {} |\n", row.iter().map(|cell| escape(cell)).collect::<Vec<_>>().join(" | "));
        }
        out += &format!("\n{}\n", rows::NOTE);
    }
    let section = |title: &str, lines: Vec<String>| {
        let lines: String = lines.iter().map(|line| format!("- {}\n", escape(line))).collect();
        if lines.is_empty() { lines } else { format!("\n**{title}**\n\n{lines}") }
    };
    out += &section("Only the program can change", tuned.within.iter().map(sentences::within).collect());
    out += &section("Not tried", tuned.left.iter().map(sentences::left).collect());
    out += &section("Notes", sentences::notes(tuned));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::sample;

    #[test]
    fn the_markdown_tuning() {
        insta::assert_snapshot!(tune_markdown(&sample::all().remove(0).1));
    }
}
