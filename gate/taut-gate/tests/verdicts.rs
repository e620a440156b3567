//! Verdicts on trials of known truth: who did it, the program or the machine, and where.

mod made;

use made::{Made, gated};
use taut_gate::{Asked, Error, Failure, Gated, Most, Settings, Startup, Statistic, Subject, Trial, Void, gate, noise};
use taut_stats::compare::{InvalidReason, Plan, Verdict};

fn verdict(b: &Made) -> taut_gate::Outcome {
    gated(&Settings::default(), &Made::default(), b, 1, 40).outcome
}

fn with_work(work_ns: [f64; 3]) -> Made {
    Made { work_ns, ..Made::default() }
}

#[test]
fn the_same_program_is_not_worse() {
    let outcome = verdict(&Made::default());
    assert_eq!(outcome.verdict, Verdict::NoRelevantDifference);
    assert_eq!((outcome.blamed, outcome.fresh), (None, 0));
    assert!(!outcome.machine.unwrap().is_worse);
    assert_eq!(outcome.silent.len(), 1, "no deadline: {:?}", outcome.silent);
}

#[test]
fn a_tenth_more_work_in_one_hop_is_worse_and_the_hop_is_named() {
    for (hop, work_ns) in [[44_000.0, 1e5, 6e4], [4e4, 110_000.0, 6e4], [4e4, 1e5, 66_000.0]].into_iter().enumerate() {
        let outcome = verdict(&with_work(work_ns));
        assert_eq!((outcome.verdict, outcome.blamed), (Verdict::Worse, Some(hop)), "{work_ns:?}");
        let change = &outcome.hops[hop];
        assert_eq!(change.causes.iter().find(|cause| !cause.is_machine).unwrap().cause, "cpu");
        let grown = work_ns[hop] * 0.1 / 1.1;
        assert!((change.own.change_ns / (1.05 * grown) - 1.0).abs() < 0.1, "{change:?}");
        assert!(outcome.fresh >= 6);
    }
}

#[test]
fn short_hops_vote_where_none_is_longer() {
    let short = with_work([2e3, 4e3, 3e3]);
    let slower = |b: &Made| gated(&Settings::default(), &short, b, 1, 40).outcome;
    assert_eq!(slower(&short).verdict, Verdict::NoRelevantDifference);
    assert_eq!(slower(&with_work([2e3, 8e3, 3e3])).verdict, Verdict::Worse);
}

#[test]
fn a_tail_that_medians_cannot_see_is_worse() {
    let outcome = verdict(&Made { one_in: 200, ..Made::default() });
    assert_eq!((outcome.verdict, outcome.blamed), (Verdict::Worse, Some(1)));
}

#[test]
fn what_only_the_machine_did_is_said_and_fails_nothing() {
    let hog = Made { machine: (0.3, 2_000_000.0), ..Made::default() };
    let outcome = verdict(&hog);
    assert_eq!(outcome.verdict, Verdict::NoRelevantDifference);
    assert!(outcome.machine.unwrap().is_worse);
    // Nor is the start-up, which a hog meets as it meets the rest.
    let startup: Vec<Subject> = outcome.startup.iter().map(|ballot| ballot.subject).collect();
    assert_eq!(startup, [Subject::Startup]);
    assert_eq!(outcome.startup[0].finding.verdict, Verdict::NoRelevantDifference);
}

#[test]
fn a_program_that_got_worse_fails_behind_a_hog_too() {
    let both = Made { machine: (0.3, 2_000_000.0), ..with_work([4e4, 1.2e5, 6e4]) };
    let outcome = verdict(&both);
    assert_eq!((outcome.verdict, outcome.blamed), (Verdict::Worse, Some(1)));
    assert!(outcome.machine.unwrap().is_worse);
    // What a hog does to the caches is some per cent, and makes single messages slow.
    let cold = Made { machine: (0.3, 2_000_000.0), ..with_work([4e4, 1.07e5, 6e4]) };
    let tailed = Made { machine: (0.3, 2_000_000.0), one_in: 200, ..Made::default() };
    for b in [cold, tailed] {
        let outcome = verdict(&b);
        assert_ne!(outcome.verdict, Verdict::Worse);
        assert!(outcome.ballots.iter().any(|ballot| ballot.excused), "{:?}", outcome.ballots);
    }
}

