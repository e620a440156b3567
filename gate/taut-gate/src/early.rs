//! Runs that end too early without an error: a program that hangs until the end of `--duration`, or that returns 0
//! before its work is done. Each trial is compared with the baseline's.

use crate::{Error, Failure, Trial, Void};

/// Fewer trials do not show how far runs differ.
const FEWEST: usize = 5;
/// A stall of the machine may cost the last messages of a sound run: so long, or this share of the run, is no hang. In a trial that is not
/// much longer a hang cannot be seen.
pub const STALL_S: f64 = 0.25;
const SHARE: f64 = 0.2;
/// A silence is no end until it is so many times the longest one that the baseline's runs go on after: programs pause at random, too.
const SILENCES: f64 = 3.0;
/// So often the baseline's own spread, from the lower quartile to the median.
const SPREADS: f64 = 5.0;
/// A larger share of a trial in which no hang would be seen is told.
const HIDDEN: f64 = 0.5;
/// So many messages fewer are no news.
const MESSAGES: f64 = 10.0;
/// In a run of given length, be it by its own clock, a loop that the machine slows down makes fewer messages; such a share fewer no machine explains.
const TIMED_SHARE: f64 = 0.8;

/// Runs of a side that may all end before the chain does. Where more do, and none gets there, it is another chain.
const SHORT_MOST: usize = 2;

/// Marks as failed the trials that ended too early, of both sides, and as void those that are too short to tell.
///
/// # Errors
/// The trials are not of one chain.
pub(crate) fn mark(pairs: &mut [(Trial, Trial)]) -> Result<(), Error> {
    mark_unfinished(pairs)?;
    if let Some(usual) = Usual::of(pairs.iter().map(|(a, _)| a)) {
        pairs.iter_mut().flat_map(|(a, b)| [a, b]).for_each(|trial| usual.mark(trial));
    }
    Ok(())
}

/// A trial whose messages pass other points than those of most ended before they got further, or met a point that is rarely passed.
fn mark_unfinished(pairs: &mut [(Trial, Trial)]) -> Result<(), Error> {
    let has_chain = |trial: &&Trial| !trial.points.is_empty() && trial.failure().is_none();
    let all = || pairs.iter().flat_map(|(a, b)| [a, b]).filter(has_chain);
    let like = |one: &Trial| all().filter(|other| other.points == one.points).count();
    // The first of those that most are like; of as many, of those with more points.
    let Some(whole) = all().rev().max_by_key(|trial| (like(trial), trial.points.len())).cloned() else { return Ok(()) };
    let differs = |trial: &&Trial| trial.points != whole.points;
    let of = |side: fn(&(Trial, Trial)) -> &Trial| pairs.iter().map(side).filter(has_chain);
    for side in [(|pair| &pair.0) as fn(&(Trial, Trial)) -> &Trial, |pair| &pair.1] {
        let may_be_cut = |trial: &Trial| trial.is_part_of(&whole) || whole.is_part_of(trial);
        let Some(other) = of(side).find(differs).filter(|_| of(side).all(|trial| differs(&trial))) else { continue };
        if of(side).count() > SHORT_MOST || !of(side).all(may_be_cut) {
            return Err(Error::OtherChain {
                a: whole.name.clone(),
                b: other.name.clone(),
                a_points: whole.points.join(" → "),
                b_points: other.points.join(" → "),
            });
        }
    }
    let trials = pairs.iter_mut().flat_map(|(a, b)| [a, b]).filter(|trial| !trial.points.is_empty());
    for trial in trials.filter(|trial| trial.points != whole.points) {
        trial.void.get_or_insert(Void::Unfinished);
    }
    Ok(())
}

/// The same of one side, each chain against its own trials.
pub(crate) fn marked(trials: &[Trial]) -> Vec<Trial> {
    let mut trials = trials.to_vec();
    let mut chains: Vec<String> = trials.iter().map(|trial| trial.chain.clone()).collect();
    chains.sort_unstable();
    chains.dedup();
    for chain in chains {
        let Some(usual) = Usual::of(trials.iter().filter(|trial| trial.chain == chain)) else { continue };
        // A run that did not get to the end of a chain has none.
        let of_it = trials.iter_mut().filter(|trial| trial.chain == chain || trial.chain.is_empty());
        of_it.for_each(|trial| usual.mark(trial));
    }
    trials
}

