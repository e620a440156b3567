//! How long a trial must be, and what the time of a gate then holds.

use std::time::Duration;

use taut_gate::{STALL_S, Settings, Statistic, Trial, Vote};

/// The baseline is run for so long at first; where that is too short for [`LEAST`] messages, for [`LONGER`].
pub const PILOT: Duration = Duration::from_secs(3);
/// The second attempt.
pub const LONGER: Duration = Duration::from_secs(20);
/// Messages without which a trial has no median.
pub const LEAST: u64 = 20;
/// Messages of a trial that a median needs: more bring less than another trial does.
const USUAL: f64 = 30.0;
/// Messages of a trial from which on rare ones are seen in the pairs of a gate: one in 200 is in every second pair.
const RARE: f64 = 100.0;
/// A quantile needs ten bursts of messages beyond it; these are half as many again.
const BEYOND: f64 = 15.0;
/// A shorter trial cannot tell a program that hangs from a machine that stalled.
const SHORTEST_S: f64 = 2.0 * STALL_S;
/// Pairs that the time is to hold, at least, where trials can be shorter for it.
const PAIRS: f64 = 20.0;

/// A run of the baseline before the first pair.
pub struct Pilot {
    /// From its start to its figures.
    pub took: Duration,
    /// It ended by itself.
    pub is_over: bool,
    /// What it recorded.
    pub trial: Trial,
}

/// The length of all trials.
#[derive(Clone, Debug)]
pub struct Length {
    /// A run is stopped so long after its first stamp; `None`: it ends by itself before.
    pub duration: Option<Duration>,
    /// Of a pair, in all.
    pub pair: Duration,
    /// Messages of a trial.
    pub messages: u64,
}

impl Length {
    /// The shortest trial that carries what is to be judged.
    ///
    /// The variance of a figure over n trials is (between + within / length) / n, and n is the time divided by what a trial takes, overhead
    /// included; the best length is the square root of overhead × within / between (Cochran 1977, section 10.6). Medians vary between
    /// runs by several times what 30 messages leave uncertain (docs/explanation/statistics.md), so that the best length is short. For shares of rare messages it
    /// is long: where the time of the overhead holds enough of them, a trial is as long as that.
    pub fn choose(pilot: &Pilot, settings: &Settings, max_time: Duration) -> Length {
        let trial = &pilot.trial;
        let span_s = (trial.last_s - trial.first_s).max(1e-3);
        let per_s = trial.messages as f64 / span_s;
        let overhead_s = (pilot.took.as_secs_f64() - span_s).max(0.0);
        let rare_s = if overhead_s * per_s >= RARE { overhead_s } else { 0.0 };
        let wanted_s = (needed(&settings.votes) / per_s).max(rare_s).max(SHORTEST_S);
        let fitting_s = max_time.as_secs_f64() / (2.0 * PAIRS) - overhead_s;
        let steady_s = wanted_s.min(fitting_s.max(LEAST as f64 / per_s).max(SHORTEST_S));
        if pilot.is_over && span_s <= steady_s.max(fitting_s.min(2.0 * wanted_s)) {
            return Length { duration: None, pair: 2 * pilot.took, messages: trial.messages };
        }
        let length = |s: f64| Duration::from_secs_f64((s * 10.0).ceil() / 10.0);
        Length {
            duration: Some(length((trial.first_s - trial.begun_s).max(0.0) + steady_s)),
            pair: Duration::from_secs_f64(2.0 * (overhead_s + steady_s)),
            messages: (per_s * steady_s) as u64,
        }
    }