/// Five fresh pairs give a verdict and no interval; those before say that the work is three times as long, which no cold cache makes.
#[test]
fn few_fresh_pairs_leave_no_excuse_for_work_that_is_three_times_as_long() {
    let both = Made { machine: (0.3, 2_000_000.0), ..with_work([4e4, 3e5, 6e4]) };
    let mut random = rand::SeedableRng::seed_from_u64(2);
    let outcome = changed(13, |_, _, b| *b = both.trial(&mut random)).outcome;
    let accused: Vec<_> = outcome.ballots.iter().filter(|ballot| ballot.finding.verdict == Verdict::Worse).collect();
    let interval = |ballot: &taut_gate::Ballot| ballot.finding.figures.as_ref().and_then(|figures| figures.interval);
    assert!(outcome.fresh <= 5 && accused.iter().any(|ballot| interval(ballot).is_none()), "{accused:?}");
    assert!(outcome.machine.as_ref().unwrap().is_worse);
    assert_eq!((outcome.verdict, outcome.blamed), (Verdict::Worse, Some(1)));
}

#[test]
fn missed_deadlines_are_the_programs_unless_the_machine_got_worse_with_them() {
    let deadline_ns = Some(300_000);
    let a = Made { deadline_ns, machine: (0.0, 0.0), ..Made::default() };
    let settings = Settings { votes: vec!["missed".parse().unwrap()], ..Settings::default() };
    let slower = Made { deadline_ns, work_ns: [4e4, 1.9e5, 6e4], ..a.clone() };
    let outcome = gated(&settings, &a, &slower, 1, 40).outcome;
    assert_eq!(outcome.verdict, Verdict::Worse);
    let hog = Made { deadline_ns, machine: (0.3, 2_000_000.0), ..a.clone() };
    let outcome = gated(&settings, &a, &hog, 1, 40).outcome;
    assert!(outcome.ballots[0].excused);
    assert_eq!(outcome.verdict, Verdict::NotEnoughEvidence { more_pairs: None });
}

#[test]
fn messages_that_are_dropped_are_not_fast() {
    let outcome = verdict(&Made { dropped: 0.3, work_ns: [3e4, 8e4, 5e4], ..Made::default() });
    assert_eq!(outcome.verdict, Verdict::Worse);
}

#[test]
fn less_work_is_better() {
    assert_eq!(verdict(&with_work([2e4, 6e4, 4e4])).verdict, Verdict::Better);
}

#[test]
fn time_that_runs_out_is_not_a_verdict_against() {
    let outcome = gated(&Settings::default(), &Made::default(), &with_work([4e4, 1.2e5, 6e4]), 1, 5).outcome;
    assert!(matches!(outcome.verdict, Verdict::NotEnoughEvidence { .. }), "{:?}", outcome.verdict);
    let nothing = gated(&Settings::default(), &Made::default(), &Made::default(), 1, 0).outcome;
    assert_eq!(nothing.verdict, Verdict::Invalid { reason: InvalidReason::NoPairs });
}

#[test]
fn void_trials_are_replaced_counted_and_too_many_end_it() {
    let mut random = rand::SeedableRng::seed_from_u64(1);
    let mut n = 0;
    let mut run = |one_in: usize| {
        let mut next = |_: Asked| -> Result<_, Error> {
            let mut pair = (Made::default().trial(&mut random), Made::default().trial(&mut random));
            n += 1;
            if n % one_in == 0 {
                // Of either side, in turn.
                let trial = if (n / one_in).is_multiple_of(2) { &mut pair.0 } else { &mut pair.1 };
                trial.void = Some(Void::Stalled { stalled: 0.5 });
            }
            Ok(Some(pair))
        };
        gate(&Settings::default(), &mut next).unwrap().outcome
    };
    let few = run(6);
    assert_eq!((few.verdict, few.void.is_empty()), (Verdict::NoRelevantDifference, false));
    assert_eq!(run(2).verdict, Verdict::NoRelevantDifference);
    assert!(matches!(run(1).verdict, Verdict::Invalid { .. }));
}

