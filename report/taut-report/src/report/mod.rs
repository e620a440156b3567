//! A recording's report: one document, of which `taut report` and `taut explain` show different parts, and the page all of it.

mod chain;
mod facts;
mod hop_name;
mod message_lanes;
mod signals;
mod tables;
mod tail;

use taut_analysis::{Analysis, Chain};
use taut_document::{Block, Document, Finding, Front, Section, Show, Text, Tone};

use crate::{
    Named, flame,
    headline::{self, Headline},
    loops, ros, words,
};
pub(crate) use facts::measured;

const SCRIPT: &str = include_str!("../../bundle/report.js");
const STYLE: &str = include_str!("../../bundle/report.css");

/// Chains that have a section each on a terminal.
const MOST_TOLD: usize = 8;

/// What `taut explain` was asked for in particular.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Messages to draw on their lanes; the worst one when empty.
    pub messages: &'a [u64],
    /// Hypotheses were named: their results are the answer, all else is how it came about.
    pub hypotheses: bool,
}

/// Which parts a terminal and Markdown show; a page has all.
#[derive(Clone, Copy)]
enum View<'a> {
    /// How late, where, why, and how the messages ended.
    Report,
    /// Causes in full, and messages on their lanes.
    Explanation(Asked<'a>),
}

impl View<'_> {
    /// Of what belongs to a report.
    fn in_report(self) -> Show {
        if matches!(self, View::Report) { Show::Always } else { Show::Page }
    }

    /// Of what belongs to an explanation.
    fn in_explanation(self) -> Show {
        if matches!(self, View::Report) { Show::Page } else { Show::Always }
    }
}

/// The report of one recording.
pub fn report_document(named: Named<'_>) -> Document {
    document(named, View::Report)
}

/// What `taut explain` shows.
pub fn explain_document(named: Named<'_>, asked: Asked<'_>) -> Document {
    document(named, View::Explanation(asked))
}

/// A document whose charts one can point at.
pub fn interactive(document: &Document) -> String {
    interactive_with(document, &[])
}

/// The same, and below it others.
pub(crate) fn interactive_with(document: &Document, further: &[Document]) -> String {
    taut_document::html(document, Some(&Front { script: SCRIPT, style: STYLE, further }))
}

fn document(named: Named<'_>, view: View<'_>) -> Document {
    let analysis = named.analysis;
    let Headline { finding, next, more } = headline::sentences(analysis);
    let headline = Text::from(finding.join(" "));
    let headline = match next {
        Some(next) => headline.and(" ").strong(next),
        None => headline,
    };
    let more = (!more.is_empty()).then(|| Section::new(1, "", vec![Block::Text(more.join(" ").into())]));
    let mut sections = damage(analysis);
    sections.extend(more.map(|section| section.shown(view.in_report())));
    let loops = loops::sections(analysis, view.in_report());
    let is_unmodified = loops::is_unmodified(analysis);
    let chains = chains(analysis, view);
    sections.extend(if is_unmodified { [loops, chains] } else { [chains, loops] }.concat());
    sections.extend(analysis.ros.iter().flat_map(ros::sections).map(|section| section.shown(view.in_report())));
    sections.extend(tables::sections(analysis, view));
    sections.extend(signals::sections(analysis).into_iter().filter_map(|section| narrowed(section, view)));
    sections.extend(tables::telemetry(named).map(|section| section.shown(view.in_report())));
    sections.extend(profile(named).map(|section| section.shown(view.in_report())));
    sections.push(Section::new(1, "How this was measured", vec![facts::table(analysis).into()]).shown(Show::Kept));
    let next = loops::next_step(analysis).map(|next| format!("To know more: {next}"));
    Document {
        title: named.name.to_owned(),
        measured: measured(analysis).into(),
        headline,
        sections,
        notes: analysis.notes.iter().cloned().chain(next).map(Text::from).collect(),
        reproduce: facts::reproduce(named),
    }
}

/// A section of a report in this view.
fn narrowed(section: Section, view: View<'_>) -> Option<Section> {
    match (view, section.show) {
        (View::Report, _) | (_, Show::Page) => Some(section),
        (_, Show::Text) => None,
        _ => Some(section.shown(Show::Page)),
    }
}

fn damage(analysis: &Analysis) -> Vec<Section> {
    let finding = |text: &String| Finding {
        tone: Tone::Bad,
        label: "damaged".into(),
        text: text.as_str().into(),
        ..Finding::default()
    };
    let findings: Vec<Finding> = analysis.damage.iter().map(finding).collect();
    if findings.is_empty() { Vec::new() } else { vec![Section::new(1, "", vec![Block::Findings(findings)])] }
}

/// Those of which there is something to tell; the others are lines of a table, and a page has each of them by itself, too.
fn chains(analysis: &Analysis, view: View<'_>) -> Vec<Section> {
    let is_asked = |asked: Asked<'_>| asked.hypotheses || !asked.messages.is_empty();
    let (mut told, listed) = match view {
        View::Explanation(asked) if is_asked(asked) => (analysis.chains.iter().collect(), Vec::new()),
        _ => tables::told_and_listed(analysis),
    };
    let mut sections = Vec::new();
    if told.len() > MOST_TOLD && !matches!(view, View::Explanation(asked) if is_asked(asked)) {
        let text = format!(
            "The first {MOST_TOLD} and declared ones have a section each; a page (--format html) has all of them."
        );
        let blocks = vec![tables::overview(&told).into(), Block::Text(text.into())];
        sections.push(Section::new(1, "Chains", blocks).shown(Show::Text));
        told = told
            .iter()
            .enumerate()
            .filter(|(at, chain)| *at < MOST_TOLD || chain.declared)
            .map(|(_, chain)| *chain)
            .collect();
    }
    let of_chain = |chain: &Chain| {
        let is_told = told.iter().any(|told| std::ptr::eq(*told, chain));
        let on_page = |section: Section| (section.show != Show::Text).then(|| section.shown(Show::Page));
        let sections = chain::sections(chain, view).into_iter();
        if is_told { sections.collect::<Vec<_>>() } else { sections.filter_map(on_page).collect() }
    };
    sections.extend(analysis.chains.iter().flat_map(of_chain));
    if !listed.is_empty() {
        let text = "What the slow ones waited for only kernel events show.".into();
        let blocks = vec![tables::short_chains(&listed).into(), Block::Text(text)];
        sections.push(Section::new(1, "Short chains", blocks).shown(Show::Text));
    }
    sections
}

