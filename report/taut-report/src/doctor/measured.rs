//! What a remedy did, for the terminal.

use taut_doctor::{Measured, Ratio};
use taut_stats::Distribution;

use crate::{
    Style,
    console::{indent, table, wrap},
    words,
};

/// Lateness without and with a remedy, and what may be said of it.
pub fn doctor_measured_terminal(measured: &Measured, style: Style) -> String {
    let cpus = match measured.cpus.as_slice() {
        [] => "wherever the kernel put it".to_owned(),
        cpus => format!("on CPU {}", taut_doctor::cpus::text(cpus)),
    };
    let head = format!(
        "{} rounds without and with, in turn · a wakeup of a SCHED_{} thread every {} {cpus}",
        measured.rounds.len(),
        measured.policy.to_uppercase(),
        words::duration(measured.interval_ns),
    );
    let mut table = table(&["late (µs)", "n", "p50", "p90", "p99", "p99.9", "max"]);
    for (name, d) in [("without", &measured.before), ("with", &measured.after)] {
        let mut row = vec![name.to_owned(), words::count(d.n)];
        row.extend(figures(d));
        table.add_row(row);
    }
    let mut out = format!("{}: {}\n{}\n\n", style.bold(measured.id), measured.remedy, style.dim(&head));
    out += &indent(&table);
    out += "\n";
    for (name, ratio) in [("p50", measured.p50()), ("p99", measured.p99())] {
        out += &format!("  {}\n", wrap(&sentence(name, ratio), 96).replace('\n', "\n  "));
    }
    if measured.interrupted {
        out += "  Stopped early: the last round is left out.\n";
    }
    out
}

fn figures(d: &Distribution) -> [String; 5] {
    [d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(words::microseconds)
}

fn sentence(name: &str, ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else { return format!("{name}: no round was finished") };
    let Some((low, high)) = ratio.interval else {
        return format!("{name} {}: too few rounds to tell (six carry an interval)", words::ratio(ratio.median));
    };
    let verdict = match (ratio.helps(), ratio.harms()) {
        (true, _) => "it helps here",
        (_, true) => "it makes it worse here",
        _ => "no difference shown",
    };
    format!(
        "{name} {} with it (95 % interval {} to {}): {verdict}",
        words::ratio(ratio.median),
        words::ratio(low),
        words::ratio(high),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn what_a_remedy_did() {
        insta::assert_snapshot!(doctor_measured_terminal(&sample::measured(), Style::default()));
    }

    #[test]
    fn few_rounds_carry_no_verdict() {
        let mut measured = sample::measured();
        measured.rounds.truncate(5);
        assert!(doctor_measured_terminal(&measured, Style::default()).contains("too few rounds"));
        measured.rounds.clear();
        assert!(doctor_measured_terminal(&measured, Style::default()).contains("no round"));
    }
}