/// A candidate with a busy loop of real-time priority stalls the probe, and just those trials would be left out.
#[test]
fn a_machine_that_stalls_under_the_candidate_alone_does_not_let_it_pass() {
    let stalled = |n: usize, trial: &mut Trial| {
        if n.is_multiple_of(2) {
            trial.void = Some(Void::Stalled { stalled: 0.5 });
        }
    };
    let under_b = changed(60, |n, _, b| stalled(n, b)).outcome.verdict;
    assert!(matches!(under_b, Verdict::Invalid { reason: InvalidReason::Stalled { .. } }), "{under_b:?}");
    assert_eq!(changed(60, |n, a, _| stalled(n, a)).outcome.verdict, Verdict::NoRelevantDifference);
}

/// A gate of a program against itself whose pairs are changed as they come, up to so many.
fn changed(pairs: usize, change: impl FnMut(usize, &mut Trial, &mut Trial)) -> Gated {
    changed_by(&Settings::default(), pairs, change)
}

fn changed_by(settings: &Settings, pairs: usize, mut change: impl FnMut(usize, &mut Trial, &mut Trial)) -> Gated {
    let mut random = rand::SeedableRng::seed_from_u64(1);
    let mut n = 0;
    let mut next = |_: Asked| -> Result<_, Error> {
        let (mut a, mut b) = (Made::default().trial(&mut random), Made::default().trial(&mut random));
        change(n, &mut a, &mut b);
        n += 1;
        Ok((n <= pairs).then_some((a, b)))
    };
    gate(settings, &mut next).unwrap()
}

fn aborted() -> Trial {
    Trial::failed("one", Failure { how: "signal 6 (SIGABRT)".into(), said: vec!["joint 3 is nan".into()] })
}

#[test]
fn a_machine_that_stalled_throughout_is_the_reason_and_not_the_length_of_trials() {
    let gated = changed(60, |_, a, _| a.void = Some(Void::Stalled { stalled: 0.2 }));
    let Verdict::Invalid { reason } = gated.outcome.verdict else { panic!("{:?}", gated.outcome.verdict) };
    assert!(matches!(reason, InvalidReason::Stalled { void, pairs } if void == pairs && pairs >= 8), "{reason}");
    let said = format!("{reason} {:?}", gated.outcome.silent);
    assert!(said.contains("the machine stalled") && !said.contains("longer trials"), "{said}");
    let lost = changed(60, |_, _, b| b.void = Some(Void::LostStamps { lost: 9, all: 10 }));
    assert!(matches!(lost.outcome.verdict, Verdict::Invalid { reason: InvalidReason::Lost { .. } }));
}

#[test]
fn a_candidate_that_fails_where_the_baseline_never_did_is_worse() {
    let gated = changed(60, |n, _, b| {
        if n % 7 == 6 {
            *b = aborted();
        }
    });
    let outcome = gated.outcome;
    assert_eq!(outcome.verdict, Verdict::Worse);
    assert!(outcome.failures.is_worse && outcome.failures.a.failed == 0 && outcome.failures.b.failed > 0);
    assert!(outcome.ballots.iter().all(|ballot| ballot.finding.verdict != Verdict::Worse), "times do not count");
    // The same of the baseline is no reason against the candidate.
    let turned = changed(60, |n, a, _| {
        if n % 7 == 6 {
            *a = aborted();
        }
    });
    assert_eq!(turned.outcome.verdict, Verdict::NoRelevantDifference);
    assert!(turned.outcome.failures.a.failed > 0);
}

#[test]
fn a_candidate_that_always_fails_ends_the_gate_soon() {
    let gated = changed(60, |_, _, b| *b = aborted());
    assert_eq!((gated.outcome.verdict, gated.pairs.len()), (Verdict::Worse, 4));
}

