//! Limits: which are kept, and which are broken, by the program or by the machine.

use schemars::JsonSchema;
use serde::Serialize;
use taut_document::{
    Block, Cell, Document, Section, Table, Text, Tone,
    units::{quantity, rare, scaled},
};
use taut_gate::{Beyond, LimitFigure, LimitFinding, LimitResult, LimitsOutcome, VoidTrial};
use taut_stats::compare::InvalidReason;

use super::{Terms, cells::number as cell};
use crate::envelope;

/// Limits with what is to be said about them.
#[derive(Clone, Copy, Debug)]
pub struct LimitsShown<'a> {
    /// What was held against them: a command, a file.
    pub subject: &'a str,
    /// What was found.
    pub outcome: &'a LimitsOutcome,
    /// What else is said.
    pub terms: Terms<'a>,
}

#[derive(Serialize, JsonSchema)]
struct Limits<'a> {
    /// The gravest of all limits' results: "kept", "broken", "broken by the machine", "not enough evidence", "not carried".
    verdict: &'static str,
    /// What was held against the limits: a command, a file.
    subject: &'a str,
    /// Runs that failed: then the verdict is "broken".
    failed_runs: usize,
    /// Sound trials.
    trials: usize,
    /// The fewest that can settle anything.
    fewest_trials: usize,
    limits: Vec<HeldLimit>,
    /// What a reader must know.
    notes: Vec<String>,
}

