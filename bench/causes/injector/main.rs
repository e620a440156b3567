//! A message loop whose late messages have a known reason: the ground truth for `taut explain`.
//!
//! `causes_injector --kinds lock_thread --messages 1200 --truth truth.jsonl …` sends messages through
//! `start` → `middle` → `end`, and does what the kinds say to about every third of them. What was done,
//! for how long, goes to the truth file, one JSON object a message. `../injector.py` does the same in Python;
//! `../run` starts both, records them, and compares.

mod agent;
mod clock;
mod files;
mod kinds;
mod locks;
mod noise;
mod options;
mod peers;
mod processor;
mod random;
mod timing;

use std::{
    fs::File,
    io::{BufWriter, Write},
    sync::{Mutex, PoisonError},
};

use clock::{Progress, monotonic_ns, sleep_ns};
use kinds::Kind;
use options::Options;
use random::Random;
use taut_stamp::{applied, stamp};

/// Own computation of a message, in all.
const BASE_WORK_NS: (u64, u64) = (2_900_000, 3_100_000);
const SMALLEST_NS: f64 = 200_000.0;
const LARGEST_NS: f64 = 20_000_000.0;
/// Where in a message something may happen: before, between and after its two stretches of work, each side of `middle`.
const PLACES: u64 = 4;

/// In the path of every message, contended by nobody.
static INNOCENT: Mutex<u64> = Mutex::new(0);

struct Planned {
    kind: usize,
    place: u64,
    ns: u64,
}

fn main() {
    let options = Options::from_arguments();
    if let Err(error) = run(&options) {
        eprintln!("causes_injector: {error}");
        std::process::exit(2);
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut random = Random::new(options.seed);
    // Forked first, while this process has one thread.
    let noise = noise::start(options, random.next());
    let mut kinds: Vec<Box<dyn Kind>> =
        options.kinds.iter().map(|name| kinds::make(name, options)).collect::<Result<_, _>>()?;
    clock::pin(options.cpu);
    taut_stamp::prepare_thread();
    taut_stamp::name_lock("innocent", &INNOCENT);
    let file = File::create(&options.truth).map_err(|e| format!("{}: {e}", options.truth.display()))?;
    let mut truth = BufWriter::new(file);
    // What the loader and the first stamps cost shall not be a message's.
    sleep_ns(300_000_000);
    for id in 1..=options.messages {
        sleep_ns(random.between(options.gap_ns.0, options.gap_ns.1));
        let planned = plan(options, &mut random, kinds.len());
        let line = message(id, &planned, &mut kinds, &mut random);
        writeln!(truth, "{line}").map_err(|e| e.to_string())?;
    }
    drop(noise);
    truth.flush().map_err(|e| e.to_string())
}

/// Nothing for most messages, one kind for some, two different ones where pairs are asked for.
fn plan(options: &Options, random: &mut Random, kinds: usize) -> Vec<Planned> {
    if kinds == 0 || options.off || random.unit() >= options.share {
        return Vec::new();
    }
    let mut one = |kind| Planned {
        kind,
        place: random.between(0, PLACES),
        ns: (SMALLEST_NS * (LARGEST_NS / SMALLEST_NS).powf(random.unit())) as u64,
    };
    let mut planned = vec![one(0), one(0)];
    planned[0].kind = random.between(0, kinds as u64) as usize;
    if options.pairs && kinds > 1 {
        planned[1].kind = (planned[0].kind + random.between(1, kinds as u64) as usize) % kinds;
    } else {
        planned.truncate(1);
    }
    planned
}

/// Sends one message and returns its line of truth.
fn message(id: u64, planned: &[Planned], kinds: &mut [Box<dyn Kind>], random: &mut Random) -> String {
    let work_ns = random.between(BASE_WORK_NS.0, BASE_WORK_NS.1);
    let first_ns = work_ns * random.between(20, 80) / 100;
    let usual_place = random.between(0, PLACES);
    for p in planned {
        kinds[p.kind].prepare(p.ns);
    }
    let helpers: Vec<_> = kinds.iter().flat_map(|kind| kind.helpers()).map(|pid| pid.to_string()).collect();
    let mut at = |place: u64| {
        for (number, kind) in kinds.iter_mut().enumerate() {
            match planned.iter().find(|p| p.kind == number) {
                Some(p) if p.place == place => kind.strike(p.ns),
                None if usual_place == place => kind.usual(),
                _ => {}
            }
        }
    };
    let waited_before_ns = waited_ns(&helpers);
    let start_ns = monotonic_ns();
    stamp!("start", id);
    at(0);
    let mut work = [Progress::default(), Progress::default()];
    work[0].work(first_ns);
    at(1);
    stamp!("middle", id);
    at(2);
    work[1].work(work_ns - first_ns);
    at(3);
    *INNOCENT.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    stamp!("end", id);
    let end_ns = monotonic_ns();
    applied(id);
    let waited_ns = waited_ns(&helpers) - waited_before_ns;
    // In the usual work nothing is injected: what was taken from it was taken by others, and perhaps by the host, of whom no account is kept.
    let gaps_ns: u64 = work.iter().map(|work| work.stolen_ns).sum();
    let injections: Vec<String> = planned
        .iter()
        .map(|p| {
            let measured_ns = kinds[p.kind].settle();
            let (kind, cause, detail) = kinds[p.kind].name();
            format!(
                r#"{{"kind":"{kind}","cause":"{cause}","detail":"{detail}","place":{},"planned_ns":{},"measured_ns":{measured_ns}}}"#,
                p.place, p.ns
            )
        })
        .collect();
    format!(
        r#"{{"id":{id},"start_ns":{start_ns},"end_ns":{end_ns},"work_ns":{work_ns},"waited_ns":{waited_ns},"gaps_ns":{gaps_ns},"injections":[{}]}}"#,
        injections.join(",")
    )
}

/// How long this thread and its helpers could have run but waited for the CPU, so far: who else is on the machine.
fn waited_ns(helpers: &[String]) -> u64 {
    clock::run_delay_ns() + helpers.iter().map(|pid| clock::run_delay_of(pid)).sum::<u64>()
}