#[test]
fn a_slower_start_up_is_worse_by_itself() {
    let started = |ns: u64| Some(Startup { messages: 10, slowest_own_ns: Some(ns), missed_own: None });
    let slower = |n: usize, a: &mut Trial, b: &mut Trial| {
        let jitter = (n * 7919 % 100) as u64 * 1_000;
        (a.startup, b.startup) = (started(5_000_000 + jitter), started(50_000_000 + jitter));
    };
    let outcome = changed(60, slower).outcome;
    assert_eq!(outcome.verdict, Verdict::Worse);
    assert!(outcome.ballots.iter().all(|ballot| ballot.finding.verdict != Verdict::Worse));
    assert!(outcome.startup.iter().any(|one| one.subject == Subject::Startup && one.finding.verdict == Verdict::Worse));
    let same = changed(60, |n, a, b| {
        (a.startup, b.startup) = (started(5_000_000 + n as u64), started(5_100_000 + n as u64));
    });
    assert_eq!(same.outcome.verdict, Verdict::NoRelevantDifference);
    // Its waits cannot be told from what the machine does to them, where the machine got worse as well.
    let look_late = Settings { plan: Plan { looks: vec![20], ..Plan::default() }, ..Settings::default() };
    let excused = changed_by(&look_late, 60, |n, a, b| {
        slower(n, a, b);
        (a.beside, b.beside) = (Some(late(5e4)), Some(late(9e4)));
    });
    assert_eq!(excused.outcome.verdict, Verdict::NotEnoughEvidence { more_pairs: None });
    assert!(excused.outcome.startup.iter().any(|ballot| ballot.excused));
}

/// A probe whose usual wake is so late.
fn late(p50: f64) -> taut_gate::Beside {
    let late = taut_gate::TrialFigures { p50: Some(p50), p90: Some(1e5), ..taut_gate::TrialFigures::default() };
    taut_gate::Beside { late, stalled: 0.0 }
}

#[test]
fn one_of_three_figures_of_the_machine_by_chance_is_not_the_machine() {
    // The probe's p50 is late in seven pairs of eight: p = 2/256 by itself (scipy.stats.wilcoxon, exact), below 1 %; 6/256 of three.
    let gated = changed(8, |n, a, b| {
        let p50 = if n == 7 { 5.5e4 } else { 9e4 };
        (a.beside, b.beside) = (Some(late(5e4)), Some(late(p50)));
    });
    assert!(!gated.outcome.machine.unwrap().is_worse);
    let described =
        gated.outcome.described.iter().find(|one| one.subject == Subject::Probe { statistic: Statistic::P50 });
    assert_eq!(described.unwrap().finding.figures.as_ref().unwrap().pairs, 8);
}

#[test]
fn other_chains_are_refused() {
    let mut random = rand::SeedableRng::seed_from_u64(1);
    let mut next = |_: Asked| -> Result<_, Error> {
        let (a, mut b) = (Made::default().trial(&mut random), Made::default().trial(&mut random));
        b.points.pop();
        Ok(Some((a, b)))
    };
    let error = gate(&Settings::default(), &mut next).unwrap_err().to_string();
    assert!(error.contains("read → plan → send,"), "{error}");
}

#[test]
fn the_noise_floor_is_that_of_the_baseline_and_finds_what_it_says() {
    let settings = Settings::default();
    let gated = gated(&settings, &Made::default(), &Made::default(), 3, 40);
    let floor = |pairs| noise(&settings, &gated, &[], Most::of(pairs)).remove(0);
    let of_work = floor(80);
    assert!(of_work.of_pair.is_none_or(|noise| noise < 0.03), "{of_work:?}");
    let smallest = of_work.smallest.unwrap();
    assert!((0.03..0.1).contains(&smallest), "{smallest}");
    assert!(floor(20).smallest.is_none_or(|fewer| fewer > smallest), "less time finds less");
}

#[test]
fn of_sixty_gates_of_a_program_against_itself_none_is_worse() {
    let settings = Settings::default();
    for seed in 0..60 {
        let outcome = gated(&settings, &Made::default(), &Made::default(), seed, 14).outcome;
        assert_ne!(outcome.verdict, Verdict::Worse, "seed {seed}");
    }
}
