//! `gate_replay FILE GATES SEED SECONDS [SETTINGS]`: gates over pairs drawn from recorded ones, by the code that `taut gate` runs.
//!
//! For each system and kind of the file, GATES times: pairs are drawn with replacement (a pair stays a pair) and given to the
//! gate one by one, each taking the time that it took when it was recorded, until the gate is sure or the time is up.
//! One JSON object to standard output. SETTINGS: a gate's settings as JSON, instead of the default ones.

use std::{collections::BTreeMap, io::BufRead, thread};

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use serde::{Deserialize, Serialize};
use taut_gate::{Ballot, Error, Phase, Settings, Trial, gate};
use taut_stats::compare::Verdict;

/// Of the time, what accusing may take; the rest is for fresh pairs. As in the command.
const ACCUSING: f64 = 0.6;

#[derive(Deserialize)]
struct Line {
    system: String,
    kind: String,
    /// What the pair took: two recordings and their analysis.
    seconds: f64,
    a: Side,
    b: Side,
}

#[derive(Deserialize)]
struct Side {
    /// None where the trial failed.
    trial: Option<Trial>,
}

/// A recorded pair.
struct Pair {
    /// Among the pairs of its system and kind, in the file's order, those that failed left out.
    trials: (Trial, Trial),
    seconds: f64,
}

#[derive(Serialize)]
struct Replayed {
    verdict: String,
    /// The figures that were called worse.
    worse: Vec<String>,
    /// "from → to" of the hop that is to blame.
    blamed: Option<String>,
    /// Pairs that it took, fresh ones included.
    pairs: usize,
    seconds: f64,
    machine_is_worse: bool,
    /// Numbers of the pairs that all of the time would have held, for others to judge.
    drawn: Vec<usize>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, gates, seed, most_s, settings @ ..] = arguments.as_slice() else {
        eprintln!("usage: gate_replay FILE GATES SEED SECONDS [SETTINGS]");
        std::process::exit(2);
    };
    let (gates, seed) = (gates.parse().expect("GATES is a number"), seed.parse().expect("SEED is a number"));
    let most_s = most_s.parse().expect("SECONDS is a number");
    let settings = settings.first().map_or(Settings::default(), |json| serde_json::from_str(json).expect("SETTINGS"));
    let recorded = match read(file) {
        Ok(recorded) => recorded,
        Err(error) => {
            eprintln!("gate_replay: {file}: {error}");
            std::process::exit(2);
        }
    };
    let replay = |key: &(String, String), pairs: &[Pair]| -> Vec<Replayed> {
        let name = key.0.bytes().chain(key.1.bytes());
        let of_key = name.fold(seed, |hash: u64, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(of_key);
        (0..gates).map(|_| one(&settings, pairs, most_s, &mut random)).collect()
    };
    let replay = &replay;
    let replayed: BTreeMap<String, Vec<Replayed>> = thread::scope(|scope| {
        let started: Vec<_> =
            recorded.iter().map(|(key, pairs)| (key, scope.spawn(move || replay(key, pairs)))).collect();
        started.into_iter().map(|(key, one)| (format!("{}: {}", key.0, key.1), one.join().unwrap())).collect()
    });
    println!("{}", serde_json::to_string(&replayed).expect("plain data"));
}

fn read(file: &str) -> Result<BTreeMap<(String, String), Vec<Pair>>, Box<dyn std::error::Error>> {
    let mut recorded: BTreeMap<(String, String), Vec<Pair>> = BTreeMap::new();
    for line in std::io::BufReader::new(std::fs::File::open(file)?).lines() {
        // A collection that was cut ends in half a line.
        let Ok(line) = serde_json::from_str::<Line>(&line?) else { continue };
        let (Some(a), Some(b)) = (line.a.trial, line.b.trial) else { continue };
        recorded.entry((line.system, line.kind)).or_default().push(Pair { trials: (a, b), seconds: line.seconds });
    }
    Ok(recorded)
}

fn one(settings: &Settings, pairs: &[Pair], most_s: f64, random: &mut Xoshiro256PlusPlus) -> Replayed {
    let mut drawn = Vec::new();
    let mut left_s = most_s;
    while left_s > 0.0 {
        let pair = random.random_range(0..pairs.len());
        left_s -= pairs[pair].seconds;
        drawn.push(pair);
    }
    // The last one would have ended after the time.
    drawn.pop();
    let (mut used, mut passed_s) = (0, 0.0);
    let gated = gate(settings, &mut |asked| -> Result<_, Oops> {
        let share = if asked.phase == Phase::Accuse { ACCUSING } else { 1.0 };
        let Some(pair) = drawn.get(used).map(|at| &pairs[*at]) else { return Ok(None) };
        if passed_s + pair.seconds > share * most_s {
            return Ok(None);
        }
        (used, passed_s) = (used + 1, passed_s + pair.seconds);
        Ok(Some(pair.trials.clone()))
    });
    let Ok(gated) = gated else { panic!("all pairs of a system are of one chain") };
    let outcome = gated.outcome;
    let name = |hop: usize| format!("{} → {}", outcome.points[hop], outcome.points[hop + 1]);
    let is_worse = |ballot: &&Ballot| ballot.finding.verdict == Verdict::Worse && !ballot.excused;
    Replayed {
        verdict: word(&outcome.verdict),
        worse: outcome.ballots.iter().filter(is_worse).map(|ballot| format!("{:?}", ballot.subject)).collect(),
        blamed: outcome.blamed.map(name),
        pairs: used,
        seconds: passed_s,
        machine_is_worse: outcome.machine.as_ref().is_some_and(|machine| machine.is_worse),
        drawn,
    }
}

fn word(verdict: &Verdict) -> String {
    serde_json::to_value(verdict).ok().and_then(|v| Some(v.get("verdict")?.as_str()?.to_owned())).unwrap_or_default()
}

/// The gate's own errors.
struct Oops;

impl From<Error> for Oops {
    fn from(error: Error) -> Oops {
        eprintln!("gate_replay: {error}");
        Oops
    }
}
