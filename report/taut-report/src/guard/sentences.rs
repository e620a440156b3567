//! The sentences at the top of every view of a replay, and those of single trips.

use taut_replay::{Found, Judgement, Proof, Replay, Run};

use crate::words::{count, duration, quantity};

/// Two or three sentences: what ours would have done, what the others would have done, what truth says.
pub(super) fn headline(replay: &Replay) -> String {
    let Some((ours, others)) = replay.runs.split_first() else { return "Nothing was replayed.".into() };
    let stream = format!("{} over {}", quantity(replay.frames as u64, "frame"), duration(replay.span_ns));
    let mut text = match trips(ours) {
        0 => format!(
            "The taut guard would not have tripped in {stream}; the fastest that it could prove is {} of the limit.",
            share(ours.largest)
        ),
        _ => format!("The taut guard would have tripped {} in {stream}.", how_often(ours)),
    };
    if ours.is_degraded {
        text += " It had nothing but arrival times: degraded, late, and without detection of small overspeeds.";
    }
    let rivals: Vec<&Run> = others.iter().filter(|run| !run.is_guard).collect();
    let tripped: Vec<&&Run> = rivals.iter().filter(|run| run.overspeed_trips > 0).collect();
    if let Some(worst) = tripped.iter().max_by_key(|run| run.overspeed_trips) {
        let judged = worst.judgement.as_ref().map_or(String::new(), |j| match j.false_trips {
            0 => ", none of them false".into(),
            all if all == worst.overspeed_trips => ", all of them false".into(),
            some => format!(", {} of them false", count(some as u64)),
        });
        text += &format!(
            " {} of {} estimators in use would have; most often {:?}: {}{judged}.",
            tripped.len(),
            rivals.len(),
            worst.name,
            times(worst.overspeed_trips)
        );
    } else if !rivals.is_empty() {
        text += &format!(" Nor would any of {} estimators in use.", rivals.len());
    }
    if let (Some(judgement), Some(truth)) = (&ours.judgement, replay.truth) {
        text += &format!(" {}", against_truth(judgement, replay, truth));
    }
    text
}

fn against_truth(judgement: &Judgement, replay: &Replay, truth: &str) -> String {
    if replay.overspeeds.is_empty() {
        return format!("The true speed ({truth}) was never above the limit.");
    }
    let silent = judgement.by_silence;
    let by_silence = if silent == 0 { String::new() } else { format!(", {silent} of them as STALE") };
    format!(
        "Of {} ({truth}) it finds {}{by_silence}, the slowest after {}; {} {} missed.",
        quantity(replay.overspeeds.len() as u64, "true overspeed"),
        judgement.found,
        judgement.delays_ns.iter().copied().max().map_or("–".into(), duration),
        judgement.missed,
        if judgement.missed == 1 { "is" } else { "are" },
    )
}

/// "OVERSPEED 2 times, STALE once".
fn how_often(run: &Run) -> String {
    let kinds = [("OVERSPEED", run.overspeed_trips), ("STALE", run.stale_trips), ("FAULT", run.fault_trips)];
    let said: Vec<String> =
        kinds.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{kind} {}", times(*n))).collect();
    said.join(", ")
}

fn times(n: usize) -> String {
    if n == 1 { "once".into() } else { format!("{} times", count(n as u64)) }
}

/// All of a run's trips.
pub(super) fn trips(run: &Run) -> usize {
    run.overspeed_trips + run.stale_trips + run.fault_trips
}

/// A share of the limit: "0.62", "3.05", "1200".
pub(super) fn share(share: f64) -> String {
    if share < 100.0 { format!("{share:.2}") } else { count(share.round() as u64) }
}

/// A trip in a sentence, with the two samples that prove it.
pub(super) fn trip(found: &Found) -> String {
    let state = found.state.to_uppercase();
    let cause = cause(found.cause);
    let Some([earlier, later]) = &found.proof else {
        return match found.share {
            0.0 => format!("{state}: {cause}."),
            ratio => format!("{state}: {cause}, {} of the limit.", share(ratio)),
        };
    };
    let span_ns = later.t_ns.abs_diff(earlier.t_ns);
    let way = if found.channel.starts_with("joint") {
        let joint: usize = found.channel.trim_start_matches("joint ").parse().unwrap_or(0);
        format!("{:.4} rad of {}", (later.joints_rad[joint] - earlier.joints_rad[joint]).abs(), found.channel)
    } else {
        let squares = earlier.tcp_mm.iter().zip(later.tcp_mm).map(|(a, b)| (b - a) * (b - a));
        format!("{:.2} mm", squares.sum::<f64>().sqrt())
    };
    let came = |proof: &Proof| proof.arrival_ns.map_or("before".into(), seconds);
    let false_trip = if found.is_false == Some(true) { " False: the true speed was below the limit." } else { "" };
    format!(
        "{state}: {cause}, {} of the limit. {way} in {}, by samples that came at {} and {}.{false_trip}",
        share(found.share),
        duration(span_ns),
        came(earlier),
        came(later),
    )
}

/// A moment from the stream's start: "12.345 s".
pub(super) fn seconds(at_ns: u64) -> String {
    format!("{:.3} s", at_ns as f64 * 1e-9)
}

/// A cause in words.
fn cause(word: &str) -> &str {
    match word {
        "speed" => "the measured speed",
        "reported_speed" => "the controller's own speed",
        "silence" => "no new frame came for T_stale",
        "late_data" => "the newest frame was older than A_max",
        "still_unknown" => "no two frames agreed within W_max of a resynchronisation",
        "configuration" => "the parameters changed under way",
        "clock" => "a clock that is never set stepped",
        "not_finite" => "a frame held a number that no robot sends",
        "disagreement" => "the reported speed contradicted the measured one for ten frames",
        other => other,
    }
}