/// What became of one limit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Limit")]
struct HeldLimit {
    /// E.g. "arm: plan → send, own p99".
    name: String,
    /// The chain's name.
    chain: String,
    /// "from → to"; null for the whole way and for shares.
    hop: Option<String>,
    /// "ns" or "share".
    unit: &'static str,
    limit: f64,
    /// As the whole gate's.
    verdict: &'static str,
    /// Median over trials; null where the trials do not carry the figure.
    typical: Option<f64>,
    /// Its lower bound; null below the fewest trials.
    low: Option<f64>,
    /// Its upper bound.
    high: Option<f64>,
    /// Messages beyond the limit, where the trials are too few to decide by the typical one; else null.
    messages: Option<Messages>,
    /// The same as `typical` without the machine's part; null where the limit is not on all of the time.
    typical_own: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Messages {
    all: u64,
    beyond: u64,
    /// Runs of consecutive messages beyond the limit.
    bursts: u64,
    /// Bounds of the share beyond, bursts being the units.
    share_low: f64,
    share_high: f64,
    /// The share that may be beyond: 0.01 for a limit on p99.
    allowed: f64,
}

impl HeldLimit {
    fn of(finding: &LimitFinding) -> HeldLimit {
        let interval = finding.typical.as_ref().and_then(|typical| typical.interval);
        HeldLimit {
            name: name(finding),
            chain: finding.limit.chain.clone(),
            hop: finding.limit.hop.clone(),
            unit: if is_share(finding) { "share" } else { "ns" },
            limit: finding.limit.value,
            verdict: word(finding.verdict),
            typical: finding.typical.as_ref().map(|typical| typical.value),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            messages: finding.beyond.map(|beyond| Messages {
                all: beyond.bursts.samples,
                beyond: beyond.bursts.beyond,
                bursts: beyond.bursts.bursts,
                share_low: beyond.share.low,
                share_high: beyond.share.high,
                allowed: beyond.allowed,
            }),
            typical_own: finding.own.as_ref().map(|own| own.value),
        }
    }
}

/// What `taut gate --limits --format json` prints; the schema is `docs/schemas/limits.schema.json`.
pub fn limits_json(shown: &LimitsShown<'_>) -> serde_json::Value {
    let outcome = shown.outcome;
    let limits = Limits {
        verdict: word(outcome.verdict),
        subject: shown.subject,
        failed_runs: outcome.failures.failed,
        trials: outcome.trials,
        fewest_trials: outcome.fewest,
        limits: outcome.findings.iter().map(HeldLimit::of).collect(),
        notes: notes(shown),
    };
    envelope::json("limits", headline(shown), limits)
}

/// What is shown of limits.
pub fn limits_document(shown: &LimitsShown<'_>) -> Document {
    let mut table = Table::new(["figure", "limit", "typical trial", "95 % or more", "result"]);
    for finding in &shown.outcome.findings {
        let held = HeldLimit::of(finding);
        let number = |value: Option<f64>| value.map(|value| cell(is_share(finding), value));
        let bounds = number(held.low).zip(number(held.high));
        let row = table.row([
            Cell::text(held.name),
            number(Some(held.limit)).unwrap_or(Cell::Missing),
            number(held.typical).unwrap_or(Cell::Missing),
            bounds.map_or(Cell::Missing, |(low, high)| Cell::interval(low, high)),
            Cell::text(held.verdict),
        ]);
        row.tone = match finding.verdict {
            LimitResult::Broken => Tone::Bad,
            LimitResult::Open | LimitResult::Silent => Tone::Undecided,
            LimitResult::Kept | LimitResult::BrokenByMachine => Tone::Plain,
        };
    }
    Document {
        title: "limits".into(),
        measured: format!("{} · {}", shown.subject, quantity(shown.outcome.trials as u64, "trial")).into(),
        headline: headline(shown).into(),
        sections: vec![Section::new(1, "", vec![Block::Table(table)])],
        notes: notes(shown).into_iter().map(Text::from).collect(),
        reproduce: Vec::new(),
    }
}

/// What a reader must know.
fn notes(shown: &LimitsShown<'_>) -> Vec<String> {
    let left_out = |VoidTrial { trial, why }: &VoidTrial| format!("{trial} was left out: {why}");
    shown.outcome.void.iter().map(left_out).chain(shown.terms.notes.iter().cloned()).collect()
}

/// The verdict in one line.
pub(super) fn headline(shown: &LimitsShown<'_>) -> String {
    let findings = &shown.outcome.findings;
    let named = |verdict: LimitResult| {
        let names: Vec<String> = findings.iter().filter(|f| f.verdict == verdict).map(sentence).collect();
        names.join("; ")
    };
    let trials = quantity(shown.outcome.trials as u64, "trial");
    match shown.outcome.verdict {
        LimitResult::Broken => {
            let all = [failures(shown), Some(named(LimitResult::Broken)).filter(|text| !text.is_empty())];
            format!("OVER THE LIMIT: {}", all.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
        LimitResult::Open | LimitResult::Silent => {
            let of = |verdict: LimitResult| findings.iter().filter(move |finding| finding.verdict == verdict);
            let mut open: Vec<String> = Vec::new();
            for finding in of(LimitResult::Open).chain(of(LimitResult::Silent)) {
                // What most trials are void for is said once for all limits.
                let why = finding.void.map_or_else(|| sentence(finding), InvalidReason::of_trials);
                if !open.contains(&why) {
                    open.push(why);
                }
            }
            let are_void = findings.iter().any(|finding| finding.void.is_some());
            let few = match shown.outcome.trials < shown.outcome.fewest && !are_void {
                true => format!(
                    " (the typical trial takes at least {}, else many bursts of messages beyond the limit)",
                    shown.outcome.fewest
                ),
                false => String::new(),
            };
            let trials = if are_void { trials.replace("trial", "sound trial") } else { trials };
            format!("INCONCLUSIVE, exit code 4, after {trials}{few}: {}", open.join("; "))
        }
        LimitResult::BrokenByMachine => {
            format!("WITHIN LIMITS but for the machine: {}", named(LimitResult::BrokenByMachine))
        }
        LimitResult::Kept => {
            format!("WITHIN LIMITS: all {} kept, over {trials}", quantity(findings.len() as u64, "limit"))
        }
    }
}

/// A run that failed is over every limit.
pub(super) fn failures(shown: &LimitsShown<'_>) -> Option<String> {
    let failures = &shown.outcome.failures;
    let first = failures.first()?;
    Some(format!("{} of {} failed: {first}", failures.failed, quantity(failures.runs as u64, "run")))
}

/// "arm: whole way, total p99".
pub(super) fn name(finding: &LimitFinding) -> String {
    let what = match finding.limit.figure {
        LimitFigure::Missed => "missed deadlines".into(),
        LimitFigure::Dropped => "dropped messages".into(),
        LimitFigure::Time(side, statistic) => {
            let place = finding.limit.hop.as_deref().unwrap_or("whole way");
            format!("{place}, {} {}", side.word(), statistic.word())
        }
    };
    format!("{}: {what}", finding.limit.chain)
}

/// "13.66 % of 4,950 messages in 120 bursts, 95 % 11.2 % … 16.4 %; 1 % may be".
fn beyond(beyond: &Beyond) -> String {
    format!(
        "{} of {} are beyond it, in {} (by these {} … {}; {} may be)",
        rare(beyond.bursts.share()),
        quantity(beyond.bursts.samples, "message"),
        quantity(beyond.bursts.bursts, "burst"),
        rare(beyond.share.low),
        rare(beyond.share.high),
        rare(beyond.allowed)
    )
}

/// One limit in words.
pub(super) fn sentence(finding: &LimitFinding) -> String {
    let name = name(finding);
    let limit = number(finding, finding.limit.value);
    let typical = finding.typical.as_ref().map_or("–".into(), |typical| number(finding, typical.value));
    if let Some(reason) = finding.void {
        let figure = finding.typical.as_ref().map_or(String::new(), |_| format!(" {typical}, limit {limit}"));
        return format!("{name}{figure}: {}", reason.of_trials());
    }
    if let Some(messages) = finding.beyond.as_ref().map(beyond) {
        return match finding.verdict {
            LimitResult::Broken => format!("{name} {typical}, limit {limit}: {messages}"),
            LimitResult::BrokenByMachine => {
                format!("{name} {typical}, limit {limit}: {messages}; not so without the machine's part")
            }
            LimitResult::Kept => format!("{name} {typical}, within {limit}: {messages}"),
            _ => format!("{name} {typical}, limit {limit}: {messages}; run for longer, until there are more bursts"),
        };
    }
    match finding.verdict {
        LimitResult::Broken => format!("{name} {typical}, limit {limit}"),
        LimitResult::BrokenByMachine => {
            let own = finding.own.as_ref().map_or("–".into(), |own| number(finding, own.value));
            format!("{name} {typical}, limit {limit}, but {own} without the machine's part")
        }
        LimitResult::Silent => format!("{name} is not carried by the trials: run longer ones"),
        LimitResult::Open => {
            format!("{name} {typical}, limit {limit}: the bounds of the typical trial hold the limit, or it has none")
        }
        LimitResult::Kept => format!("{name} {typical}, within {limit}"),
    }
}

fn is_share(finding: &LimitFinding) -> bool {
    !matches!(finding.limit.figure, LimitFigure::Time(..))
}

fn number(finding: &LimitFinding, value: f64) -> String {
    if is_share(finding) { rare(value) } else { scaled(value) }
}

fn word(verdict: LimitResult) -> &'static str {
    match verdict {
        LimitResult::Kept => "kept",
        LimitResult::Broken => "broken",
        LimitResult::BrokenByMachine => "broken by the machine",
        LimitResult::Open => "not enough evidence",
        LimitResult::Silent => "not carried",
    }
}

#[cfg(test)]
mod tests {
    use taut_document::markdown;
    use taut_gate::{Limit, Side, Statistic, Trial, Void, judge_limits};

    use super::*;
    use crate::{envelope::Envelope, gate::limits_junit};

    /// Two limits, and so many trials, all but the first `sound` of which are void for this.
    fn outcome(trials: usize, sound: usize, why: &Void) -> LimitsOutcome {
        let limit = |statistic| Limit {
            chain: "arm".into(),
            hop: None,
            figure: LimitFigure::Time(Side::Total, statistic),
            value: 2e6,
        };
        let trial = |at: usize| Trial {
            name: format!("run {at}"),
            chain: "arm".into(),
            void: (at >= sound).then(|| why.clone()),
            ..Trial::default()
        };
        let trials: Vec<Trial> = (0..trials).map(trial).collect();
        judge_limits(&[limit(Statistic::P50), limit(Statistic::P99)], &trials, 1).unwrap()
    }

    #[test]
    fn every_form_says_what_the_trials_are_void_for_and_does_not_ask_for_longer_ones() {
        let stalled = Void::Stalled { stalled: 0.3 };
        let lost = Void::LostStamps { lost: 9, all: 10 };
        for (trials, sound, why, said) in [
            (8, 0, &stalled, "the machine stalled in 8 of 8 trials, by the probe beside the program: free it of"),
            (8, 6, &stalled, "the machine stalled in 2 of 8 trials, by the probe beside the program: free it of"),
            (8, 0, &lost, "stamps or kernel events are missing in 8 of 8 trials: record less"),
        ] {
            let outcome = outcome(trials, sound, why);
            let shown = LimitsShown { subject: "./loop", outcome: &outcome, terms: Terms::default() };
            let headline = headline(&shown);
            assert!(
                headline.starts_with(&format!("INCONCLUSIVE, exit code 4, after {sound} sound trials: ")),
                "{headline}"
            );
            assert_eq!(headline.matches(said).count(), 1, "{headline}");
            let (markdown, junit) = (markdown(&limits_document(&shown)), limits_junit(&shown));
            assert!(markdown.contains(said) && junit.contains(said), "{markdown}{junit}");
            assert_eq!(junit.matches("<failure").count(), 2, "{junit}");
            assert!(markdown.contains(&format!("> run {sound} was left out: {why}")), "{markdown}");
            for text in [headline, markdown, junit] {
                assert!(!text.contains("run longer") && !text.contains("not carried by"), "{text}");
            }
        }
        // A few of many are not the reason.
        let outcome = outcome(12, 11, &stalled);
        let shown = LimitsShown { subject: "./loop", outcome: &outcome, terms: Terms::default() };
        assert!(headline(&shown).contains("is not carried by the trials: run longer ones"), "{}", headline(&shown));
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(
            &schemars::schema_for!(Envelope<Limits<'_>>).to_value(),
            "schemas/limits.schema.json",
        );
    }
}
