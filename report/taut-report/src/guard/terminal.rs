//! The terminal form of a replay: sentences first, then tables that fit 100 columns.

use taut_replay::{Judgement, Run};

use super::{GuardShown, sentences};
use crate::{
    Style,
    console::{indent, table, wrap},
    words::{count, duration, milliseconds},
};

/// Columns of a sentence.
const WIDTH: usize = 98;
/// Trips told of each run; all are in the JSON, up to a hundred.
const TRIPS_TOLD: usize = 3;
/// Trips of ours that are told.
const OURS_TOLD: usize = 20;

/// What `taut guard replay` prints.
pub fn guard_terminal(shown: &GuardShown<'_>, style: Style) -> String {
    let replay = shown.replay;
    let mut out = format!("{}\n", style.bold(&wrap(&sentences::headline(replay), WIDTH)));
    let mut about = format!(
        "{}, stream {:?}: {} frames, the longest time between two {}.",
        shown.run,
        replay.stream,
        count(replay.frames as u64),
        duration(replay.longest_gap_ns)
    );
    if replay.incomplete > 0 {
        about += &format!(" {} frames lost a value and are left out.", count(replay.incomplete));
    }
    out += &format!("{}\n", style.dim(&wrap(&about, WIDTH)));
    for damage in shown.damage {
        out += &format!("{}\n", wrap(&format!("Damaged: {damage}."), WIDTH));
    }
    out += &format!("\n{}\n{}", style.bold("What would have tripped"), overview(shown));
    out += &format!("\n{}\n", style.bold("Why"));
    for (n, run) in replay.runs.iter().enumerate() {
        out += &why(run, if n == 0 { OURS_TOLD } else { TRIPS_TOLD }, replay.start_ns, style);
    }
    let counted: Vec<String> =
        replay.runs[0].counters.iter().map(|(name, n)| format!("{name} {}", count(*n))).collect();
    let counted = format!("The guard counted: {}.", counted.join(", "));
    out += &format!("\n{}\n", style.dim(&wrap(&counted, WIDTH)));
    out
}

fn overview(shown: &GuardShown<'_>) -> String {
    let replay = shown.replay;
    let judged = replay.truth.is_some();
    let mut head = vec!["", "speed", "stale", "fault", "frames", "largest"];
    if judged {
        head.extend(["false", "found", "missed", "p50 ms", "max ms"]);
    }
    let mut table = table(&head);
    for run in &replay.runs {
        let mut row = vec![wrap(&run.name, 24), count(run.overspeed_trips as u64)];
        row.extend(if run.is_guard {
            [count(run.stale_trips as u64), count(run.fault_trips as u64)]
        } else {
            ["–".into(), "–".into()]
        });
        row.extend([count(run.frames_over), sentences::share(run.largest)]);
        if judged {
            row.extend(judgement(&run.judgement.clone().unwrap_or_default()));
        }
        table.add_row(row);
    }
    let below = "Trips, frames after which the speed stood above the limit, and the largest speed as a share of it. One trip of a \
                 kind a second is counted at most. found, missed: true overspeeds; p50, max: from their \
                 beginning to the trip.";
    format!("{} {}\n", indent(&table), wrap(below, WIDTH - 1).replace('\n', "\n "))
}

fn judgement(judgement: &Judgement) -> [String; 5] {
    let mut delays: Vec<u64> = judgement.detected.iter().map(|detected| detected.after_ns).collect();
    delays.sort_unstable();
    [
        count(judgement.false_trips as u64),
        count(judgement.detected.len() as u64),
        count(judgement.missed as u64),
        milliseconds(delays.get(delays.len().saturating_sub(1) / 2).copied()),
        milliseconds(delays.last().copied()),
    ]
}

fn why(run: &Run, told: usize, start_ns: u64, style: Style) -> String {
    if run.trips.is_empty() {
        return String::new();
    }
    let mut out = format!(" {}\n", style.bold(&run.name));
    for found in run.trips.iter().take(told) {
        out += &format!("   {}\n", wrap(&sentences::trip(found, start_ns), WIDTH - 5).replace('\n', "\n     "));
    }
    let rest = sentences::trips(run).saturating_sub(told);
    if rest > 0 {
        out += &format!("   … and {} more.\n", count(rest as u64));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::sample;

    #[test]
    fn the_terminal_replay() {
        sample::with(|shown| insta::assert_snapshot!(guard_terminal(shown, Style::default())));
    }

    #[test]
    fn nothing_is_wider_than_100_columns() {
        sample::with(|shown| {
            for line in guard_terminal(shown, Style::default()).lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        });
    }
}
