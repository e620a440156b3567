//! A fleet's answer as one self-contained page without scripts.

use super::{Answer, Compare, Report, Worst, sentences, trend};
use crate::html::{drawn, escape};

/// What the page has beyond the report's own style.
const OWN_STYLE: &str = "
h3 { margin: 24px 0 4px; }
.key b { font-weight: 600; }
.key b.a { color: var(--line-1); } .key b.b { color: var(--line-2); } .key b.c { color: var(--line-3); } .key b.d { color: var(--line-4); }
svg.drawn .change { stroke-width: 3; stroke: var(--quiet); } svg.drawn circle.same { fill: var(--quiet); }
svg.drawn .change.worse { stroke: var(--bad); } svg.drawn circle.worse { fill: var(--bad); }
svg.drawn .change.better { stroke: var(--good); } svg.drawn circle.better { fill: var(--good); }
svg.drawn .bar { stroke: var(--line-1); stroke-width: 14; } svg.drawn .median { stroke: var(--line-2); stroke-width: 2; }
td.worse { color: var(--bad); font-weight: 600; } td.better { color: var(--good); font-weight: 600; }
td.words { text-align: left; white-space: normal; }
th.cause { padding-left: 18px !important; color: var(--quiet); font-weight: normal; }
";

/// A self-contained page.
pub fn fleet_html(answer: &Answer) -> String {
    let (title, body) = match answer {
        Answer::Report(of) => ("report".to_owned(), report(of)),
        Answer::Worst(of) => ("worst robots".to_owned(), worst(of)),
        Answer::Compare(of) => (format!("{} against {}", of.b, of.a), compare(of)),
    };
    let about = sentences::about(answer.about());
    let mut page = format!("<p class=\"kicker\"><b>taut</b> fleet · {}</p>\n", escape(&about));
    page += &format!("<p class=\"headline\">{}</p>\n{body}", escape(&sentences::headline(answer)));
    page += &format!("<p class=\"aside\">{}</p>\n", escape(&format!("Figures are {}.", sentences::BOUNDS)));
    drawn(&format!("fleet {title}"), OWN_STYLE, &page)
}

fn report(report: &Report) -> String {
    let mut out = String::new();
    for chain in &report.chains {
        out += &format!("<h2>{}</h2>\n", escape(&chain.chain));
        out += &format!("<p class=\"aside\">{}</p>\n", escape(&sentences::side("All", &chain.extent)));
        if let Some(way) = chain.places.first() {
            out += &figure("The whole way, week by week", &trend::figures(way));
        }
        out += &figure("p99 of the hops that take most time, week by week", &trend::hops(&chain.places));
        out += &table(&sentences::PLACES, sentences::places(&chain.places).into_iter().map(|row| (row, "")));
        out += &format!("<h3>Robots</h3>\n<p class=\"aside\">{}</p>\n", escape(&sentences::spread(&chain.robots_p99)));
        let robots = chain.robots_p99.worst.iter().map(|robot| {
            let of = &robot.figures;
            let [p50, p99, p999] = [of.p50, of.p99, of.p999].map(sentences::bounds);
            ([robot.robot.clone(), crate::words::count(of.n), p50, p99, p999], "")
        });
        out += &table(&["the worst by p99", "n", "p50", "p99", "p99.9"], robots);
        out += "<h3>Revisions</h3>\n";
        out += &table(&sentences::REVISIONS, sentences::revisions(&chain.revisions).into_iter().map(|row| (row, "")));
        if let Some(way) = chain.places.first() {
            out += "<h3>Weeks</h3>\n";
            out += &table(&sentences::WEEKS, sentences::weeks(way).into_iter().map(|row| (row, "")));
        }
    }
    out
}

