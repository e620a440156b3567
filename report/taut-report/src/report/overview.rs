//! Chains and loops, a line each, what needs attention first; and of which of them a terminal has the details.

use taut_analysis::{Analysis, Cause, CauseShare, Chain, Loop};
use taut_document::{Block, Cell, Section, Show, Table};

use super::View;
use crate::{loops, words::percent};

/// Of fewer each has its details, and needs no line.
const LINES_MIN: usize = 5;
/// So many chains, and so many loops, are detailed.
const DETAILED: usize = 3;
/// Lines on a terminal; of periods, too.
pub(super) const SHOWN: usize = 20;

/// The lines of a recording that has many.
pub(super) struct Overview<'a>(Vec<Line<'a>>);

#[derive(Clone, Copy)]
enum Line<'a> {
    Chain(&'a Chain),
    Loop(&'a Loop),
}

impl<'a> Overview<'a> {
    /// Nothing where there are few.
    pub fn of(analysis: &'a Analysis) -> Option<Overview<'a>> {
        let chains = analysis.chains.iter().filter(|chain| !chain.is_loop).map(Line::Chain);
        let mut lines: Vec<Line<'_>> = chains.chain(analysis.loops.iter().map(Line::Loop)).collect();
        lines.sort_by(|a, b| b.failed().total_cmp(&a.failed()).then_with(|| a.slowest().cmp(&b.slowest()).reverse()));
        (lines.len() >= LINES_MIN).then_some(Overview(lines))
    }

    /// The chains with details: the first lines, those that were declared, and the one of the headline.
    pub fn detailed_chains(&self, analysis: &'a Analysis) -> Vec<&'a Chain> {
        let is_first = |chain: &Chain| analysis.chains.first().is_some_and(|first| std::ptr::eq(first, chain));
        let chains = (0..).zip(self.0.iter().filter_map(|line| match line {
            Line::Chain(chain) => Some(*chain),
            Line::Loop(_) => None,
        }));
        let detailed = chains.filter(|(at, chain)| *at < DETAILED || chain.declared || is_first(chain));
        detailed.map(|(_, chain)| chain).collect()
    }

    /// The loops in the order of their lines, but for the one that a headline is about, and how many of them have details.
    pub fn loops(&self, analysis: &'a Analysis) -> (Vec<&'a Loop>, usize) {
        let of_line = |line: &Line<'a>| match line {
            Line::Loop(of) => Some(*of),
            Line::Chain(_) => None,
        };
        let mut all: Vec<&Loop> = self.0.iter().filter_map(of_line).collect();
        let main = analysis.loops.first().filter(|_| loops::is_unmodified(analysis)).map(|main| &main.name);
        let is_detailed = main.is_none() || all.iter().take(DETAILED).any(|of| Some(&of.name) == main);
        // The order of the others stays.
        all.sort_by_key(|of| main.is_some() && Some(&of.name) != main);
        (all, if is_detailed { DETAILED } else { DETAILED + 1 })
    }

    /// The table, and what follows it in this view.
    pub fn sections(&self, view: View<'_>) -> Vec<Section> {
        let (has_chains, has_loops) = (self.0.iter().any(Line::is_chain), !self.0.iter().all(Line::is_chain));
        let title = match (has_chains, has_loops) {
            (true, true) => "Chains and loops",
            (true, false) => "Chains",
            _ => "All loops",
        };
        // An explanation is of chains.
        let what = if matches!(view, View::Report) { "chains and loops" } else { "chains" };
        let details = format!(
            "Details of the first {DETAILED} {what} follow, and of those that are declared or in the headline; the page \
             (--format html) has all."
        );
        vec![
            Section::new(1, title, vec![self.table(has_loops).into()]),
            Section::new(2, "", vec![Block::Text(details.into())]).shown(Show::Text),
        ]
    }

    fn table(&self, has_loops: bool) -> Table {
        let name = if has_loops { "chain or loop" } else { "chain" };
        let head = [name, "lost", "missed", "p50", "p99", "first cause", "n", "rate"];
        let mut table = Table::new(head).priorities([0, 0, 0, 3, 0, 0, 1, 2]);
        table.columns[5].wraps = true;
        let of_loops = if has_loops {
            ". Of a loop: from release to start; lost: releases that it skipped, missed: activations not done at the next one, \
             both by its timer"
        } else {
            ""
        };
        table.caption = format!(
            "Those that lost or missed the largest share of their messages come first. Of a chain: latency from the first to the last point; lost: dropped or \
             without a known end, missed: over the deadline{of_loops}. ≤: there are too few for a p99, which is at most this maximum"
        )
        .into();
        table.shown = SHOWN;
        for line in &self.0 {
            table.add(line.cells());
        }
        table.without_missing();
        table
    }
}

impl Line<'_> {
    fn is_chain(&self) -> bool {
        matches!(self, Line::Chain(_))
    }

    fn lost(self) -> Option<u64> {
        match self {
            Line::Chain(Chain { outcomes, .. }) => Some(outcomes.not_arrived()),
            Line::Loop(of) => of.skipped,
        }
    }

    fn missed(self) -> Option<u64> {
        match self {
            Line::Chain(chain) => chain.missed,
            Line::Loop(of) => of.overruns,
        }
    }

    /// Of all that should have come in time, the share that did not.
    fn failed(&self) -> f64 {
        let lost = self.lost().unwrap_or(0);
        let all = match self {
            Line::Chain(chain) => chain.messages,
            Line::Loop(of) => of.activations + lost,
        };
        (lost + self.missed().unwrap_or(0)) as f64 / all.max(1) as f64
    }

    fn slowest(&self) -> Option<u64> {
        let d = match self {
            Line::Chain(chain) => &chain.end_to_end.distribution,
            Line::Loop(of) => &of.release_latency,
        };
        d.p99_ns.or(d.max_ns)
    }

    fn cells(self) -> Vec<Cell> {
        let (name, rate, n, d) = match self {
            Line::Chain(chain) => {
                let rate = chain.points.iter().find(|point| !point.is_due).and_then(|point| point.rate_hz);
                (&chain.name, rate, chain.messages, &chain.end_to_end.distribution)
            }
            Line::Loop(of) => (&of.name, of.rate_hz, of.activations, &of.release_latency),
        };
        let count = |n: Option<u64>| n.map_or(Cell::Missing, Cell::Count);
        let cause = self.first_cause().map_or(Cell::Missing, Cell::text);
        let slowest = d.p99_ns.map(Cell::Time).or(d.max_ns.map(Cell::AtMost)).unwrap_or(Cell::Missing);
        let figures = [count(self.lost()), count(self.missed()), Cell::time(d.p50_ns), slowest, cause];
        let last = [Cell::Count(n), rate.map_or(Cell::Missing, Cell::Rate)];
        [Cell::text(name.as_str())].into_iter().chain(figures).chain(last).collect()
    }

    /// The cause with the largest share of the excess, with its party where that makes most of it.
    fn first_cause(self) -> Option<String> {
        let (causes, explained) = match self {
            Line::Chain(chain) => (&chain.explained.causes, Some(&chain.explained)),
            Line::Loop(of) => (&of.late_by, None),
        };
        if causes.iter().all(|of| of.cause == Cause::Unknown) {
            return None;
        }
        let sum = |cause: Cause| causes.iter().filter(|of| of.cause == cause).map(|of| of.tail_share).sum::<f64>();
        let sums = Cause::ALL.into_iter().map(|cause| (cause, sum(cause)));
        let (cause, share) = sums.filter(|(_, share)| *share > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))?;
        let of_cause = causes.iter().filter(|of| of.cause == cause && !of.detail.is_empty());
        let most: Option<&CauseShare> = of_cause.max_by(|a, b| a.tail_share.total_cmp(&b.tail_share));
        let party = most.filter(|of| of.tail_share > share / 2.0).map_or(String::new(), |of| {
            let detail = explained.map_or_else(|| of.detail.clone(), |explained| explained.named(&of.detail));
            // The share is the cause's.
            let mostly = if of.tail_share > 0.95 * share { "" } else { ", mostly" };
            format!("{mostly} {}", cause.party(&detail))
        });
        Some(format!("{} {}{party}", percent(share), cause.word()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use taut_analysis::Outcomes;
    use taut_document::{Document, Style, markdown, terminal};
    use taut_stats::Distribution;

    use super::*;
    use crate::sample;

    /// Two chains of which one loses messages, and three loops of which one overruns.
    pub fn many() -> Analysis {
        let mut analysis = sample::teleop();
        let mut steady = analysis.chains[0].clone();
        (steady.name, steady.outcomes) =
            ("steady".into(), Outcomes { applied: steady.messages, ..Outcomes::default() });
        (steady.declared, steady.missed, steady.deadline_ns) = (false, None, None);
        analysis.chains.push(steady);
        let of = |name: &str, overruns, skipped, p99_ns| Loop {
            name: name.into(),
            rate_hz: Some(1000.0),
            activations: 10_000,
            overruns,
            skipped,
            release_latency: Distribution {
                n: 10_000,
                p50_ns: Some(9_000),
                p99_ns: Some(p99_ns),
                max_ns: Some(2_100_000),
                ..Distribution::default()
            },
            late_by: vec![
                CauseShare { cause: Cause::Gil, tail_share: 0.4, ..CauseShare::default() },
                CauseShare {
                    cause: Cause::Wakeup,
                    detail: "by hog/30".into(),
                    tail_share: 0.35,
                    ..CauseShare::default()
                },
                CauseShare {
                    cause: Cause::Wakeup,
                    detail: "by taut/9".into(),
                    tail_share: 0.25,
                    ..CauseShare::default()
                },
            ],
            ..Loop::default()
        };
        analysis.loops = vec![
            of("quick timer 1 ms", Some(0), Some(0), 20_000),
            of("slow timer 1 ms", Some(0), Some(0), 900_000),
            of("late timer 1 ms", Some(40), Some(7), 100_000),
        ];
        analysis
    }

    fn document(analysis: &Analysis) -> Document {
        Document { sections: Overview::of(analysis).expect("five lines").sections(View::Report), ..Document::default() }
    }

    #[test]
    fn what_needs_attention_comes_first() {
        let analysis = many();
        insta::assert_snapshot!("overview", terminal(&document(&analysis), Style::default()));
        insta::assert_snapshot!("overview_markdown", markdown(&document(&analysis)));
    }

    #[test]
    fn a_loop_that_fails_is_described_before_those_that_do_not() {
        let analysis = many();
        let (loops, detailed) = Overview::of(&analysis).unwrap().loops(&analysis);
        let names: Vec<&str> = loops.iter().map(|of| of.name.as_str()).collect();
        assert_eq!((names, detailed), (vec!["late timer 1 ms", "slow timer 1 ms", "quick timer 1 ms"], DETAILED));
    }

    #[test]
    fn few_need_no_overview() {
        let mut analysis = many();
        analysis.loops.pop();
        assert!(Overview::of(&analysis).is_none());
    }

    #[test]
    fn a_party_of_less_than_half_of_its_cause_is_not_named() {
        let mut analysis = many();
        let first_cause = |of: &Loop| Line::Loop(of).first_cause();
        let of = &mut analysis.loops[0];
        assert_eq!(first_cause(of), Some("60.0 % wakeup, mostly while hog/30 ran".into()));
        of.late_by[1].tail_share = 0.3;
        of.late_by.push(CauseShare {
            cause: Cause::Wakeup,
            detail: "by x/1".into(),
            tail_share: 0.2,
            ..CauseShare::default()
        });
        assert_eq!(first_cause(of).unwrap(), "75.0 % wakeup");
        of.late_by = vec![CauseShare { tail_share: 1.0, ..CauseShare::default() }];
        assert_eq!(first_cause(of), None, "unknown alone");
    }
}
