//! The HTML form of a tuning: one self-contained page without scripts.

use taut_tune::{Standing, Tuned};

use super::{rows, sentences};
use crate::html::{drawn, escape};

const OWN_STYLE: &str = "
tr.confirmed td, tr.confirmed th { font-weight: 600; }
td.words { text-align: left; white-space: normal; }
pre { overflow-x: auto; padding: 12px; border: 1px solid var(--rule, #8884); border-radius: 6px; font-size: 13px; }
";

/// A self-contained page.
pub fn tune_html(tuned: &Tuned) -> String {
    let mut body = format!("<p class=\"kicker\"><b>taut</b> tune · {}</p>\n", escape(&sentences::about(tuned)));
    body += &format!("<p class=\"headline\">{}</p>\n", escape(&sentences::headline(tuned)));
    body += &format!(
        "<p class=\"subline\">{}<br>{}</p>\n",
        escape(&tuned.command.join(" ")),
        escape(&sentences::causes(tuned))
    );
    body += &list("", sentences::recommendation(tuned));
    let all = rows::rows(tuned);
    if !all.is_empty() {
        let head: String = rows::header(tuned).iter().map(|column| format!("<th>{column}</th>")).collect();
        let standings = tuned.found.iter().flat_map(|found| &found.tried).map(|tried| &tried.standing);
        let lines: String = all.iter().zip(standings).map(|(row, standing)| line(row, standing)).collect();
        body += &format!(
            "<h2>What was tried</h2>\n<div class=\"scroll\"><table><thead><tr>{head}</tr></thead>{lines}</table></div>\n\
             <p class=\"finding\">{}</p>\n",
            rows::NOTE
        );
    }
    body += &list("Only the program can change", tuned.within.iter().map(sentences::within).collect());
    body += &list("Not tried", tuned.left.iter().map(sentences::left).collect());
    for file in &tuned.files {
        body += &format!("<h2>{}</h2>\n<p>{}</p>\n<pre>{}</pre>\n", file.name, escape(file.usage), escape(&file.text));
    }
    body += &list("Notes", sentences::notes(tuned));
    drawn(&format!("tune {}", tuned.command.join(" ")), OWN_STYLE, &body)
}

fn list(title: &str, lines: Vec<String>) -> String {
    let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
    let title = if title.is_empty() { String::new() } else { format!("<h2>{title}</h2>\n") };
    if items.is_empty() { items } else { format!("{title}<ul class=\"notes\">{items}</ul>\n") }
}

fn line(row: &[String], standing: &Standing) -> String {
    let [name, figures @ .., result] = row else { return String::new() };
    let class = if *standing == Standing::Confirmed { " class=\"confirmed\"" } else { "" };
    let cells: String = figures.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    format!("<tr{class}><th>{}</th>{cells}<td class=\"words\">{}</td></tr>", escape(name), escape(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::sample;

    #[test]
    fn the_page_is_self_contained_and_foreign_text_cannot_break_out() {
        let (_, mut tuned) = sample::all().remove(0);
        tuned.command = vec!["</style><script>alert(1)".into()];
        let page = tune_html(&tuned);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("class=\"confirmed\"").count(), 1);
    }
}