/// Where the baseline's own silences hide that a run hangs: the last so many seconds of trials of so many. `None` where that is at
/// most half of a trial.
pub(crate) fn hidden(pairs: &[(Trial, Trial)]) -> Option<(f64, f64)> {
    let usual = Usual::of(pairs.iter().map(|(a, _)| a)).filter(|usual| usual.is_timed)?;
    // One that hangs at its very start has too few messages, if it is long enough to tell.
    let by_count_s = if usual.active_s > STALL_S { TIMED_SHARE * usual.last_s } else { usual.last_s };
    let hidden_s = usual.slack_s.min(by_count_s);
    (hidden_s > HIDDEN * usual.last_s).then_some((hidden_s, usual.last_s))
}

/// How sound trials of the baseline end.
struct Usual {
    /// From outside, at a given time; else by themselves, when their work is done.
    is_timed: bool,
    duration_s: f64,
    last_s: f64,
    /// From the last message to the end.
    quiet_s: f64,
    /// A last message that is earlier by more is too early.
    slack_s: f64,
    active_s: f64,
    messages: f64,
    messages_spread: f64,
    /// Most end when they are asked to, and are not killed.
    end_when_asked: bool,
}

impl Usual {
    fn of<'a>(trials: impl Iterator<Item = &'a Trial>) -> Option<Usual> {
        let known: Vec<&Trial> = trials.filter(|trial| trial.void.is_none() && trial.is_stopped.is_some()).collect();
        let stopped = known.iter().filter(|trial| trial.is_stopped == Some(true)).count();
        let is_timed = 2 * stopped > known.len();
        let alike: Vec<&Trial> = known.into_iter().filter(|trial| trial.is_stopped == Some(is_timed)).collect();
        if alike.len() < FEWEST {
            return None;
        }
        let spread = |of: fn(&Trial) -> f64| {
            let mut values: Vec<f64> = alike.iter().map(|trial| of(trial)).collect();
            values.sort_unstable_by(f64::total_cmp);
            let median = values[values.len() / 2];
            (median, median - values[values.len() / 4])
        };
        let (last_s, last_spread) = spread(|trial| trial.last_s);
        let (messages, messages_spread) = spread(begun);
        let silence_s = alike.iter().map(|trial| trial.silence_s).fold(0.0, f64::max);
        let slack_s = [STALL_S, SHARE * last_s, SILENCES * silence_s, SPREADS * last_spread];
        Some(Usual {
            is_timed,
            duration_s: spread(|trial| trial.duration_s).0,
            last_s,
            quiet_s: spread(|trial| trial.duration_s - trial.last_s).0,
            slack_s: slack_s.into_iter().fold(0.0, f64::max),
            messages,
            active_s: spread(|trial| trial.active_s).0,
            messages_spread,
            end_when_asked: 2 * alike.iter().filter(|trial| trial.is_killed).count() < alike.len(),
        })
    }

    fn mark(&self, trial: &mut Trial) {
        if let (None | Some(Void::Unfinished), Some(how)) = (&trial.void, self.too_early(trial)) {
            trial.void = Some(Void::Failed { failure: Failure { how, said: Vec::new() } });
        }
    }

    fn too_early(&self, trial: &Trial) -> Option<String> {
        let is_stopped = trial.is_stopped?;
        if trial.is_killed && self.end_when_asked {
            return Some("did not end when it was asked to (SIGTERM), and was killed".into());
        }
        // A recording that was meant to be shorter, or a program that takes long to end, is no hang.
        let is_quiet = !is_stopped || trial.duration_s - trial.last_s > self.quiet_s + self.slack_s;
        if self.is_timed && is_quiet && self.last_s - trial.last_s > self.slack_s {
            let what = if is_stopped { "stopped stamping" } else { "ended by itself" };
            return Some(format!("{what} after {:.1} of {:.1} s", trial.last_s, self.last_s));
        }
        let of_its_length = if self.is_timed { (trial.duration_s / self.duration_s.max(1e-9)).min(1.0) } else { 1.0 };
        let expected = self.messages * of_its_length;
        // A stall may cost a trial that is no longer than it all of its messages.
        let is_long = if self.is_timed { self.active_s > STALL_S } else { !is_stopped };
        let is_comparable = is_long && trial.dropped < 1.0;
        let messages = begun(trial);
        // One that takes as long as the others was ended by a clock, and not when its work was done.
        let is_short = trial.active_s < (1.0 - SHARE) * self.active_s;
        let share = if self.is_timed || !is_short { TIMED_SHARE } else { SHARE };
        let slack = [MESSAGES, share * self.messages, SPREADS * self.messages_spread].into_iter().fold(0.0, f64::max);
        (is_comparable && expected - messages > slack)
            .then(|| format!("{messages:.0} messages, where the other runs have {expected:.0}"))
    }
}

