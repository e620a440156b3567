//! What a remedy did.

use taut_doctor::{Measured, Ratio};
use taut_document::{Block, Cell, Document, Section, Table};

use crate::words;

/// Lateness without and with a remedy, and what may be said of it.
pub fn doctor_measured_document(measured: &Measured) -> Document {
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
    let mut table = Table::new(["late", "n", "p50", "p90", "p99", "p99.9", "max"]);
    for (name, d) in [("without", &measured.before), ("with", &measured.after)] {
        let times = [d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(Cell::time);
        table.add([Cell::text(name), Cell::Count(d.n)].into_iter().chain(times));
    }
    let early = measured.interrupted.then(|| "Stopped early: the last round is left out.".to_owned());
    let said = [sentence("p50", measured.p50()), sentence("p99", measured.p99())].into_iter().chain(early);
    let blocks = [Block::Table(table)].into_iter().chain(said.map(|text| Block::Text(text.into())));
    Document {
        title: format!("{}: {}", measured.id, measured.remedy),
        measured: head.into(),
        sections: vec![Section::new(1, "", blocks.collect())],
        ..Document::default()
    }
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
    use taut_document::{Style, terminal};

    use super::*;
    use crate::doctor::sample;

    fn plain(measured: &Measured) -> String {
        terminal(&doctor_measured_document(measured), Style::default())
    }

    #[test]
    fn what_a_remedy_did() {
        insta::assert_snapshot!(plain(&sample::measured()));
    }

    #[test]
    fn few_rounds_carry_no_verdict() {
        let mut measured = sample::measured();
        measured.rounds.truncate(5);
        assert!(plain(&measured).contains("too few rounds"));
        measured.rounds.clear();
        assert!(plain(&measured).contains("no round"));
    }
}
