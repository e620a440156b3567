//! Small findings with the shape of real ones, for golden files and for the page in the browser.

use std::collections::BTreeMap;

use taut_wakeup::{
    Collector, CpuSeries, ExplainedWakeups, Findings, IdleState, LatePiece, LateWake, Part, ResponsibleParty, Series,
    SlackFit, Stalls, Throttling, Turn, Variant, Woken,
};

/// A variant from the lateness of its wakes in ns, one series for each CPU.
pub fn variant(label: &str, settings: &[(&str, &str)], interval_ns: u64, wakes: Vec<Vec<u64>>) -> Variant {
    let cpus: Vec<CpuSeries> = wakes.iter().zip(0..).map(|(wakes, cpu)| series(cpu, interval_ns, wakes)).collect();
    let mut all = Series::default();
    cpus.iter().for_each(|cpu| all.add(&cpu.series));
    // Ten turns of equal length.
    let turn = |at: usize| {
        let mut sketch = taut_stats::Sketch::default();
        for wakes in &wakes {
            wakes.iter().skip(at * wakes.len() / 10).take(wakes.len() / 10).for_each(|late| sketch.record(*late));
        }
        Turn { p50_ns: sketch.quantile(0.5), p99_ns: sketch.quantile(0.99) }
    };
    Variant {
        turns: (0..10).map(turn).collect(),
        label: label.to_owned(),
        settings: settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        interval_ns,
        cpus,
        all,
        own_cpu: 0.021,
        ..Variant::default()
    }
}

fn series(cpu: u32, interval_ns: u64, wakes: &[u64]) -> CpuSeries {
    let mut collector = Collector::new(interval_ns);
    let mut due_ns = 0;
    for late_ns in wakes {
        collector.take(Woken { due_ns, late_ns: *late_ns }, due_ns);
        due_ns += interval_ns * (1 + late_ns / interval_ns);
    }
    CpuSeries { cpu: Some(cpu), series: collector.series() }
}

/// Wakes around `base_ns`, one in 50 late by up to a quarter of a millisecond, and two stalls.
fn wakes(seed: u64, base_ns: u64, spread_ns: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let wake = |at: u64| match next(50) {
        _ if at == 4_200 => 12_000_000,
        _ if at % 3_000 == 2_999 => 1_400_000 + next(900_000),
        0 => base_ns + spread_ns * 2 + next(220_000),
        _ => base_ns + (next(spread_ns) + next(spread_ns) + next(spread_ns)) / 3,
    };
    (0..10_000).map(wake).collect()
}

/// Two ways to wake on two CPUs, with all that may be asked for.
pub fn two_ways() -> Findings {
    let idle = |name: &str, entered, ns| IdleState { name: name.into(), entered, ns };
    let way = |wake: &str, base_ns, spread_ns| Variant {
        page_faults: 3,
        frequency_khz: Some(2_450_000),
        idle_states: vec![idle("0 POLL", 130, 2_000_000), idle("1 HALT", 41_000, 17_900_000_000)],
        ..variant(
            &format!("wake={wake}"),
            &[("interval", "1ms"), ("policy", "other"), ("wake", wake), ("slack", "50us"), ("memory", "locked")],
            1_000_000,
            vec![wakes(base_ns, base_ns, spread_ns), wakes(base_ns + 1, base_ns + 3_000, spread_ns)],
        )
    };
    let mut findings = Findings {
        variants: vec![way("nanosleep", 62_000, 30_000), way("timerfd", 21_000, 24_000)],
        stalls: Some(Stalls {
            threshold_ns: 300_000,
            cpus: 2,
            single: 26,
            single_ns: 26_000_000,
            together: 8,
            together_ns: 49_000_000,
            together_max_ns: 12_000_000,
            by_chance_ns: 40_000,
            real_time: true,
            steal_ns: 10_000_000,
        }),
        throttling: Some(Throttling {
            watched_ns: 4_000_000_000,
            gaps_ns: vec![54_000_000; 4],
            hog_ns: 212_000_000,
            rt_runtime_us: Some(-1),
        }),
        explained: Some(explained()),
        notes: vec!["no idle states are visible here: what the CPU slept cannot be seen".into()],
        machine: machine(),
        started_s: 1_763_712_000.0,
        measured_s: 20.0,
        ..Findings::default()
    };
    findings.variants[0].all.lost = 12;
    findings
}

