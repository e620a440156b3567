//! A tuning as a document: the answer, what was tried, what was not, and the files that apply it.

use taut_document::{Block, Cell, Document, Finding, Section, Show, Table, Text, Tone, units};
use taut_tune::{Change, Problem, Set, Standing, Tuned};

use super::sentences;

/// What the figures of the table are.
const NOTE: &str = "Before → after: medians over trials. The change is the median over pairs of runs, in each with the remedy against without it. With \
                    fresh pairs a row has their figures; those of the others are of the selection, which only chooses what is held against \
                    fresh pairs.";
const OVERRUNS: &str = "Overruns: messages over the deadline; of a loop without one, activations that were not done when the next was due.";

/// What `taut tune` shows.
pub fn tune_document(tuned: &Tuned) -> Document {
    let mut sections = vec![Section::new(1, "", vec![list(sentences::recommendation(tuned))])];
    let (table, has_overruns) = tried(tuned);
    if !table.rows.is_empty() {
        let note = if has_overruns { format!("{NOTE} {OVERRUNS}") } else { NOTE.to_owned() };
        sections.push(Section::new(1, "What was tried", vec![Block::Table(table), Block::Text(note.into())]));
    }
    let lists = [
        ("Only the program can change", tuned.within.iter().map(sentences::within).collect::<Vec<_>>()),
        ("Not tried", sentences::left(&tuned.left)),
    ];
    let lists = lists.into_iter().filter(|(_, lines)| !lines.is_empty());
    sections.extend(lists.map(|(title, lines)| Section::new(1, title, vec![list(lines)])));
    if let Some(folder) = &tuned.folder {
        let places = tuned.files().iter().map(|file| format!("{folder}/{}: {}", file.name, file.usage));
        let result = format!("{folder}/tune.json, tune.md, tune.html: this result");
        sections.push(Section::new(1, "Files", vec![list(places.chain([result]).collect())]));
    }
    for (at, file) in tuned.files().iter().enumerate() {
        // Without a folder the prefix is shown: it is what people copy.
        let show = if at == 0 && tuned.folder.is_none() { Show::Always } else { Show::Page };
        let blocks = vec![Block::Code(file.text.clone())];
        sections.push(Section::new(1, format!("{}: {}", file.name, file.usage), blocks).shown(show));
    }
    Document {
        title: "tune".into(),
        measured: sentences::about(tuned),
        headline: sentences::first_lines(tuned),
        sections,
        notes: sentences::notes(tuned).into_iter().map(Text::from).collect(),
        reproduce: Vec::new(),
    }
}

fn list(lines: Vec<String>) -> Block {
    Block::Findings(lines.into_iter().map(|line| Finding { text: line.into(), ..Finding::default() }).collect())
}

/// All sets, the recommended first; and whether overruns are known.
fn tried(tuned: &Tuned) -> (Table, bool) {
    let tail = if tuned.figure.is_empty() { "tail" } else { &tuned.figure };
    let head = ["remedy", "in force", "events", "p50", tail, "overruns", "change", "interval", "result", "cost"];
    let mut table = Table::new(head).priorities([0, 2, 6, 3, 0, 4, 0, 1, 0, 5]);
    table.columns[8].wraps = true;
    table.columns[9].wraps = true;
    for set in &tuned.tried {
        let row = table.row(row(tuned, set));
        row.tone = if set.standing == Standing::Confirmed { Tone::Good } else { Tone::Plain };
    }
    let has_overruns = tuned.tried.iter().any(|set| set.missed.is_some());
    if !has_overruns {
        table.columns.remove(5);
        table.rows.iter_mut().for_each(|row| {
            row.cells.remove(5);
        });
    }
    (table, has_overruns)
}

fn row(tuned: &Tuned, set: &Set) -> [Cell; 10] {
    let step = |both: Option<(f64, f64)>, cell: fn(f64) -> Cell| {
        both.map_or(Cell::Missing, |(before, after)| Cell::step(cell(before), cell(after)))
    };
    let time = |ns: f64| Cell::Time(ns.round() as u64);
    let of = |change: &Option<Change>| change.as_ref().map(|one| (one.before, one.after));
    let fresh = set.fresh.as_ref().filter(|fresh| fresh.tail.is_some());
    let (p50, tail, missed) = match (&set.standing, fresh) {
        // What was measured without it says nothing of it.
        (Standing::Problem(_), _) => (None, None, None),
        (_, Some(fresh)) => (of(&fresh.p50), of(&fresh.tail), of(&fresh.missed)),
        (_, None) => (set.p50_ns, set.tail_ns, set.missed),
    };
    let figures = fresh.and_then(|fresh| fresh.tail.as_ref());
    let change =
        figures.map(|figures| figures.change).or(set.ratio.map(|ratio| ratio - 1.0)).filter(|_| tail.is_some());
    let interval = figures.and_then(|figures| figures.interval).filter(|_| tail.is_some());
    let in_force = match (&set.standing, set.rounds) {
        (Standing::Problem(Problem::NotInForce(_)), _) => "no".into(),
        (_, 0) => units::MISSING.into(),
        (_, rounds) => format!("{} of {rounds}", set.verified),
    };
    [
        Cell::text(tuned.name(&set.set)),
        Cell::text(in_force),
        if set.kernel_events > 0 { Cell::Count(set.kernel_events as u64) } else { Cell::Missing },
        step(p50, time),
        step(tail, time),
        step(missed, Cell::Share),
        change.map_or(Cell::Missing, Cell::Change),
        interval.map_or(Cell::Missing, |[low, high]| Cell::interval(Cell::Change(low), Cell::Change(high))),
        Cell::text(sentences::result(set)),
        Cell::text(sentences::costs(tuned, set)),
    ]
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, html, markdown, terminal};

    use super::*;
    use crate::tune::sample;

    #[test]
    fn the_terminal_tuning() {
        for (name, tuned) in sample::all() {
            insta::assert_snapshot!(name, terminal(&tune_document(&tuned), Style::default()));
        }
    }

    #[test]
    fn the_markdown_tuning() {
        insta::assert_snapshot!(markdown(&tune_document(&sample::all().remove(0).1)));
    }

    #[test]
    fn the_page_has_every_file() {
        let (_, mut tuned) = sample::all().remove(0);
        tuned.command = vec!["</style><script>alert(1)".into()];
        let page = html(&tune_document(&tuned), None);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        assert_eq!(page.matches("<pre>").count(), tuned.files().len());
    }
}
