//! Limits for people: which are kept, and which are broken, by the program or by the machine.

use taut_gate::{Beyond, LimitFigure, LimitFinding, LimitResult, LimitsOutcome};
use taut_stats::compare::Typical;

use super::{Terms, markdown};
use crate::{
    Style,
    console::{indent, table, wrap},
    words,
};

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

const HEADER: [&str; 5] = ["figure", "limit", "typical trial", "95 % or more", "result"];

/// The verdict in one line.
pub(super) fn headline(shown: &LimitsShown<'_>) -> String {
    let findings = &shown.outcome.findings;
    let named = |verdict: LimitResult| {
        let names: Vec<String> = findings.iter().filter(|f| f.verdict == verdict).map(sentence).collect();
        names.join("; ")
    };
    let trials = words::quantity(shown.outcome.trials as u64, "trial");
    match shown.outcome.verdict {
        LimitResult::Broken => {
            let all = [failures(shown), Some(named(LimitResult::Broken)).filter(|text| !text.is_empty())];
            format!("OVER THE LIMIT: {}", all.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
        LimitResult::Open | LimitResult::Silent => {
            let open = [named(LimitResult::Open), named(LimitResult::Silent)];
            let open: Vec<String> = open.into_iter().filter(|text| !text.is_empty()).collect();
            let few = match shown.outcome.trials < shown.outcome.fewest {
                true => format!(
                    " (the typical trial takes at least {}, else many bursts of messages beyond the limit)",
                    shown.outcome.fewest
                ),
                false => String::new(),
            };
            format!("INCONCLUSIVE, exit code 4, after {trials}{few}: {}", open.join("; "))
        }
        LimitResult::BrokenByMachine => {
            format!("WITHIN LIMITS but for the machine: {}", named(LimitResult::BrokenByMachine))
        }
        LimitResult::Kept => {
            format!("WITHIN LIMITS: all {} kept, over {trials}", words::quantity(findings.len() as u64, "limit"))
        }
    }
}

/// A run that failed is over every limit.
pub(super) fn failures(shown: &LimitsShown<'_>) -> Option<String> {
    let failures = &shown.outcome.failures;
    let first = failures.first.as_ref()?;
    Some(format!("{} of {} failed: {first}", failures.failed, words::quantity(failures.runs as u64, "run")))
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
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    format!(
        "{} of {} are beyond it, in {} (by these {} … {}; {} may be)",
        percent(beyond.bursts.share()),
        words::quantity(beyond.bursts.samples, "message"),
        words::quantity(beyond.bursts.bursts, "burst"),
        percent(beyond.share.low),
        percent(beyond.share.high),
        percent(beyond.allowed)
    )
}

/// One limit in words.
pub(super) fn sentence(finding: &LimitFinding) -> String {
    let name = name(finding);
    let limit = number(finding, finding.limit.value);
    let typical = finding.typical.as_ref().map_or("–".into(), |typical| number(finding, typical.value));
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

fn number(finding: &LimitFinding, value: f64) -> String {
    match finding.limit.figure {
        LimitFigure::Time(..) => words::scaled(value),
        _ => format!("{:.2} %", value * 100.0),
    }
}

pub(super) fn word(verdict: LimitResult) -> &'static str {
    match verdict {
        LimitResult::Kept => "kept",
        LimitResult::Broken => "broken",
        LimitResult::BrokenByMachine => "broken by the machine",
        LimitResult::Open => "not enough evidence",
        LimitResult::Silent => "not carried",
    }
}

fn rows(shown: &LimitsShown<'_>) -> Vec<[String; 5]> {
    let bounds = |finding: &LimitFinding, typical: &Typical| {
        let interval = typical.interval?;
        Some(format!("{} … {}", number(finding, interval.low), number(finding, interval.high)))
    };
    let row = |finding: &LimitFinding| {
        [
            name(finding),
            number(finding, finding.limit.value),
            finding.typical.as_ref().map_or("–".into(), |typical| number(finding, typical.value)),
            finding.typical.as_ref().and_then(|typical| bounds(finding, typical)).unwrap_or_else(|| "–".into()),
            word(finding.verdict).to_owned(),
        ]
    };
    shown.outcome.findings.iter().map(row).collect()
}

/// What `taut gate --limits` prints.
pub fn limits_terminal(shown: &LimitsShown<'_>, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&wrap(&headline(shown), 98)));
    let about = format!("{} · {}", shown.subject, words::quantity(shown.outcome.trials as u64, "trial"));
    out += &format!("{}\n", style.dim(&wrap(&about, 98)));
    for note in shown.terms.notes {
        out += &format!("{} {}\n", style.dim("note:"), wrap(note, 92).replace('\n', "\n      "));
    }
    let mut all = table(&HEADER);
    rows(shown).into_iter().for_each(|row| {
        all.add_row(row);
    });
    out + &format!("\n{}", indent(&all))
}

/// The same for a pull request.
pub fn limits_markdown(shown: &LimitsShown<'_>) -> String {
    let mut out = format!("{}\n### taut gate: {}\n\n", markdown::MARKER, markdown::escape(&headline(shown)));
    out += &markdown::head(&HEADER);
    rows(shown).iter().for_each(|row| out += &markdown::line(row.iter().map(String::as_str)));
    for note in shown.terms.notes {
        out += &format!("\n> {}\n", markdown::escape(note));
    }
    out
}
