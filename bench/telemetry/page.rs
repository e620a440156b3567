//! The page `docs/proof/telemetry.md`, and all figures, `bench/telemetry/results.md`.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    CONTENDERS, Turn,
    signal::{RATE_HZ, VALUES},
    sizes::Sizes,
};

/// The promise of a log: of one core.
const MOST_SHARE: f64 = 0.02;
/// What a second of the signals is.
const RATE_BYTES: f64 = (VALUES * size_of::<f64>()) as f64 * RATE_HZ;
/// The promise of the call in the loop.
const MOST_CALL_NS: u64 = 250;
/// The later one, of a copy to memory as cold: docs/performance.md has it, too.
const MOST_COPIES: f64 = 1.2;

/// The page, and the results.
pub fn page(turns: &[Vec<Turn>], calls: &Value, sizes: &Sizes, seconds: f64, rounds: usize) -> (String, String) {
    let mut out = String::new();
    let median = |of: &dyn Fn(&Turn) -> f64, at: usize| {
        let mut all: Vec<f64> = turns[at].iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        (all[all.len() / 2], all[0], all[all.len() - 1])
    };
    let nothing = median(&|turn| turn.cpu_share * 100.0, 0).0;
    let cpu_of = |at: usize| {
        let reads = if at == 0 { 0.0 } else { nothing };
        median(&move |turn: &Turn| turn.cpu_share * 100.0 - reads, at)
    };
    // Writing to a String does not fail.
    let _ = write!(
        out,
        "# Figures of a telemetry log's cost\n\nMade by `bench/telemetry/run`: {rounds} rounds of {seconds} s for each way, in an order that changes \
         with each round. Do not edit. The page: [cost of a telemetry log](../../docs/proof/telemetry.md). 2000 doubles, 400 times a second: a third \
         hardly change, a third are sensors of 12 bits with noise, a third are smooth.\n\n\
         ## CPU\n\nCPU time of everything that logs: the calls, other threads, and for taut the recording process. Not counted are the loop's thread between the \
         calls, and the bench's readings of the clock, which are the row \"nothing\". Median of the rounds (least to most); the ratio is that of the medians.\n\n\
         | way | % of a core | against taut | the call in the loop: p50 | p99 | p99.9 | largest | n | MB/s on disk |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    let ours = cpu_of(1).0.max(1e-6);
    let mut short = String::new();
    for (at, (_, name)) in CONTENDERS.iter().enumerate() {
        let (middle, least, most) = cpu_of(at);
        let [p50, p99, p999, max] = [0, 1, 2, 3].map(|q| median(&move |turn: &Turn| turn.call_ns[q], at).0);
        let _ = writeln!(
            out,
            "| {name} | {:.2} ({:.2} to {:.2}) | {:.1} | {} | {} | {} | {} | {} | {:.2} |",
            middle,
            least,
            most,
            middle / ours,
            time(p50),
            time(p99),
            time(p999),
            time(max),
            turns[at].iter().map(|turn| turn.n).sum::<u64>(),
            median(&|turn| turn.file_bytes as f64, at).0 / 1e6 / seconds,
        );
        let _ = writeln!(short, "| {name} | {middle:.2} ({least:.2} to {most:.2}) | {} | {} |", time(p50), time(p999));
    }
    let at = |kind: &str| CONTENDERS.iter().position(|(contender, _)| *contender == kind).expect("a contender");
    let recorder = |kind: &str| median(&|turn| turn.recorder_share * 100.0, at(kind)).0;
    let held = |kind: &str| {
        let (median, _, most) = cpu_of(at(kind));
        match (median <= MOST_SHARE * 100.0, most <= MOST_SHARE * 100.0) {
            (true, true) => "held in every round".to_owned(),
            (true, false) => format!("held by the median of the rounds, **missed** by the largest ({most:.2} %)"),
            _ => "**missed**".to_owned(),
        }
    };
    // Doubles of a run by the speed of its compressor, which the second row of the table below is.
    let compression = RATE_BYTES / (sizes.compressors[1].2 * 1e6) * 100.0;
    let limit = format!(
        "**Limit: at most {:.0} % of a core**: {}; without compression {}.",
        MOST_SHARE * 100.0,
        held("taut"),
        held("stored")
    );
    let _ = write!(
        out,
        "\n{limit} taut's recording process alone takes {:.2} %, without compression {:.2} %, \
         for a program that logs nothing {:.2} %. Compression at the speed below, of an otherwise idle processor, takes {compression:.2} %.\n\n\
         ## The call in the loop, by size\n\nOne loop for each size, under `taut record`, {}, a thousand cycles a second, asleep until 150 µs before each. It writes, and copies \
         as many bytes with `memcpy` to memory that was used before (*warm*) and to memory that was last used 2048 turns ago, as the ring's slot was (*cold*). A \
         copy is the least that logging a struct can take. Each figure has two readings of the clock, which are alone under *nothing*.\n\n\
         | values | bytes | n | write p50 | p99 | p99.9 | warm p50 | p99.9 | cold p50 | p99.9 | nothing p50 | p99.9 | p99.9 ≤ {MOST_CALL_NS} ns |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        recorder("taut"),
        recorder("stored"),
        recorder("idle"),
        if calls["is_realtime"] == true { "SCHED_FIFO" } else { "without priority" },
    );
    // p99.9 of the write, of the copy to memory as cold, and of the clock's readings alone.
    let (mut writes, mut copies, mut alone, mut held_at) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for row in calls["rows"].as_array().into_iter().flatten() {
        let ns = |what: &str, at: usize| row[what][at].as_u64().unwrap_or(0);
        let values = row["values"].as_u64().unwrap_or(0);
        let verdict = match ["write", "cold", "nothing"].map(|what| ns(what, 2) <= MOST_CALL_NS) {
            [true, ..] => "held",
            [_, true, _] => "missed",
            [_, _, true] => "missed; so does memcpy",
            _ => "missed; so does nothing at all",
        };
        writes.push(ns("write", 2));
        copies.push(ns("cold", 2));
        alone.push(ns("nothing", 2));
        held_at += usize::from(verdict == "held");
        let _ = writeln!(
            out,
            "| {values} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {verdict} |",
            values * 8,
            row["n"],
            ns("write", 0),
            ns("write", 1),
            ns("write", 2),
            ns("warm", 0),
            ns("warm", 2),
            ns("cold", 0),
            ns("cold", 2),
            ns("nothing", 0),
            ns("nothing", 2),
        );
    }
    out.push_str("\nns. Lost: ");
    let lost: Vec<String> = calls["rows"].as_array().into_iter().flatten().map(|row| row["lost"].to_string()).collect();
    let _ = write!(
        out,
        "{} (by size).\n\n## Compression\n\nThe messages of the first table's recording, in chunks of 512 KiB; one thread, the best of three.\n\n\
         | | ratio | in, MB/s | out, MB/s |\n|---|---|---|---|\n",
        lost.join(", ")
    );
    for (name, ratio, fast_in, fast_out) in &sizes.compressors {
        let _ = writeln!(out, "| {name} | {ratio:.2} | {fast_in:.0} | {fast_out:.0} |");
    }
    let _ = write!(
        out,
        "\n## Reading a part\n\nOf the same recording, {:.1} MB, with an index at its end.\n\n| | bytes read | ms |\n|---|---|---|\n",
        sizes.file_bytes as f64 / 1e6
    );
    for (what, bytes, ms) in &sizes.reads {
        let _ = writeln!(out, "| {what} | {bytes} | {ms:.2} |");
    }
    let machine = machine();
    let _ = write!(out, "\n{machine}\n");
    let range = |of: &[u64]| format!("{} to {} ns", of.iter().min().unwrap_or(&0), of.iter().max().unwrap_or(&0));
    let beside_copies =
        writes.iter().zip(&copies).filter(|(write, copy)| **write as f64 <= MOST_COPIES * **copy as f64).count();
    let held_of = |n: usize| if n > 0 && n == writes.len() { "held" } else { "**missed**; held" };
    let page = format!(
        "# Cost of a telemetry log\n\nMade by `bench/telemetry/run`: {rounds} rounds of {seconds} s for each way, in an order that changes with each \
         round. 2000 doubles, 400 times a second. {machine} Do not edit. All figures: [results](../../bench/telemetry/results.md).\n\n\
         {limit}\n\n\
         CPU time of everything that logs, the recording process included: median of the rounds (least to most).\n\n\
         | way | % of a core | the call in the loop: p50 | p99.9 |\n|---|---|---|---|\n{short}\n\
         **Limit of the call: p99.9 ≤ {MOST_CALL_NS} ns**: {} at {held_at} of {} sizes from 64 to 16000 bytes, in a loop of 1000 cycles a second. The p99.9 was {}, \
         that of a `memcpy` to memory as cold {}, of the readings of the clock alone {}. A later limit, {MOST_COPIES} times that `memcpy`: {} at \
         {beside_copies} of them ([performance](../performance.md)).\n",
        held_of(held_at),
        writes.len(),
        range(&writes),
        range(&copies),
        range(&alone),
        held_of(beside_copies),
    );
    (page, out)
}

fn time(ns: f64) -> String {
    if ns < 10_000.0 { format!("{ns:.0} ns") } else { format!("{:.0} µs", ns / 1000.0) }
}

fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cpus = std::thread::available_parallelism().map_or(0, |n| n.get());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "Machine: {}, {cpus} CPUs; load average at the end: {}.",
        model.trim_start_matches([' ', '\t', ':']),
        load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
    )
}