/// Dropped ones too: they have a figure of their own.
fn begun(trial: &Trial) -> f64 {
    trial.messages as f64 / (1.0 - trial.dropped).max(1e-3)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

    use super::*;

    fn timed(last_s: f64, duration_s: f64, messages: u64) -> Trial {
        Trial {
            is_stopped: Some(true),
            first_s: 0.05,
            last_s,
            active_s: last_s - 0.05,
            duration_s,
            messages,
            ..Trial::default()
        }
    }

    fn by_itself(last_s: f64, messages: u64) -> Trial {
        Trial { is_stopped: Some(false), ..timed(last_s, last_s + 0.01, messages) }
    }

    /// How the candidate's fifth run failed, beside a baseline of such runs.
    fn how(baseline: impl Fn(usize) -> Trial, candidate: Trial) -> Option<String> {
        let mut pairs: Vec<(Trial, Trial)> = (0..8).map(|at| (baseline(at), baseline(at + 1))).collect();
        pairs[4].1 = candidate;
        mark(&mut pairs).unwrap();
        let sound = pairs.iter().enumerate().all(|(at, (a, b))| a.void.is_none() && (at == 4 || b.void.is_none()));
        assert!(sound, "another run is marked");
        pairs[4].1.failure().map(|failure| failure.how.clone())
    }

    #[test]
    fn a_run_that_hangs_or_returns_before_the_end_has_failed() {
        let paced = |at: usize| timed(0.79 + 0.002 * (at % 3) as f64, 0.85, 350);
        assert_eq!(how(paced, timed(0.3, 0.85, 120)).unwrap(), "stopped stamping after 0.3 of 0.8 s");
        assert_eq!(how(paced, by_itself(0.3, 120)).unwrap(), "ended by itself after 0.3 of 0.8 s");
        assert_eq!(how(paced, timed(0.0, 0.85, 0)).unwrap(), "stopped stamping after 0.0 of 0.8 s");
        assert_eq!(how(paced, timed(0.79, 0.85, 40)).unwrap(), "40 messages, where the other runs have 350");
    }

    #[test]
    fn a_slow_start_a_slow_end_a_stall_and_a_short_recording_are_no_failure() {
        let paced = |at: usize| timed(0.79 + 0.002 * (at % 3) as f64, 0.85, 350);
        let slow_start = Trial { first_s: 0.5, ..timed(0.79, 0.85, 130) };
        for fine in
            [slow_start, timed(0.79, 5.9, 350), timed(0.6, 0.85, 260), timed(0.3, 0.35, 120), timed(0.79, 0.85, 90)]
        {
            assert_eq!(how(paced, fine.clone()), None, "{fine:?}");
        }
        // What all runs do is no failure: such a program stamps at its start only.
        assert_eq!(how(|_| timed(0.2, 3.0, 50), timed(0.2, 3.0, 50)), None);
        // Events at random, 20 a trial.
        let random = |at: usize| timed(3.0 - 0.15 * (at % 4) as f64, 3.1, 15 + at as u64 % 8);
        assert_eq!(how(random, timed(2.0, 3.1, 12)), None);
    }

    #[test]
    fn where_runs_end_by_themselves_their_work_is_what_counts() {
        let work = |at: usize| by_itself(1.0 + 0.2 * (at % 4) as f64, 120);
        assert_eq!(how(work, by_itself(0.4, 60)).unwrap(), "60 messages, where the other runs have 120");
        let dropping = Trial { dropped: 0.5, ..by_itself(1.0, 60) };
        for fine in [by_itself(0.4, 120), by_itself(0.9, 115), dropping] {
            assert_eq!(how(work, fine), None);
        }
        // A loop that ends by its own clock makes fewer where a hog takes its core: a machine's doing, unless next to nothing is left.
        let clocked = |at: usize| by_itself(1.0 + 0.01 * (at % 4) as f64, 50);
        assert_eq!(how(clocked, by_itself(0.99, 24)), None);
        assert_eq!(how(clocked, by_itself(0.99, 5)).unwrap(), "5 messages, where the other runs have 50");
        assert_eq!(how(clocked, by_itself(0.5, 24)).unwrap(), "24 messages, where the other runs have 50");
    }

    /// When a sound program's messages begin, from 0.1 s on; runs last so long.
    struct Sound {
        name: &'static str,
        lasts_s: f64,
        begin: fn(&mut Xoshiro256PlusPlus, f64) -> Vec<f64>,
    }

    const SOUND: [Sound; 5] = [
        Sound {
            name: "100 Hz, and the machine stalls",
            lasts_s: 0.8,
            begin: |random, end| {
                let stalled_s = if random.random_bool(0.2) { 0.03 * exponential(random) } else { 0.0 };
                at_each(end, |_| 0.01, random).into_iter().filter(|at| *at < end - stalled_s).collect()
            },
        },
        Sound {
            name: "at random, 20 a second",
            lasts_s: 3.0,
            begin: |random, end| at_each(end, |random| 0.05 * exponential(random), random),
        },
        Sound {
            name: "at random, 5 a second",
            lasts_s: 10.0,
            begin: |random, end| at_each(end, |random| 0.2 * exponential(random), random),
        },
        Sound {
            name: "bursts of five at random",
            lasts_s: 3.0,
            begin: |random, end| {
                let bursts = at_each(end, |random| 0.1 * exponential(random), random);
                bursts.into_iter().flat_map(|at| (0..5).map(move |nth| at + 0.001 * f64::from(nth))).collect()
            },
        },
        Sound {
            name: "100 Hz, with pauses at random",
            lasts_s: 3.0,
            begin: |random, end| {
                let pause = |random: &mut Xoshiro256PlusPlus| {
                    if random.random_bool(0.02) { 0.2 * exponential(random) } else { 0.01 }
                };
                at_each(end, pause, random)
            },
        },
    ];

    fn exponential(random: &mut Xoshiro256PlusPlus) -> f64 {
        -(1.0 - random.random::<f64>()).ln()
    }

    fn at_each(
        end: f64,
        mut interval: impl FnMut(&mut Xoshiro256PlusPlus) -> f64,
        random: &mut Xoshiro256PlusPlus,
    ) -> Vec<f64> {
        let mut at = 0.1;
        let next = || {
            at += interval(random);
            (at < end).then_some(at)
        };
        std::iter::from_fn(next).collect()
    }

    /// Gates of a sound program with itself, in which B, and A never, counts as ended too early; of so many.
    fn wrongly_failed(sound: &Sound, gates: usize) -> usize {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut trial = || {
            let began = (sound.begin)(&mut random, sound.lasts_s);
            let silence_s = began.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
            let last_s = began.last().copied().unwrap_or(0.1);
            Trial { silence_s, ..timed(last_s, sound.lasts_s + 0.05, began.len() as u64) }
        };
        let mut gate = || {
            let mut pairs = Vec::new();
            (0..40).for_each(|_| {
                pairs.push((trial(), trial()));
                mark(&mut pairs).unwrap();
            });
            crate::Failures::of(pairs.iter()).is_worse
        };
        (0..gates).filter(|_| gate()).count()
    }

    #[test]
    fn sound_programs_are_not_said_to_end_early() {
        for sound in &SOUND {
            let wrong = wrongly_failed(sound, 500);
            assert!(wrong <= 5, "{}: {wrong} of 500 gates", sound.name);
        }
    }

    #[test]
    fn trials_that_are_short_beside_their_own_silences_hide_a_hang_and_it_is_told() {
        let with = |silence_s| Trial { silence_s, ..timed(0.8, 0.85, 350) };
        let pairs = |silence_s| -> Vec<(Trial, Trial)> { (0..5).map(|_| (with(silence_s), with(silence_s))).collect() };
        assert_eq!(hidden(&pairs(0.01)), None);
        assert_eq!(hidden(&pairs(0.2)), Some((0.2 * SILENCES, 0.8)));
        assert_eq!(hidden(&pairs(0.5)), Some((TIMED_SHARE * 0.8, 0.8)), "what hangs at its start has too few messages");
        assert_eq!(hidden(&pairs(0.5)[..4]), None, "of few nothing is known");
    }

    /// A trial of the chain a → b → c, of which no message got beyond so many points.
    fn as_far_as(points: usize, trial: Trial) -> Trial {
        let points: Vec<String> = ["a", "b", "c"][..points].iter().map(|point| (*point).to_owned()).collect();
        let void = points.is_empty().then_some(Void::Unfinished);
        Trial { points, void, ..trial }
    }

    #[test]
    fn a_short_run_that_does_not_get_to_the_chains_end_says_nothing_and_a_longer_one_hangs() {
        let how = |length_s: f64, points: usize| {
            let whole = |_| as_far_as(3, timed(0.05 + length_s, 0.1 + length_s, (100.0 * length_s) as u64));
            let cut = as_far_as(points, timed(0.0, 0.1 + length_s, 0));
            let mut pairs: Vec<(Trial, Trial)> = (0..8).map(|at| (whole(at), whole(at))).collect();
            pairs[0].1 = cut.clone();
            let mut as_the_first = vec![(whole(0), cut)];
            mark(&mut as_the_first).unwrap();
            assert_eq!(as_the_first[0].1.void, Some(Void::Unfinished), "of one pair nothing more is known");
            mark(&mut pairs).unwrap();
            assert!(pairs.iter().skip(1).all(|(a, b)| a.void.is_none() && b.void.is_none()));
            pairs[0].1.void.clone().unwrap()
        };
        for points in [0, 2] {
            assert_eq!(how(0.15, points), Void::Unfinished, "{points} points");
            assert!(matches!(how(0.8, points), Void::Failed { .. }), "{points} points");
        }
    }

    #[test]
    fn a_candidate_that_never_gets_to_the_chains_end_has_another_chain() {
        let whole = as_far_as(3, timed(0.8, 0.85, 350));
        let pair = (whole.clone(), as_far_as(2, timed(0.8, 0.85, 350)));
        mark(&mut [pair.clone(), pair.clone()]).unwrap();
        let error = mark(&mut [pair.clone(), pair.clone(), pair]).unwrap_err().to_string();
        assert!(error.contains("has the chain a → b") && error.contains("has a → b → c"), "{error}");
        let renamed = Trial { points: vec!["a".into(), "d".into()], ..whole.clone() };
        assert!(mark(&mut [(whole, renamed)]).is_err());
    }

    #[test]
    fn a_run_that_has_to_be_killed_has_failed_where_most_of_the_baselines_end_when_asked() {
        let killed = || Trial { is_killed: true, ..timed(0.8, 5.9, 350) };
        let asked = |_| timed(0.8, 0.85, 350);
        assert_eq!(how(asked, killed()).unwrap(), "did not end when it was asked to (SIGTERM), and was killed");
        assert_eq!(how(|_| killed(), killed()), None, "a program that ignores it");
    }

    #[test]
    fn few_trials_and_old_files_say_nothing() {
        let mut few: Vec<(Trial, Trial)> = (0..4).map(|_| (timed(0.8, 0.85, 350), timed(0.3, 0.85, 9))).collect();
        mark(&mut few).unwrap();
        assert!(few.iter().all(|(_, b)| b.void.is_none()));
        let old = |_| Trial { is_stopped: None, ..timed(0.8, 0.85, 350) };
        assert_eq!(how(old, timed(0.3, 0.85, 9)), None);
    }
}
