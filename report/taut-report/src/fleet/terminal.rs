//! A fleet's answer in the terminal: tables that fit 100 columns.

use comfy_table::{ContentArrangement, Table};

use super::{Answer, Compare, Report, Worst, sentences};
use crate::{
    Style,
    console::{indent, table, wrap},
};

/// Weeks of the trend that are shown; JSON and the page have all.
const WEEKS_MAX: usize = 8;

/// What `taut fleet report|worst|compare` prints.
pub fn fleet_terminal(answer: &Answer, style: Style) -> String {
    let headline = wrap(&sentences::headline(answer), 98);
    let body = match answer {
        Answer::Report(of) => report(of, style),
        Answer::Worst(of) => worst(of, style),
        Answer::Compare(of) => compare(of, style),
    };
    format!("{}\n{}\n{body}", style.bold(&headline), style.dim(&sentences::about(answer.about())))
}

fn report(report: &Report, style: Style) -> String {
    let mut out = String::new();
    for chain in &report.chains {
        let extent = sentences::side(&chain.chain, &chain.extent);
        out += &format!("\n{}\n\n", style.bold(&wrap(&extent, 98)));
        out += &filled(&sentences::PLACES, sentences::places(&chain.places));
        out += &format!("\n  {}\n", wrap(&sentences::spread(&chain.robots_p99), 94).replace('\n', "\n  "));
        if chain.revisions.len() > 1 {
            out += &format!("\n{}", filled(&sentences::REVISIONS, sentences::revisions(&chain.revisions)));
        }
        let weeks = chain.places.first().map(sentences::weeks).unwrap_or_default();
        if weeks.len() > 1 {
            let skipped = weeks.len().saturating_sub(WEEKS_MAX);
            out += &format!("\n{}", filled(&sentences::WEEKS, weeks.into_iter().skip(skipped).collect()));
            if skipped > 0 {
                out += &format!("  {}\n", style.dim(&format!("{skipped} earlier weeks: --format html or json")));
            }
        }
    }
    out + &foot(style)
}

fn worst(worst: &Worst, style: Style) -> String {
    let place = match (worst.hop.as_str(), worst.cause.as_str()) {
        ("", "") => "the whole way".to_owned(),
        ("", cause) => format!("time lost to {cause}"),
        (hop, "") => hop.to_owned(),
        (hop, cause) => format!("{hop}, time lost to {cause}"),
    };
    let days = sentences::days(&worst.first, &worst.last);
    let mut out = format!("\n{}\n\n", style.bold(&wrap(&format!("{}, {place}, {days}", worst.chain), 98)));
    let head = sentences::ranked_head(worst);
    out += &filled(&head.each_ref().map(String::as_str), sentences::ranked(worst));
    if worst.too_few > 0 {
        out += &format!("  not ranked, with too few messages: {}\n", crate::words::count(worst.too_few));
    }
    out + &foot(style)
}

fn compare(compare: &Compare, style: Style) -> String {
    let mut out = String::new();
    for chain in &compare.chains {
        out += &format!("\n{}\n", style.bold(&chain.chain));
        for (letter, name, side) in [("A", &compare.a, &chain.a), ("B", &compare.b, &chain.b)] {
            out += &format!("  {letter} {}\n", sentences::side(name, side));
        }
        let rows = chain.places.iter().flat_map(sentences::compared).map(|(row, _)| row).collect();
        out += &format!("\n{}", filled(&sentences::COMPARED, rows));
    }
    out + &format!("\n  {}\n", wrap(&sentences::unit(compare), 94).replace('\n', "\n  ")) + &foot(style)
}

fn foot(style: Style) -> String {
    format!("\n  {}\n", style.dim(&wrap(sentences::BOUNDS, 94).replace('\n', "\n  ")))
}

fn filled<const N: usize>(head: &[&str; N], rows: Vec<[String; N]>) -> String {
    let mut table: Table = table(head);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(98);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    indent(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::sample;

    #[test]
    fn the_terminal_report() {
        insta::assert_snapshot!(fleet_terminal(&sample::report(), Style::default()));
    }

    #[test]
    fn the_terminal_ranking() {
        insta::assert_snapshot!(fleet_terminal(&sample::worst(), Style::default()));
    }

    #[test]
    fn the_terminal_comparison() {
        insta::assert_snapshot!(fleet_terminal(&sample::compare(), Style::default()));
    }

    #[test]
    fn it_fits_100_columns() {
        for answer in [sample::report(), sample::worst(), sample::compare()] {
            for line in fleet_terminal(&answer, Style::default()).lines() {
                assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
            }
        }
    }

    #[test]
    fn a_servers_password_is_not_shown() {
        let Answer::Report(mut report) = sample::report() else { panic!() };
        report.about.place = "clickhouse://me:p@ss@host:8123/robots/fleet".into();
        let text = fleet_terminal(&Answer::Report(report), Style::default());
        assert!(text.contains("clickhouse://host:8123/robots/fleet ·") && !text.contains("p@ss"), "{text}");
    }
}
