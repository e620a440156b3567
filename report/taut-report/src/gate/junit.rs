//! The JUnit form of a gate: a test case for each figure that decides, and one for the verdict.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use taut_document::Cell;
use taut_gate::LimitResult;
use taut_stats::compare::Verdict;

use super::{
    GateShown, LimitsShown,
    cells::{change, number},
    figure::{GateFigure, deciding},
    limits, sentences,
};

/// JUnit XML, as the test reports of GitLab, Jenkins and GitHub actions read it.
pub fn gate_junit(shown: &GateShown<'_>) -> String {
    let mut suite = TestSuite::new("taut gate");
    let inconclusive = match (&shown.outcome.verdict, shown.terms.inconclusive_fails) {
        (Verdict::Worse, _) => Some(NonSuccessKind::Failure),
        (Verdict::Invalid { .. }, _) | (Verdict::NotEnoughEvidence { .. }, true) => Some(NonSuccessKind::Failure),
        _ => None,
    };
    let is_open = matches!(shown.outcome.verdict, Verdict::NotEnoughEvidence { .. } | Verdict::Invalid { .. });
    suite.add_test_case(case("verdict", inconclusive, is_open, &sentences::headline(shown)));
    if let Some(failed) = sentences::failures(shown.outcome) {
        let fails = shown.outcome.failures.is_worse.then_some(NonSuccessKind::Failure);
        let text =
            [Some(failed), sentences::last_words(shown.outcome)].into_iter().flatten().collect::<Vec<_>>().join("\n");
        suite.add_test_case(case("failed runs", fails, false, &text));
    }
    for of in deciding(shown) {
        let failed = of.is_worse().then_some(NonSuccessKind::Failure);
        let is_open = ["open", "invalid"].contains(&of.short());
        suite.add_test_case(case(&of.figure, failed, is_open, &in_words(&of)));
    }
    written(suite)
}

/// "41.9 µs → 50.3 µs, +20.2 % (+18.5 % … +20.9 %): worse".
fn in_words(of: &GateFigure) -> String {
    let number = |value: Option<f64>| value.map_or(Cell::Missing, |value| number(of.is_share(), value)).alone();
    let change = |value: Option<f64>| value.map_or(Cell::Missing, |value| change(of.is_share(), value)).alone();
    let bounds = match of.change_low.is_some() {
        true => format!("{} … {}", change(of.change_low), change(of.change_high)),
        false => change(None),
    };
    format!("{} → {}, {} ({bounds}): {}", number(of.a), number(of.b), change(of.change), of.short())
}

/// The same of limits.
pub fn limits_junit(shown: &LimitsShown<'_>) -> String {
    let mut suite = TestSuite::new("taut gate");
    if let Some(failed) = limits::failures(shown) {
        suite.add_test_case(case("failed runs", Some(NonSuccessKind::Failure), false, &failed));
    }
    for finding in &shown.outcome.findings {
        let (name, text) = (limits::name(finding), limits::sentence(finding));
        let is_open = matches!(finding.verdict, LimitResult::Open | LimitResult::Silent);
        let fails = finding.verdict == LimitResult::Broken || is_open;
        suite.add_test_case(case(&name, fails.then_some(NonSuccessKind::Failure), is_open, &text));
    }
    written(suite)
}

fn case(name: &str, failed: Option<NonSuccessKind>, is_open: bool, text: &str) -> TestCase {
    let status = match failed {
        Some(kind) => {
            let mut status = TestCaseStatus::non_success(kind);
            status.set_message(text);
            status
        }
        // No verdict is neither passed nor failed.
        None if is_open => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(text);
            status
        }
        None => TestCaseStatus::success(),
    };
    let mut case = TestCase::new(name, status);
    case.set_classname("taut.gate").set_system_out(text);
    case
}

fn written(mut suite: TestSuite) -> String {
    suite.set_time(std::time::Duration::ZERO);
    let mut report = Report::new("taut gate");
    report.add_test_suite(suite);
    report.to_string().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn junit_counts_what_failed() {
        let outcomes = sample::outcomes();
        let xml = gate_junit(&sample::shown(&outcomes[0].1));
        assert!(xml.contains("<failure") && xml.contains("name=\"read → plan, work p50\""), "{xml}");
        let same = gate_junit(&sample::shown(&outcomes[1].1));
        assert!(same.contains("failures=\"0\"") && !same.contains("<failure"), "{same}");
    }

    #[test]
    fn names_are_escaped() {
        let (_, mut outcome) = sample::outcomes().remove(0);
        outcome.hops[0].from = "<a&\"b\">".into();
        let xml = gate_junit(&sample::shown(&outcome));
        assert!(xml.contains("&lt;a&amp;") && !xml.contains("<a&"), "{xml}");
    }
}
