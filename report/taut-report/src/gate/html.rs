//! The HTML form of a gate: one self-contained page without scripts.

use taut_gate::Plot;

use super::{GateShown, plot, rows, sentences};
use crate::html::{drawn, escape};

/// What the page has beyond the report's own style.
const OWN_STYLE: &str = "
.key b.a { color: var(--line-1); } .key b.b { color: var(--line-2); }
td.worse { color: var(--bad); font-weight: 600; } td.better { color: var(--good); font-weight: 600; }
td.words { text-align: left; white-space: normal; }
th.cause { padding-left: 18px !important; color: var(--quiet); }
";

/// A self-contained page.
pub fn gate_html(shown: &GateShown<'_>) -> String {
    document(&format!("gate {} against {}", shown.b, shown.a), &body(shown))
}

/// What changed, for a page of something else: its style, and the markup.
pub(crate) fn changes_markup(shown: &GateShown<'_>) -> (String, String) {
    (format!("{}{OWN_STYLE}", crate::svg::STYLE), body(shown))
}

fn body(shown: &GateShown<'_>) -> String {
    let mut body = format!("<p class=\"kicker\"><b>taut</b> {}</p>\n", escape(&rows::about(shown)));
    body += &format!("<p class=\"headline\">{}</p>\n", escape(&sentences::headline(shown)));
    body += &format!(
        "<p class=\"subline key\"><b class=\"a\">A</b> {}<br><b class=\"b\">B</b> {}</p>\n",
        escape(shown.a),
        escape(shown.b)
    );
    let notes: String = sentences::notes(shown).iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    if !notes.is_empty() {
        body += &format!("<ul class=\"notes\">{notes}</ul>\n");
    }
    let ballots = rows::ballots(shown);
    if !ballots.is_empty() {
        body += &format!("<h2>What decides</h2>\n{}", figures(&ballots, &rows::HEADER));
    }
    let [a_total, b_total, a_own, b_own] = &shown.outcome.plots;
    body += &picture("The whole way: share of messages that took longer", a_total, b_total);
    body += &picture("The same without the machine's part", a_own, b_own);
    let hops = rows::hops(shown);
    if !hops.is_empty() {
        let cells = |row: &[String; 3]| {
            let class = if row[0].starts_with(' ') { " class=\"cause\"" } else { "" };
            let rest: String = row[1..].iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            format!("<tr><th{class}>{}</th>{rest}</tr>", escape(row[0].trim()))
        };
        let rows: String = hops.iter().map(cells).collect();
        body += &format!(
            "<h2>{}</h2>\n<div class=\"scroll\"><table>{}{rows}</table></div>\n<p class=\"finding\">{}</p>\n",
            rows::HOPS_TITLE,
            head(&rows::HOP_HEADER),
            rows::HOPS_NOTE
        );
    }
    let described = rows::described(shown);
    if !described.is_empty() {
        body += &format!("<h2>What does not decide</h2>\n{}", figures(&described, &rows::HEADER[..6]));
    }
    body
}

/// A page of finished markup.
pub(super) fn document(title: &str, body: &str) -> String {
    drawn(title, OWN_STYLE, body)
}

fn picture(title: &str, a: &Plot, b: &Plot) -> String {
    let svg = plot::beyond(a, b);
    if svg.is_empty() {
        return String::new();
    }
    format!(
        "<h2>{}</h2>\n<figure><p class=\"finding key\"><b class=\"a\">A</b> and <b class=\"b\">B</b>, all trials \
         together; the lower, the rarer</p>{svg}</figure>\n",
        escape(title)
    )
}

fn head(columns: &[&str]) -> String {
    let cells: String = columns.iter().map(|column| format!("<th>{}</th>", escape(column))).collect();
    format!("<thead><tr>{cells}</tr></thead>")
}

fn figures(all: &[rows::Row], header: &[&str]) -> String {
    let row = |row: &rows::Row| {
        let cells = [&row.a, &row.b, &row.change, &row.bounds, &row.verdict, &row.smallest];
        let cells: String = cells
            .into_iter()
            .take(header.len() - 1)
            .enumerate()
            .map(|(at, cell)| {
                let class = if at == 4 { format!(" class=\"{}\"", row.tone) } else { String::new() };
                format!("<td{class}>{}</td>", escape(cell))
            })
            .collect();
        format!("<tr><th>{}</th>{cells}</tr>", escape(&row.figure))
    };
    let rows: String = all.iter().map(row).collect();
    format!("<div class=\"scroll\"><table>{}{rows}</table></div>\n", head(header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn the_page_is_self_contained_and_foreign_text_cannot_break_out() {
        let (_, outcome) = sample::outcomes().remove(0);
        let page = gate_html(&GateShown { a: "</style><script>", ..sample::shown(&outcome) });
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<svg").count(), 2);
        // For the test in a browser.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/gate-worse.html");
        std::fs::write(path, page).unwrap();
    }
}