fn worst(worst: &Worst) -> String {
    let head = sentences::ranked_head(worst);
    let days = sentences::days(&worst.first, &worst.last);
    let mut out = format!("<h2>{}</h2>\n<p class=\"aside\">{}</p>\n", escape(&worst.chain), escape(&days));
    let svg = trend::ranking(worst);
    if !svg.is_empty() {
        let figure = sentences::figure(&worst.figure);
        out += &format!("<figure class=\"wide\"><p class=\"finding\">{figure} of the worst robots</p>{svg}</figure>\n");
    }
    out += &table(&head.each_ref().map(String::as_str), sentences::ranked(worst).into_iter().map(|row| (row, "")));
    if worst.too_few > 0 {
        out += &format!(
            "<p class=\"aside\">Not ranked, with too few messages: {}</p>\n",
            crate::words::quantity(worst.too_few, "robot")
        );
    }
    out
}

fn compare(compare: &Compare) -> String {
    let mut out = String::new();
    for chain in &compare.chains {
        out += &format!("<h2>{}</h2>\n<p class=\"subline\">", escape(&chain.chain));
        for (letter, name, side) in [("A", &compare.a, &chain.a), ("B", &compare.b, &chain.b)] {
            out += &format!("<b>{letter}</b> {}<br>", escape(&sentences::side(name, side)));
        }
        out += "</p>\n";
        let svg = trend::changes(&chain.places);
        if !svg.is_empty() {
            out += &format!(
                "<figure class=\"wide\"><p class=\"finding\">B over A, by robots, with 95 % intervals: right of ×1.00 is \
                 later</p>{svg}</figure>\n"
            );
        }
        out += &table(&sentences::COMPARED, chain.places.iter().flat_map(sentences::compared));
    }
    out + &format!("<p class=\"aside\">{}</p>\n", escape(&sentences::unit(compare)))
}

fn figure(title: &str, lines: &[trend::Line<'_>]) -> String {
    let svg = trend::weeks(title, lines);
    if svg.is_empty() {
        return String::new();
    }
    let key =
        lines.iter().zip(trend::LINES).map(|((name, _), class)| format!("<b class=\"{class}\">{}</b>", escape(name)));
    let key = key.collect::<Vec<_>>().join(" · ");
    format!("<figure class=\"wide\"><p class=\"finding key\">{}: {key}</p>{svg}</figure>\n", escape(title))
}

/// The last column takes the row's tone; a first cell that begins with blanks is a cause.
fn table<const N: usize>(head: &[&str; N], rows: impl Iterator<Item = ([String; N], &'static str)>) -> String {
    let head: String = head.iter().map(|cell| format!("<th>{}</th>", escape(cell))).collect();
    let row = |(cells, tone): ([String; N], &str)| {
        let class = if cells[0].starts_with(' ') { " class=\"cause\"" } else { "" };
        let rest: String = cells[1..]
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let class = if at + 2 == N && !tone.is_empty() { format!(" class=\"{tone}\"") } else { String::new() };
                format!("<td{class}>{}</td>", escape(cell))
            })
            .collect();
        format!("<tr><th{class}>{}</th>{rest}</tr>", escape(cells[0].trim()))
    };
    let rows: String = rows.map(row).collect();
    format!("<div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::sample;

    #[test]
    fn the_pages_are_self_contained_and_foreign_text_cannot_break_out() {
        for (name, answer) in [("report", sample::report()), ("worst", sample::worst()), ("compare", sample::compare())]
        {
            let page = fleet_html(&answer);
            for outside in ["src=\"http", "href=\"http", "@import", "url(http", "<script", "<b>x"] {
                assert!(!page.contains(outside), "{name}: {outside}");
            }
            assert!(page.contains("&lt;b&gt;x"), "{name}: the chain's name is there, as text");
            // For the test in a browser.
            let path = format!("{}/../../target/fleet-{name}.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, page).unwrap();
        }
    }

    #[test]
    fn a_report_draws_the_way_and_the_hops_and_a_comparison_its_changes() {
        assert_eq!(fleet_html(&sample::report()).matches("<svg").count(), 2);
        assert_eq!(fleet_html(&sample::worst()).matches("class=\"bar\"").count(), 4);
        let page = fleet_html(&sample::compare());
        assert!(page.contains("<line class=\"change worse\"") && page.contains("<td class=\"worse\">"));
    }
}
