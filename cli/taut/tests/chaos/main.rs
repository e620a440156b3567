//! Whatever happens to a recorder, its producers, its disk and its session: what was acknowledged is in the file, and
//! what is not in it was counted. `make test` runs a round of each kind; `bench/chaos/run` runs as many as asked for. What is done in
//! a round follows from its seed: TAUT_CHAOS_SEED, or the time. TAUT_CHAOS_TIER=best is the tier of a round of `bench/chaos/run`.

mod faults;
mod oracle;
mod round;
mod stage;

use std::{
    collections::BTreeMap,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use faults::Who;
use round::{KINDS, Random};

fn one(at: usize) {
    let seed = number("TAUT_CHAOS_SEED", now());
    let (name, round) = KINDS[at];
    let tier = if std::env::var("TAUT_CHAOS_TIER").is_ok_and(|tier| tier == "best") { "best" } else { "stamps" };
    // Shown when it fails.
    eprintln!("{name}: again with TAUT_CHAOS_SEED={seed} TAUT_CHAOS_TIER={tier}");
    round(&mut Random::with_seed(seed), tier);
}

macro_rules! rounds {
    ($($at:literal $name:ident)*) => { $(#[test] fn $name() { one($at); })* };
}

rounds! {
    0 producers_may_be_killed
    1 a_recorder_may_be_killed
    2 both_may_be_killed
    3 a_disk_may_be_full
    4 a_file_may_be_limited
    5 the_clock_may_be_set
    6 a_recorder_may_be_stopped
    7 producers_may_be_stopped
    8 there_may_be_200_threads
    9 there_may_be_100_processes_a_second
    10 the_session_may_be_removed
}

/// The same of one system call that fails: a few of each name for a recorder and a producer. `bench/faults/run` lets every
/// one fail.
#[test]
fn a_system_call_may_fail() {
    if faults::can_trace() {
        fail_calls(1, &[Who::Recorder, Who::Producer]);
    }
}

/// Every call that `TAUT_FAULTS_MOST` allows of each name, of the processes that `TAUT_FAULTS_WHO` names: `bench/faults/run`.
#[test]
#[ignore = "minutes; bench/faults/run runs it"]
fn every_system_call_fails() {
    let most = std::env::var("TAUT_FAULTS_MOST").map_or(usize::MAX, |text| text.parse().unwrap());
    assert!(faults::can_trace());
    let all = [Who::Recorder, Who::FullRecorder, Who::Producer];
    let wanted = std::env::var("TAUT_FAULTS_WHO").unwrap_or_default();
    let is_wanted = |who: &Who| wanted.is_empty() || wanted.split(',').any(|name| name == format!("{who:?}"));
    fail_calls(most, &all.into_iter().filter(is_wanted).collect::<Vec<_>>());
}

fn fail_calls(most: usize, kinds: &[Who]) {
    let mut wrong = Vec::new();
    for who in kinds.iter().copied() {
        let mut sums = BTreeMap::<&str, [u64; 2]>::new();
        for fault in faults::faults(who, most) {
            let sum = sums.entry(fault.call).or_default();
            match faults::holds(who, &fault) {
                Ok(happened) => sum[usize::from(!happened)] += 1,
                Err(what) => wrong.push(format!("{who:?}: {what}")),
            }
        }
        for (call, [failed, not_reached]) in &sums {
            println!("| {who:?} | {call} | {failed} | {not_reached} |");
        }
        let happened: u64 = sums.values().map(|sum| sum[0]).sum();
        assert!(happened > 0 || !wrong.is_empty(), "no call of the {who:?} failed");
    }
    assert!(wrong.is_empty(), "{} faults\n{}", wrong.len(), wrong.join("\n"));
}

/// Many rounds, kinds and tiers by lot: `bench/chaos/run`.
#[test]
#[ignore = "minutes; bench/chaos/run runs it"]
fn chaos_of_record() {
    let (rounds, seed) = (number("TAUT_CHAOS_ROUNDS", 200), number("TAUT_CHAOS_SEED", now()));
    let began = Instant::now();
    let mut random = Random::with_seed(seed);
    let mut sums = [(0_u64, oracle::Account::default()); KINDS.len()];
    eprintln!("seed {seed}");
    for n in 0..rounds {
        // Each kind in turn, so that none is left out; what happens in it is by lot.
        let at = (n % KINDS.len() as u64) as usize;
        let tier = ["stamps", "best"][random.usize(0..2)];
        let of_round = random.u64(..);
        let (name, seconds) = (KINDS[at].0, began.elapsed().as_secs());
        eprintln!(
            "round {} of {rounds}, {seconds} s: {name}, TAUT_CHAOS_SEED={of_round} TAUT_CHAOS_TIER={tier}",
            n + 1
        );
        let account = KINDS[at].1(&mut Random::with_seed(of_round), tier);
        let (count, sum) = &mut sums[at];
        *count += 1;
        sum.stamped += account.stamped;
        sum.recorded += account.recorded;
        sum.lost += account.lost;
    }
    println!("| what happened | rounds | stamped | in the file | counted as lost |\n|---|---|---|---|---|");
    for ((name, _), (count, sum)) in KINDS.iter().zip(sums) {
        println!("| {name} | {count} | {} | {} | {} |", sum.stamped, sum.recorded, sum.lost);
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}
