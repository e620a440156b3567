//! `gate_replay FILE GATES SEED SECONDS [SETTINGS]`: gates over pairs drawn from recorded ones, by the code that `taut gate` runs.
//!
//! For each system and kind of the file, GATES times: pairs are drawn with replacement (a pair stays a pair) and given to the
//! gate one by one, each taking the time that it took when it was recorded, until the gate is sure or the time is up. What
//! the pairs of a program with itself let such a gate see comes besides. One JSON object to standard output. SETTINGS: a
//! gate's settings as JSON, instead of the default ones.

use std::{collections::BTreeMap, io::BufRead, thread};

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use serde::{Deserialize, Serialize};
use taut_gate::{
    ACCUSING, Asked, Ballot, Error, Most, Noise, Outcome, Phase, Settings, Side as Whose, Statistic, Subject, Trial,
    gate, noise,
};
use taut_stats::compare::{Plan, Verdict};

/// A turn of trials: an A, and the B of each kind that ran beside it.
#[derive(Deserialize)]
struct Turn {
    system: String,
    a: Side,
    b: BTreeMap<String, Side>,
}

#[derive(Deserialize)]
struct Side {
    /// What it took: the recording and its analysis.
    seconds: f64,
    /// None where the trial failed.
    trial: Option<Trial>,
}

/// A recorded pair; those that failed are left out.
struct Pair {
    trials: (Trial, Trial),
    seconds: f64,
}

/// The pairs of each system and kind of change.
type Recorded = BTreeMap<(String, String), Vec<Pair>>;

/// All of a system and a kind.
#[derive(Serialize)]
struct Kind {
    gates: Vec<Replayed>,
    /// What gates of this length see.
    sees: Sees,
}

#[derive(Serialize)]
struct Sees {
    /// Pairs that there is time for: to accuse, and to confirm.
    most: (usize, usize),
    figures: Vec<Seen>,
}

#[derive(Serialize)]
struct Seen {
    figure: String,
    /// Of a pair: of the logarithm of a time, or of a share.
    noise: Option<f64>,
    /// The smallest change that is found with a chance of 9 in 10.
    smallest: Option<f64>,
}

#[derive(Serialize)]
struct Replayed {
    verdict: String,
    /// What became of each figure that voted: name, verdict, change.
    ballots: Vec<(String, String, Option<f64>)>,
    /// What was called worse.
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
    let replay = |key: &(String, String), pairs: &[Pair]| -> Kind {
        let name = key.0.bytes().chain(key.1.bytes());
        let of_key = name.fold(seed, |hash: u64, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(of_key);
        let gates = (0..gates).map(|_| one(&settings, pairs, most_s, &mut random)).collect();
        Kind { gates, sees: sees(&settings, pairs, most_s) }
    };
    let replay = &replay;
    let replayed: BTreeMap<String, Kind> = thread::scope(|scope| {
        let started: Vec<_> =
            recorded.iter().map(|(key, pairs)| (key, scope.spawn(move || replay(key, pairs)))).collect();
        started.into_iter().map(|(key, one)| (format!("{}: {}", key.0, key.1), one.join().unwrap())).collect()
    });
    println!("{}", serde_json::to_string(&replayed).expect("plain data"));
}

fn read(file: &str) -> Result<Recorded, Box<dyn std::error::Error>> {
    let mut recorded = Recorded::new();
    for line in std::io::BufReader::new(std::fs::File::open(file)?).lines() {
        // A collection that was cut ends in half a line.
        let Ok(turn) = serde_json::from_str::<Turn>(&line?) else { continue };
        let Some(a) = turn.a.trial else { continue };
        for (kind, b) in turn.b {
            let Some(trial) = b.trial else { continue };
            let pair = Pair { trials: (a.clone(), trial), seconds: turn.a.seconds + b.seconds };
            recorded.entry((turn.system.clone(), kind)).or_default().push(pair);
        }
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
    let judged = outcome.ballots.iter().chain(&outcome.startup);
    let mut worse: Vec<String> =
        judged.filter(|ballot| ballot.is_worse()).map(|ballot| name(&outcome, ballot.subject)).collect();
    worse.extend(outcome.failures.is_worse.then(|| "runs that failed".to_owned()));
    let ballot = |ballot: &Ballot| {
        let verdict = if ballot.excused { "excused".into() } else { word(&ballot.finding.verdict) };
        (name(&outcome, ballot.subject), verdict, ballot.finding.figures.as_ref().map(|figures| figures.change))
    };
    Replayed {
        verdict: word(&outcome.verdict),
        ballots: outcome.ballots.iter().map(ballot).collect(),
        worse,
        blamed: outcome.blamed.map(|hop| hop_name(&outcome, hop)),
        pairs: used,
        seconds: passed_s,
        machine_is_worse: outcome.machine.as_ref().is_some_and(|machine| machine.is_worse),
        drawn,
    }
}

/// What a gate with this time sees in these pairs: each of them once, however long the gate would have taken.
fn sees(settings: &Settings, pairs: &[Pair], most_s: f64) -> Sees {
    let mut all = pairs.iter().map(|pair| pair.trials.clone());
    let looked_once = Settings { plan: Plan { looks: vec![pairs.len()], ..settings.plan.clone() }, ..settings.clone() };
    let mut next = |asked: Asked| -> Result<_, Oops> { Ok(all.next().filter(|_| asked.phase == Phase::Accuse)) };
    let Ok(gated) = gate(&looked_once, &mut next) else { panic!("all pairs of a system are of one chain") };
    let pair_s = pairs.iter().map(|pair| pair.seconds).sum::<f64>() / pairs.len() as f64;
    let most = Most::in_time(most_s / pair_s);
    let seen = |noise: Noise| Seen {
        figure: name(&gated.outcome, noise.subject),
        noise: noise.of_pair,
        smallest: noise.smallest,
    };
    let figures = noise(settings, &gated, &gated.pairs, most).into_iter().map(seen).collect();
    Sees { most: (most.accuse, most.confirm), figures }
}

fn name(outcome: &Outcome, subject: Subject) -> String {
    let figure = |side: Whose, statistic: Statistic| format!("{} {}", side.word(), statistic.word());
    match subject {
        Subject::Chain { side, statistic } => format!("whole way, {}", figure(side, statistic)),
        Subject::Hop { hop, side, statistic } => format!("{}, {}", hop_name(outcome, hop), figure(side, statistic)),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn hop_name(outcome: &Outcome, hop: usize) -> String {
    format!("{} → {}", outcome.points[hop], outcome.points[hop + 1])
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
