//! What is said of a lab's figures: once, for all forms.

use taut_lab::{
    Better, Bound, Broken, Criticality, Difference, Edge, MetricFigures, Outcome, Proportion, Results, Status,
};

use crate::words::quantity;

/// CPUs of a process that are named.
const CPUS: usize = 3;

/// What a busy reader needs of a run.
pub(super) fn headline(results: &Results) -> String {
    let mut said = Vec::new();
    for scenario in results.scenarios.iter().filter(|scenario| scenario.name != results.baseline) {
        let worse = |metric: &&MetricFigures| is_worse(metric);
        let metrics: Vec<String> = scenario
            .metrics
            .iter()
            .filter(worse)
            .filter_map(|metric| Some(format!("{} {}", metric.name, difference(metric.difference.as_ref()?, metric))))
            .collect();
        if !metrics.is_empty() {
            said.push(format!("{} is worse than {}: {}", scenario.name, results.baseline, metrics.join("; ")));
        }
        if let Some(success) = scenario.success_difference.filter(|d| d.p < 0.05 && d.only_baseline > d.only_here) {
            said.push(format!(
                "{} fails where {} does not, in {} of {} trials (p = {:.2})",
                scenario.name, results.baseline, success.only_baseline, success.pairs, success.p
            ));
        }
    }
    let valid: u32 = results.scenarios.iter().map(|scenario| scenario.success.n).sum();
    let name = &results.baseline;
    let baseline = results.scenarios.iter().find(|scenario| scenario.name == *name).map(|scenario| scenario.success);
    let fails = baseline.filter(|success| success.k < success.n);
    let fails = fails.map(|success| {
        format!("The baseline {name} itself failed in {} of {} trials", success.n - success.k, success.n)
    });
    let bounded = results.scenarios.iter().flat_map(|scenario| &scenario.metrics).filter_map(|m| m.difference.as_ref());
    let is_bounded = bounded.into_iter().any(|difference| difference.interval.is_some());
    let valid = quantity(u64::from(valid), "valid trial");
    match (said.is_empty(), results.scenarios.len()) {
        _ if results.scenarios.iter().all(|scenario| scenario.success.n == 0) => {
            "No trial is valid: nothing can be said.".into()
        }
        (true, 1) => format!("{valid} of one scenario."),
        (true, _) => match (fails, is_bounded) {
            (Some(fails), _) => format!(
                "{fails}: make it succeed first, since only what it does better can be lost. No difference is proven in \
                 {valid}."
            ),
            (None, false) => {
                format!("{valid} are too few to prove a difference: that takes 6 starts of each scenario.")
            }
            (None, true) => format!("Nothing is proven worse than {name} in {valid}."),
        },
        (false, _) => format!("{}.", said.into_iter().chain(fails).collect::<Vec<_>>().join(". ")),
    }
}

/// What a search found, in a sentence.
pub(super) fn broken(broken: &Broken) -> String {
    let asked = &broken.asked;
    let at = |edge: &Edge| {
        let wanted = edge.cpus_wanted.filter(|_| broken.unit == "CPUs");
        let wanted = wanted.map_or(String::new(), |wanted| format!(", {} wanted", number(wanted)));
        let reached = |a: f64| format!(" ({} {} reached{wanted})", number(a), broken.unit);
        let achieved = edge.achieved.map(reached).unwrap_or_default();
        format!("{} {}{achieved}, {}", asked.vary, number(edge.value), proportion(&edge.success))
    };
    let chance = format!("{:.0} %", asked.success * 100.0);
    let trials = quantity(u64::from(broken.trials), "trial");
    let name = &asked.scenario;
    let found = match (broken.outcome, &broken.fine, &broken.broken) {
        (Outcome::Between, Some(fine), Some(bad)) => {
            let reached = match broken.threshold {
                (Some(low), Some(high)) => {
                    format!(" between {} and {} {}, that is", number(low), number(high), broken.unit)
                }
                _ => String::new(),
            };
            format!("{name} falls below {chance}{reached} between {} and {}", at(fine), at(bad))
        }
        (Outcome::NeverBroke, Some(fine), _) => format!("{name} does not fall below {chance} up to {}", at(fine)),
        (Outcome::BrokeAtOnce, _, Some(bad)) => {
            format!("{name} is below {chance} already at the lightest load, {}", at(bad))
        }
        (_, fine, bad) => {
            let end = |edge: &Option<Edge>, word: &str| edge.as_ref().map(|edge| format!("{word} at {}", at(edge)));
            let known: Vec<String> = [end(fine, "fine"), end(bad, "broken")].into_iter().flatten().collect();
            let known = if known.is_empty() { "nothing is proven".into() } else { known.join(", ") };
            format!("Where {name} falls below {chance} stays open: {known}")
        }
    };
    let why = broken.why.as_ref().map(|why| format!(" {why}.")).unwrap_or_default();
    let invalid = if broken.invalid > 0 { format!(", {} invalid", broken.invalid) } else { String::new() };
    format!("{found} ({trials}{invalid}).{why}")
}