fn machine() -> BTreeMap<String, String> {
    [
        ("kernel", "6.18.3"),
        ("cpu", "AMD EPYC"),
        ("cpus", "2"),
        ("preemption", "dynamic, mode not visible"),
        ("virtual machine", "yes"),
        ("governor", "not visible"),
        ("command", "taut wakeup --vary wake=nanosleep,timerfd --explain --throttle"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn explained() -> ExplainedWakeups {
    const US: u64 = 1_000;
    let part = |what: &str, us: u64, wakes| Part { what: what.into(), ns: us * US, wakes };
    let piece = |what: &str, who: &str, us: u64| LatePiece { what: what.into(), who: who.into(), ns: us * US };
    ExplainedWakeups {
        threshold_ns: 300_000,
        late: 34,
        recorded: 20_000,
        lost_kernel_events: 0,
        tier: "full".into(),
        parts: vec![
            part("timer late", 46_000, 19),
            part("run queue", 21_000, 13),
            part("interrupt", 6_000, 34),
            part("return to user", 2_000, 34),
        ],
        responsible: vec![
            ResponsibleParty { kind: "thread".into(), name: "hog/1234".into(), ns: 20_000 * US, wakes: 11 },
            ResponsibleParty { kind: "irq".into(), name: "softirq NET_RX".into(), ns: 4_100 * US, wakes: 6 },
        ],
        worst: vec![
            LateWake {
                due_ns: 4_200_000_000,
                cpu: Some(1),
                late_ns: 12_000_000,
                parts: vec![
                    piece("timer late", "hypervisor or firmware", 11_900),
                    piece("interrupt", "local_timer", 90),
                    piece("return to user", "", 10),
                ],
            },
            LateWake {
                due_ns: 7_113_000_000,
                cpu: Some(0),
                late_ns: 2_100_000,
                parts: vec![
                    piece("interrupt", "local_timer", 8),
                    piece("run queue", "hog/1234", 2_080),
                    piece("return to user", "", 12),
                ],
            },
        ],
    }
}

/// A sweep over sleep lengths: three ways to sleep at five lengths.
pub fn sweep() -> Findings {
    let mut findings = Findings {
        machine: BTreeMap::from([("kernel".to_owned(), "6.18.3".to_owned())]),
        measured_s: 34.0,
        ..Findings::default()
    };
    let lengths: [(&str, u64); 5] =
        [("100us", 100_000), ("1ms", 1_000_000), ("10ms", 10_000_000), ("100ms", 100_000_000), ("1s", 1_000_000_000)];
    let rests: [i64; 5] = [17_000, 18_000, 21_000, 34_000, 43_000];
    for (wake, share, least) in [("select", 1_000, 50_000), ("nanosleep", u64::MAX, 50_000), ("timerfd", u64::MAX, 0)] {
        for ((word, sleep_ns), rest) in lengths.into_iter().zip(rests) {
            let slack_ns = (sleep_ns / share).max(least);
            // 1 s of select is 1.042 ms late, as sleeps in old Pythons are.
            let late_ns = slack_ns + rest as u64 - u64::from(share == 1_000 && word == "1s") * 1_000;
            let settings = [("wake", wake), ("interval", word), ("policy", "other")];
            let wakes = (0..100).map(|at| late_ns - 50 + at).collect();
            findings.variants.push(variant(&format!("interval={word} wake={wake}"), &settings, sleep_ns, vec![wakes]));
            findings.slack.push(SlackFit {
                wake: wake.into(),
                sleep_ns,
                p50_ns: Some(late_ns),
                slack_ns,
                rest_ns: Some(late_ns as i64 - slack_ns as i64),
            });
        }
    }
    findings
}

/// What no plot expects: nothing measured, one wake, all wakes alike, wakes on time, names that are markup, many ways.
pub fn edges() -> Findings {
    let mut variants = vec![
        Variant { label: "nothing".into(), interval_ns: 1_000_000, ..Variant::default() },
        variant("one wake", &[], 1_000_000, vec![vec![40_000]]),
        variant("all alike", &[], 1_000_000, vec![vec![40_000; 3_000]]),
        variant("on time", &[], 1_000_000, vec![vec![0; 3_000]]),
        variant("<b>bold</b>", &[], 1_000_000, vec![vec![7, 8_000_000_000], vec![9; 20]]),
        Variant { interval_ns: 0, ..variant("old.hlog", &[], 1_000_000, vec![wakes(7, 20_000, 9_000)]) },
    ];
    variants[4].cpus[1].cpu = None;
    variants.extend(
        (0..8).map(|at| variant(&format!("way {at}"), &[], 1_000_000, vec![wakes(at, 20_000 + at * 9_000, 9_000)])),
    );
    Findings {
        variants,
        stalls: Some(Stalls::default()),
        throttling: Some(Throttling::default()),
        explained: Some(ExplainedWakeups::default()),
        ..Findings::default()
    }
}