    /// Said beforehand.
    pub fn sentence(&self, settings: &Settings, max_time: Duration) -> String {
        let (pair_s, all_s) = (self.pair.as_secs_f64(), max_time.as_secs_f64());
        let trials = match self.duration {
            Some(duration) => {
                format!(
                    "trials of {:.1} s from the first stamp, {} messages each",
                    duration.as_secs_f64(),
                    self.messages
                )
            }
            None => format!("runs end by themselves, after {} messages", self.messages),
        };
        let fit = (all_s / pair_s) as usize;
        let fewest = fewest(settings);
        let needed_s = fewest as f64 * pair_s;
        let said = format!("{trials}; a pair takes about {pair_s:.1} s, so that {fit} fit into {all_s:.0} s");
        if fit < fewest {
            let more = (needed_s * 1.1).ceil();
            return format!(
                "{said}, and a verdict of worse takes {fewest} at least: give --max-time {more:.0}, or shorter trials with --duration"
            );
        }
        format!("{said}; a verdict of worse takes {fewest} at least, {needed_s:.0} s")
    }
}

/// The fewest pairs after which a gate that is not out of time can say worse.
fn fewest(settings: &Settings) -> usize {
    let first = |looks: &[usize]| looks.iter().copied().min().unwrap_or(0);
    first(&settings.plan.looks) + first(&settings.plan.confirm_looks)
}

/// Messages of a trial that the figures need.
fn needed(votes: &[Vote]) -> f64 {
    let of = |vote: &Vote| match vote {
        Vote::Time(_, _, Statistic::P90) => BEYOND / 0.1,
        Vote::Time(_, _, Statistic::P95) => BEYOND / 0.05,
        Vote::Time(_, _, Statistic::P99) => BEYOND / 0.01,
        Vote::Time(_, _, Statistic::P999) => BEYOND / 0.001,
        Vote::Time(_, _, Statistic::Tail5) => BEYOND / 0.05,
        Vote::Time(_, _, Statistic::Tail1) => BEYOND / 0.01,
        _ => USUAL,
    };
    votes.iter().map(of).fold(USUAL, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of this rate whose pilot ran for 3 s, starting and ending included.
    fn chosen(per_s: f64, votes: &[&str], max_time_s: u64) -> Length {
        let (first_s, took_s) = (0.2, 3.4);
        let trial =
            Trial { first_s, begun_s: first_s, last_s: 3.0, messages: (2.8 * per_s) as u64, ..Trial::default() };
        let votes = votes.iter().map(|vote| vote.parse().unwrap()).collect();
        let pilot = Pilot { took: Duration::from_secs_f64(took_s), is_over: false, trial };
        Length::choose(&pilot, &Settings { votes, ..Settings::default() }, Duration::from_secs(max_time_s))
    }

    #[test]
    fn a_loop_at_250_hz_is_judged_within_a_minute() {
        let length = chosen(250.0, &["hops.work.p50", "hops.work.slow"], 600);
        assert!((0.5..=0.8).contains(&length.duration.unwrap().as_secs_f64()), "{length:?}");
        assert!(length.messages >= 100 && length.pair.as_secs_f64() * 14.0 < 60.0, "{length:?}");
    }

    #[test]
    fn slow_loops_and_tails_take_longer_trials_as_far_as_the_time_allows() {
        let (median, tail) = (chosen(50.0, &["hops.work.p50"], 600), chosen(50.0, &["chain.total.p99"], 6000));
        assert_eq!(median.messages, 30);
        assert!(tail.messages >= 1400, "{tail:?}");
        let short = chosen(50.0, &["chain.total.p99"], 600);
        assert!(short.pair.as_secs_f64() * 20.0 <= 601.0, "{short:?}");
    }

    #[test]
    fn time_that_is_too_short_is_said_beforehand() {
        let settings = Settings::default();
        let length =
            Length { duration: Some(Duration::from_secs(6)), pair: Duration::from_secs_f64(13.0), messages: 1500 };
        let said = length.sentence(&settings, Duration::from_secs(150));
        assert!(
            said.contains("11 fit into 150 s, and a verdict of worse takes 14 at least: give --max-time 201"),
            "{said}"
        );
        assert!(!length.sentence(&settings, Duration::from_secs(300)).contains("--max-time"));
    }
}
