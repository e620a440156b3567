//! The comparison to paste in a pull request.

use super::{Comparison, DELAY_HEAD, cause_rows, delay_rows, end_rows};
use taut_document::escape::code;

use crate::{Named, markdown::cell, terminal::measured};

/// Several recordings side by side.
pub fn comparison_markdown(recordings: &[Named<'_>]) -> String {
    let comparison = Comparison::new(recordings);
    let mut out = format!("### taut: {} recordings\n\n{}\n", recordings.len(), cell(&comparison.headline));
    for chain in &comparison.chains {
        out += &format!("\n**{}**\n\n", cell(&chain.name));
        out += &table(&DELAY_HEAD.map(String::from), &delay_rows(&comparison, chain));
        let names = chain.runs.iter().map(|side| comparison.short(side).to_owned());
        let head: Vec<String> = ["ended so".to_owned()].into_iter().chain(names.clone()).collect();
        out += &format!("\n{}", table(&head, &end_rows(&comparison, chain)));
        if !chain.causes.is_empty() {
            let first = "of the tail · in each of its messages".to_owned();
            let head: Vec<String> = [first].into_iter().chain(names).collect();
            out += &format!("\n{}", table(&head, &cause_rows(chain)));
        }
    }
    for alone in &comparison.alone {
        let (name, chain) = (cell(&comparison.runs[alone.run].short), cell(&alone.chain));
        out += &format!("\nOnly in {name}: {chain} ({} messages)\n", alone.messages);
    }
    out += "\n";
    for (run, named) in comparison.runs.iter().zip(recordings) {
        out += &format!(
            "<sub>{}: {}, {}</sub><br>\n",
            cell(&run.short),
            code(named.name),
            cell(&measured(named.analysis))
        );
    }
    for note in &comparison.notes {
        out += &format!("\n- {}\n", cell(note));
    }
    out
}

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(|c| cell(c)).collect::<Vec<_>>().join(" | "));
    let rule = format!("|---|{}\n", "--:|".repeat(head.len() - 1));
    [line(head), rule].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_markdown_comparison() {
        let (before, after) = (sample::teleop(), sample::teleop_made_right());
        let named = [Named { name: "source.mcap", analysis: &before }, Named { name: "right.mcap", analysis: &after }];
        insta::assert_snapshot!(comparison_markdown(&named));
    }
}
