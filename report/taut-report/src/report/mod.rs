//! A recording's report: one document, of which `taut report` and `taut explain` show different parts, and the page all of it.

mod chain;
mod facts;
mod holes;
mod hop_name;
mod message_lanes;
mod overview;
mod signals;
mod tables;
mod tail;

use taut_analysis::{Analysis, Chain, Selected};
use taut_document::{Block, Document, Finding, Front, Section, Show, Text, Tone};

use crate::{
    Named, flame,
    headline::{self, Headline},
    loops, ros, words,
};
pub(crate) use facts::measured;
use overview::Overview;

const SCRIPT: &str = include_str!("../../bundle/report.js");
const STYLE: &str = include_str!("../../bundle/report.css");

/// Damaged places that are listed at once.
const DAMAGE_SHOWN: usize = 5;

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

    /// Whether messages or hypotheses are asked for: then each chain that has them is shown.
    fn is_asked(self) -> bool {
        matches!(self, View::Explanation(asked) if asked.hypotheses || !asked.messages.is_empty())
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
    let overview = Overview::of(analysis).filter(|_| !view.is_asked());
    sections.extend(overview.iter().flat_map(|overview| overview.sections(view)));
    let (in_order, detailed) = match &overview {
        Some(overview) => overview.loops(analysis),
        None => loops::all(analysis),
    };
    let loops = loops::sections(analysis, &in_order, detailed, view.in_report());
    let is_unmodified = loops::is_unmodified(analysis);
    let chains = chains(analysis, view, overview.as_ref());
    sections.extend(if is_unmodified { [loops, chains] } else { [chains, loops] }.concat());
    sections.extend(analysis.ros.iter().flat_map(ros::sections).map(|section| section.shown(view.in_report())));
    sections.extend(tables::sections(analysis, view, overview.is_some()));
    sections.extend(signals::sections(analysis).into_iter().filter_map(|section| narrowed(section, view)));
    sections.extend(tables::telemetry(named).map(|section| section.shown(view.in_report())));
    sections.extend(profile(named).map(|section| section.shown(view.in_report())));
    sections.push(Section::new(1, "How this was measured", vec![facts::table(analysis).into()]).shown(Show::Kept));
    let next = [single(named, view), loops::next_step(analysis)].into_iter().flatten();
    let next = next.map(|next| format!("To know more: {next}"));
    Document {
        title: named.name.to_owned(),
        measured: measured(analysis).into(),
        headline,
        sections,
        notes: analysis.notes.iter().cloned().chain(next).map(Text::from).collect(),
        reproduce: facts::reproduce(named),
    }
}

/// How single late messages are seen, or single activations of the loop that the headline is about.
fn single(named: Named<'_>, view: View<'_>) -> Option<String> {
    let analysis = named.analysis;
    let chain = loops::main_chain(analysis).or_else(|| analysis.chains.iter().find(|chain| !chain.is_loop))?;
    let of_report = matches!(view, View::Report) && !matches!(chain.explained.selected, Selected::Nothing);
    let file = words::shell(&[named.name.to_owned()]);
    let what = if chain.is_loop { "activations" } else { "messages" };
    of_report.then(|| format!("taut explain {file} --worst 5 shows the slowest {what} one by one"))
}

/// A section of a report in this view.
fn narrowed(section: Section, view: View<'_>) -> Option<Section> {
    match (view, section.show) {
        (View::Report, _) | (_, Show::Page) => Some(section),
        (_, Show::Text) => None,
        _ => Some(section.shown(Show::Page)),
    }
}

/// Whether the finding stands, then what is damaged.
fn damage(analysis: &Analysis) -> Vec<Section> {
    let damaged =
        |text: String| Finding { tone: Tone::Bad, label: "damaged".into(), text: text.into(), ..Finding::default() };
    let mut findings: Vec<Finding> = holes::finding(analysis).into_iter().collect();
    let (first, more) = analysis.damage.split_at(analysis.damage.len().min(DAMAGE_SHOWN));
    findings.extend(first.iter().cloned().map(damaged));
    let closed: Vec<Finding> = more.iter().cloned().map(damaged).collect();
    let more = words::quantity(more.len() as u64, "more place");
    let mut sections = Vec::new();
    if !findings.is_empty() {
        sections.push(Section::new(1, "", vec![Block::Findings(findings)]));
    }
    if !closed.is_empty() {
        let text = Block::Text(format!("And {more} of damage; --format html has all.").into());
        sections.push(Section::new(2, "", vec![text]).shown(Show::Text));
        sections
            .push(Section::new(2, format!("{more} of damage"), vec![Block::Findings(closed)]).shown(Show::PageFolded));
    }
    sections
}