/// What the failed trials of a metric reported: their numbers are in no other figure.
pub(super) fn failed(scenario: &str, metric: &MetricFigures) -> Option<String> {
    // How long a failed trial took is in the table of the trials' ends.
    if metric.failed == 0 || metric.name == "wall_s" {
        return None;
    }
    let which = format!("{scenario}: {} failed", quantity(metric.failed as u64, "trial"));
    Some(match metric.failed_reported {
        None => format!("{which} without {}", metric.name),
        Some(reported) => {
            let unit = if metric.unit.is_empty() { String::new() } else { format!(" {}", metric.unit) };
            format!("{which}, {} of them with {} {}{unit} (median)", reported.n, metric.name, number(reported.median))
        }
    })
}

/// Whether the interval of the difference lies on the bad side as a whole.
pub(super) fn is_worse(metric: &MetricFigures) -> bool {
    let Some(&Difference { ratio, interval: Some((best, _)), .. }) = metric.difference.as_ref() else { return false };
    let same = if ratio { 1.0 } else { 0.0 };
    match (best, metric.better) {
        (Bound::Failed, _) => true,
        (Bound::FailedLess, _) => false,
        (Bound::Number(best), Better::Lower) => best > same,
        (Bound::Number(best), Better::Higher) => best < same,
    }
}

/// "× 2.04 (2.01 … 2.1)".
pub(super) fn difference(difference: &Difference, metric: &MetricFigures) -> String {
    let one = |bound: Bound| match bound {
        Bound::Number(value) if difference.ratio => format!("× {}", number(value)),
        Bound::Number(value) => {
            format!("{}{} {}", if value < 0.0 { "−" } else { "+" }, number(value.abs()), metric.unit)
                .trim_end()
                .to_owned()
        }
        Bound::Failed => "failed".into(),
        Bound::FailedLess => "failed less".into(),
    };
    let bare = |bound: Bound| one(bound).trim_start_matches("× ").to_owned();
    let interval = difference.interval.map(|(low, high)| format!(" ({} … {})", bare(low), bare(high)));
    format!("{}{}", one(difference.estimate), interval.unwrap_or_default())
}

/// "18 of 20, 68 … 99 %".
pub(super) fn proportion(p: &Proportion) -> String {
    if p.n == 0 {
        return "0 of 0".into();
    }
    format!("{} of {}, {:.0} … {:.0} %", p.k, p.n, p.low * 100.0, p.high * 100.0)
}

pub(super) fn criticality(criticality: Criticality) -> &'static str {
    match criticality {
        Criticality::Hard => "hard",
        Criticality::Firm => "firm",
        Criticality::Soft => "soft",
    }
}

/// Four significant digits, without an exponent where people do without.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = if size == 0.0 { 0 } else { (3 - size.log10().floor() as i32).clamp(0, 8) as usize };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// "CPU 1 75 %, CPU 0 25 %", the most at first; "–" where nobody knows.
pub(super) fn shares(shares: &std::collections::BTreeMap<String, f64>) -> String {
    let mut all: Vec<(&String, &f64)> = shares.iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(a.1));
    let one = |(cpu, share): &(&String, &f64)| format!("CPU {cpu} {:.0} %", **share * 100.0);
    let text = all.iter().take(CPUS).map(one).collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => "–".into(),
        n if n > CPUS => format!("{text}, …"),
        _ => text,
    }
}

/// "28 success, 1 planning_failed, 1 timeout"; a count stays on its word's line.
pub(super) fn ends(trials: &std::collections::BTreeMap<Status, u32>) -> String {
    let some = trials.iter().filter(|(_, n)| **n > 0).map(|(status, n)| format!("{n}\u{a0}{}", status.word()));
    let text = some.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_no_more() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.123456, "0.1235"),
            (12.3456, "12.35"),
            (1234.56, "1235"),
            (20_000.0, "20000"),
            (1e-9, "1.000e-9"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