/// A flame graph of the sampled stacks.
fn profile(named: Named<'_>) -> Option<Section> {
    let profile = named.analysis.profile.as_ref()?;
    let file = words::shell(&[named.name.to_owned()]);
    let text = Text::from(format!("{}; by itself: ", words::profile(profile)))
        .code(format!("taut flamegraph {file} -o flame.svg"));
    let svg = flame::flame(profile, named.name);
    Some(Section::new(1, "Where CPU time went", vec![Block::Image { svg, text }]))
}

#[cfg(test)]
mod tests {
    use taut_analysis::Cause;
    use taut_document::{Style, markdown, terminal};

    use super::*;
    use crate::sample;

    fn named(analysis: &Analysis) -> Named<'_> {
        Named { name: "run.mcap", analysis }
    }

    fn explained(analysis: &Analysis, asked: Asked<'_>) -> String {
        terminal(&explain_document(named(analysis), asked), Style::default())
    }

    #[test]
    fn the_report_on_a_terminal_and_in_markdown() {
        let analysis = sample::teleop();
        let document = report_document(named(&analysis));
        insta::assert_snapshot!("terminal", terminal(&document, Style::default()));
        insta::assert_snapshot!("markdown", markdown(&document));
    }

    #[test]
    fn the_explanation_on_a_terminal_and_in_markdown() {
        let analysis = sample::teleop();
        let document = explain_document(named(&analysis), Asked::default());
        insta::assert_snapshot!("explanation", terminal(&document, Style::default()));
        insta::assert_snapshot!("explanation_markdown", markdown(&document));
    }

    #[test]
    fn of_many_chains_the_first_have_a_section_each_and_all_a_line() {
        let mut analysis = sample::teleop();
        let mut other = analysis.chains[0].clone();
        other.declared = false;
        analysis.chains = (0..20).map(|n| Chain { name: format!("chain {n}"), ..other.clone() }).collect();
        let document = report_document(named(&analysis));
        let text = terminal(&document, Style::default());
        let lines =
            |name: &str| text.lines().filter(|line| *line == name || line.starts_with(&format!("  {name} "))).count();
        assert_eq!([lines("chain 7"), lines("chain 8")], [2, 1], "{text}");
        let page = taut_document::html(&document, None);
        assert!(page.contains("chain 19</h") && page.contains("chain 8</h"));
    }

    #[test]
    fn a_page_has_what_both_show() {
        let analysis = sample::teleop();
        let page = |document| taut_document::html(&document, None);
        let [report, explanation] =
            [page(report_document(named(&analysis))), page(explain_document(named(&analysis), Asked::default()))];
        for part in ["first to last point", "Hypotheses", "responsible", "Message 1734", "outcome", "Reproduce"] {
            assert!(report.contains(part) && explanation.contains(part), "{part}");
        }
    }

    #[test]
    fn hypotheses_that_were_asked_for_come_first_and_once() {
        let analysis = sample::teleop();
        let text = explained(&analysis, Asked { hypotheses: true, ..Asked::default() });
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("contributes ") < at("Excess of the 9") && text.matches("Hypotheses").count() == 1, "{text}");
    }

    #[test]
    fn every_message_asked_for_is_drawn_and_no_other() {
        let mut analysis = sample::teleop();
        let paths = &mut analysis.chains[0].explained.paths;
        for id in [7, u64::MAX - 1] {
            paths.push(paths[0].clone());
            paths.last_mut().unwrap().time.id = id;
        }
        let text = explained(&analysis, Asked { messages: &[7, u64::MAX - 1], ..Asked::default() });
        let shown = ["Message 7:", "Message 18446744073709551614:", "Message 1734:"];
        assert_eq!(shown.map(|title| text.contains(title)), [true, true, false], "{text}");
    }

    #[test]
    fn where_nothing_is_known_one_sentence_says_what_it_takes() {
        let mut analysis = sample::teleop();
        let explained = &mut analysis.chains[0].explained;
        explained.causes.truncate(1);
        explained.causes[0].cause = Cause::Unknown;
        explained.by_cause = explained.causes.clone();
        explained.paths[0].path.iter_mut().for_each(|piece| piece.cause = Cause::Unknown);
        let text = self::explained(&analysis, Asked::default());
        assert!(text.contains("only kernel events") && !text.contains("Predictions"), "{text}");
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        let mut two_messages = sample::teleop();
        let paths = &mut two_messages.chains[0].explained.paths;
        paths.extend_from_within(..1);
        paths[1].time.id += 1;
        for (name, analysis) in [("sample", two_messages), ("edges", sample::edges())] {
            let file = format!("{name}.mcap");
            let page = interactive(&report_document(Named { name: &file, analysis: &analysis }));
            let path = format!("{}/../../target/{name}-report.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, page).unwrap();
        }
    }
}