/// Those with details; a page has the others closed until opened. What a loop's activations were spent on only a page has, and of the
/// loop that a headline is about an explanation.
fn chains(analysis: &Analysis, view: View<'_>, overview: Option<&Overview<'_>>) -> Vec<Section> {
    let mut detailed: Vec<&Chain> = match overview {
        Some(overview) => overview.detailed_chains(analysis),
        None => analysis.chains.iter().filter(|chain| view.is_asked() || !chain.is_loop).collect(),
    };
    let main = loops::main_chain(analysis).filter(|_| matches!(view, View::Explanation(_)));
    if let Some(main) = main.filter(|main| !detailed.iter().any(|of| std::ptr::eq(*of, *main))) {
        detailed.insert(0, main);
    }
    let is_other = |chain: &&Chain| !detailed.iter().any(|of| std::ptr::eq(*of, *chain));
    let rest = if overview.is_some() { Show::PageFolded } else { Show::Page };
    let of_page = |(at, section): (usize, Section)| {
        (section.show != Show::Text).then(|| section.shown(if at == 0 { rest } else { Show::Page }))
    };
    let others = analysis.chains.iter().filter(is_other);
    let others = others.flat_map(|chain| chain::sections(chain, view).into_iter().enumerate().filter_map(of_page));
    detailed.iter().flat_map(|chain| chain::sections(chain, view)).chain(others).collect()
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
        assert_eq!([lines("chain 2"), lines("chain 3")], [2, 1], "{text}");
        let page = taut_document::html(&document, None);
        assert!(
            page.contains("chain 2</h2>") && page.contains("chain 3</summary>") && page.contains("chain 19</summary>")
        );
        assert_eq!(page.matches("first to last point").count(), 20);
    }

    #[test]
    fn every_column_has_an_entry_in_the_glossary() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/glossary.md");
        let glossary = std::fs::read_to_string(path).unwrap();
        let entries: Vec<String> = glossary
            .lines()
            .filter_map(|line| Some(format!(", {}, ", line.strip_prefix("| ")?.split(" | ").next()?)))
            .collect();
        let analyses = [sample::teleop(), overview::tests::many()];
        let documents = analyses.iter().flat_map(|analysis| {
            [report_document(named(analysis)), explain_document(named(analysis), Asked::default())]
        });
        let sections: Vec<Section> = documents.flat_map(|document| document.sections).collect();
        let tables = sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        let mut names: Vec<String> = tables.flat_map(|table| &table.columns).map(|of| of.name.clone()).collect();
        // The table of hops has a column for each large cause.
        names.retain(|name| !name.is_empty() && Cause::from_word(name).is_none());
        assert!(names.iter().any(|name| name == "first cause") && names.iter().any(|name| name == "PDV p99"));
        names.retain(|name| !entries.iter().any(|entry| entry.contains(&format!(", {name}, "))));
        assert_eq!(names, Vec::<String>::new(), "columns without an entry in the glossary");
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
    fn of_much_damage_the_first_places_are_listed_after_what_it_means() {
        let mut analysis = sample::teleop();
        analysis.damage = (0..8).map(|n| format!("chunk {n} fails its checksum")).collect();
        let document = report_document(named(&analysis));
        let text = terminal(&document, Style::default());
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("stands") < at("chunk 0") && at("chunk 4") < at("And 3 more places of damage"), "{text}");
        assert!(!text.contains("chunk 5") && taut_document::html(&document, None).contains("chunk 7"));
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
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("kernel events show what") && !words.contains("Predictions"), "{text}");
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
