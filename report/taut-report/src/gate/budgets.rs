//! Budgets for people: which are kept, which are broken, and by whom.

use taut_gate::{Beyond, BudgetFigure, BudgetFinding, BudgetVerdict, Budgeted};
use taut_stats::compare::Typical;

use super::{Terms, markdown};
use crate::{
    Style,
    terminal::{indent, table, wrap},
    words,
};

/// Budgets with what is to be said about them.
#[derive(Clone, Copy, Debug)]
pub struct BudgetsShown<'a> {
    /// What was held against them: a command, a file.
    pub subject: &'a str,
    /// What was found.
    pub budgeted: &'a Budgeted,
    /// What else is said.
    pub terms: Terms<'a>,
}

const HEADER: [&str; 5] = ["budget", "limit", "typical trial", "95 % or more", "verdict"];

/// The verdict in one line.
pub(super) fn headline(shown: &BudgetsShown<'_>) -> String {
    let findings = &shown.budgeted.findings;
    let named = |verdict: BudgetVerdict| {
        let names: Vec<String> = findings.iter().filter(|f| f.verdict == verdict).map(sentence).collect();
        names.join("; ")
    };
    let trials = words::quantity(shown.budgeted.trials as u64, "trial");
    match shown.budgeted.verdict {
        BudgetVerdict::Broken => {
            let all = [failures(shown), Some(named(BudgetVerdict::Broken)).filter(|text| !text.is_empty())];
            format!("OVER BUDGET: {}", all.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
        BudgetVerdict::Open | BudgetVerdict::Silent => {
            let open = [named(BudgetVerdict::Open), named(BudgetVerdict::Silent)];
            let open: Vec<String> = open.into_iter().filter(|text| !text.is_empty()).collect();
            let few = match shown.budgeted.trials < shown.budgeted.fewest {
                true => format!(
                    " (the typical trial takes at least {}, else many bursts of messages beyond the limit)",
                    shown.budgeted.fewest
                ),
                false => String::new(),
            };
            format!("INCONCLUSIVE, exit code 4, after {trials}{few}: {}", open.join("; "))
        }
        BudgetVerdict::BrokenByMachine => {
            format!("WITHIN BUDGET but for the machine: {}", named(BudgetVerdict::BrokenByMachine))
        }
        BudgetVerdict::Kept => {
            format!("WITHIN BUDGET: all {} kept, over {trials}", words::quantity(findings.len() as u64, "limit"))
        }
    }
}

/// A run that failed is over every budget.
pub(super) fn failures(shown: &BudgetsShown<'_>) -> Option<String> {
    let failures = &shown.budgeted.failures;
    let first = failures.first.as_ref()?;
    Some(format!("{} of {} failed: {first}", failures.failed, words::quantity(failures.runs as u64, "run")))
}

/// "arm: whole way, total p99".
pub(super) fn name(finding: &BudgetFinding) -> String {
    let what = match finding.budget.figure {
        BudgetFigure::Missed => "missed deadlines".into(),
        BudgetFigure::Dropped => "dropped messages".into(),
        BudgetFigure::Time(side, statistic) => {
            let place = finding.budget.hop.as_deref().unwrap_or("whole way");
            format!("{place}, {} {}", side.word(), statistic.word())
        }
    };
    format!("{}: {what}", finding.budget.chain)
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

/// One budget in words.
pub(super) fn sentence(finding: &BudgetFinding) -> String {
    let name = name(finding);
    let limit = number(finding, finding.budget.limit);
    let typical = finding.typical.as_ref().map_or("–".into(), |typical| number(finding, typical.value));
    if let Some(messages) = finding.beyond.as_ref().map(beyond) {
        return match finding.verdict {
            BudgetVerdict::Broken => format!("{name} {typical}, limit {limit}: {messages}"),
            BudgetVerdict::BrokenByMachine => {
                format!("{name} {typical}, limit {limit}: {messages}; not so without the machine's part")
            }
            BudgetVerdict::Kept => format!("{name} {typical}, within {limit}: {messages}"),
            _ => format!("{name} {typical}, limit {limit}: {messages}; run for longer, until there are more bursts"),
        };
    }
    match finding.verdict {
        BudgetVerdict::Broken => format!("{name} {typical}, limit {limit}"),
        BudgetVerdict::BrokenByMachine => {
            let own = finding.own.as_ref().map_or("–".into(), |own| number(finding, own.value));
            format!("{name} {typical}, limit {limit}, but {own} without the machine's part")
        }
        BudgetVerdict::Silent => format!("{name} is not carried by the trials: run longer ones"),
        BudgetVerdict::Open => {
            format!("{name} {typical}, limit {limit}: the bounds of the typical trial hold the limit, or it has none")
        }
        BudgetVerdict::Kept => format!("{name} {typical}, within {limit}"),
    }
}

fn number(finding: &BudgetFinding, value: f64) -> String {
    match finding.budget.figure {
        BudgetFigure::Time(..) => words::scaled(value),
        _ => format!("{:.2} %", value * 100.0),
    }
}

pub(super) fn word(verdict: BudgetVerdict) -> &'static str {
    match verdict {
        BudgetVerdict::Kept => "kept",
        BudgetVerdict::Broken => "broken",
        BudgetVerdict::BrokenByMachine => "broken by the machine",
        BudgetVerdict::Open => "not enough evidence",
        BudgetVerdict::Silent => "not carried",
    }
}

fn rows(shown: &BudgetsShown<'_>) -> Vec<[String; 5]> {
    let bounds = |finding: &BudgetFinding, typical: &Typical| {
        let interval = typical.interval?;
        Some(format!("{} … {}", number(finding, interval.low), number(finding, interval.high)))
    };
    let row = |finding: &BudgetFinding| {
        [
            name(finding),
            number(finding, finding.budget.limit),
            finding.typical.as_ref().map_or("–".into(), |typical| number(finding, typical.value)),
            finding.typical.as_ref().and_then(|typical| bounds(finding, typical)).unwrap_or_else(|| "–".into()),
            word(finding.verdict).to_owned(),
        ]
    };
    shown.budgeted.findings.iter().map(row).collect()
}

/// What `taut gate --budgets` prints.
pub fn budgets_terminal(shown: &BudgetsShown<'_>, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&wrap(&headline(shown), 98)));
    let about = format!("{} · {}", shown.subject, words::quantity(shown.budgeted.trials as u64, "trial"));
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
pub fn budgets_markdown(shown: &BudgetsShown<'_>) -> String {
    let mut out = format!("{}\n### taut gate: {}\n\n", markdown::MARKER, markdown::escape(&headline(shown)));
    out += &markdown::head(&HEADER);
    rows(shown).iter().for_each(|row| out += &markdown::line(row.iter().map(String::as_str)));
    for note in shown.terms.notes {
        out += &format!("\n> {}\n", markdown::escape(note));
    }
    out
}
