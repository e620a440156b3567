//! A small teleoperation result with the source report's shape, for golden files.

use taut_analysis::*;
use taut_recording::{Ending, Info, Tier};
use taut_stats::{Distribution, Estimate};

/// Five points, four hops, 3021 messages of which 869 reach the arm.
pub fn teleop() -> Analysis {
    let names = [
        "publish.pre_read",
        "sysstate.pre_callback",
        "orch.cb_enter",
        "follower.command_pre_lock",
        "follower.command_applied",
    ];
    let hops = [
        (120_000, 1_930_000, 45_300_000, 0.11),
        (1_220_000, 6_450_000, 9_240_000, 0.52),
        (590_000, 3_620_000, 8_260_000, 0.12),
        (1_060_000, 4_430_000, 8_780_000, 0.25),
    ];
    let delay = |n, p50, p99, max| Delay {
        distribution: Distribution {
            n,
            min_ns: Some(p50 / 4),
            p50_ns: Some(p50),
            p90_ns: Some(p50 * 2),
            p95_ns: Some(p50 * 3),
            p99_ns: Some(p99),
            p999_ns: None,
            max_ns: Some(max),
            mean_ns: Some(p50 as f64 * 1.3),
            sd_ns: Some(p50 as f64),
            estimates: [None, None, None, None, Some(Estimate { low_ns: p99, value_ns: max - 1, high_ns: None })],
        },
        histogram: [(0, 1, 21), (1, 2, 261), (2, 5, 386), (5, 10, 161), (10, 20, 40)]
            .map(|(from, to, count)| Bin { from_ns: from * 1_000_000, to_ns: to * 1_000_000, count })
            .to_vec(),
        percentiles: vec![(0.0, p50 / 4), (0.5, p50), (0.9, p50 * 2), (0.99, p99)],
    };
    let chain = Chain {
        name: "publish.pre_read → follower.command_applied".into(),
        points: names
            .map(|name| Point { name: name.into(), messages: 3021, rate_hz: Some(50.1), ..Point::default() })
            .to_vec(),
        messages: 3021,
        end_to_end: delay(868, 2_430_000, 10_980_000, 14_800_000),
        whole_life: delay(3020, 1_930_000, 9_980_000, 14_800_000),
        hops: names
            .windows(2)
            .zip(hops)
            .map(|(ends, (p50, p99, max, tail))| Hop {
                from: ends[0].into(),
                to: ends[1].into(),
                delay: delay(868, p50, p99, max),
                pdv_p99_ns: Some(p99 - p50 / 4),
                tail_share: Some(tail),
                crosses_threads: ends[1] == "orch.cb_enter",
                ..Hop::default()
            })
            .collect(),
        startup: Some(Startup {
            messages: 1,
            until_ns: 46_800_000,
            max_ns: 46_800_000,
            sentence: "the first message took 46.8 ms, 19 times the median of those after it".into(),
        }),
        outcomes: Outcomes {
            applied: 869,
            in_flight: 1,
            dropped: vec![("validator_timing_bug".into(), 2101), ("work_area".into(), 50)],
            last_seen: vec![LastSeen {
                point: "follower.command_pre_hardware_write".into(),
                reason: "validator_timing_bug".into(),
                messages: 2101,
            }],
            ..Outcomes::default()
        },
        series: (0..869).map(|i| (i * 69_000_000, 2_000_000 + (i * 7_919) % 9_000_000)).collect(),
        explained: explained(),
        ..Chain::default()
    };
    Analysis {
        info: Info {
            taut_version: "0.1.0".into(),
            command: ["python", "-m", "workloads.teleop"].map(String::from).to_vec(),
            host: "robot".into(),
            kernel: "6.18.0".into(),
            cpu: "AMD EPYC".into(),
            cpus: 2,
            git_revision: "abc1234".into(),
            tier: Tier::Full,
            kernel_source: "ftrace".into(),
            ..Info::default()
        },
        ending: Some(Ending { stamps: 30_000, kernel_events: 900_000, ..Ending::default() }),
        totals: Totals {
            duration_s: 60.3,
            stamps: 30_000,
            kernel_events: 900_000,
            clock_error_ns: Some(23.0),
            file_bytes: 4_200_000,
            lost_telemetry: 3,
            trips: Some(Trips { all: 3, false_ones: 3 }),
            ..Totals::default()
        },
        chains: vec![chain],
        signals: vec![
            Signal { name: "knee.actual".into(), points: wave(2_000_000) },
            Signal { name: "knee.commanded".into(), points: wave(0) },
            Signal {
                name: "battery_v".into(),
                points: (0..60).map(|s| (s * 1_000_000_000, 24.0 - s as f64 / 100.0)).collect(),
            },
        ],
        tracking: vec![Tracking { name: "knee".into(), n: 600, p50: 0.0042, p99: 0.0125, max: 0.0126 }],
        telemetry: vec![Telemetry {
            topic: "/telemetry/leg".into(),
            type_name: "telemetry/msg/Leg".into(),
            values: 37,
            messages: 23_997,
            bytes: 23_997 * 208,
            rate_hz: Some(399.95),
            period: Distribution {
                n: 23_996,
                min_ns: Some(2_410_000),
                p50_ns: Some(2_500_000),
                p99_ns: Some(2_630_000),
                max_ns: Some(12_500_000),
                ..Distribution::default()
            },
            lost: 3,
            gaps: Some(Gaps { count: 1, messages: 3 }),
        }],
        points: vec![Point {
            name: "camera.frame".into(),
            is_due: false,
            messages: 1809,
            rate_hz: Some(30.0),
            period: Distribution {
                n: 1808,
                min_ns: Some(28_200_000),
                p50_ns: Some(33_300_000),
                p99_ns: Some(41_700_000),
                max_ns: Some(133_000_000),
                ..Distribution::default()
            },
            period_jitter: Distribution { n: 1808, p99_ns: Some(8_400_000), ..Distribution::default() },
            gaps: 4,
            missing: 5,
            longest_gaps: vec![Gap { from_ns: 12_400_000_000, ns: 133_000_000, missing: 3 }],
            threads: vec!["camera/4250".into()],
        }],
        histograms: vec![Histogram {
            name: "thread 0".into(),
            unit: "ns".into(),
            n: 2000,
            min: Some(37_000),
            p50: Some(Quantile::AtMost(57_999)),
            p90: Some(Quantile::AtMost(98_999)),
            p99: Some(Quantile::AtLeast(400_000)),
            p999: None,
            max: Some(172_860_999),
            overflow: 31,
            overflow_from: 400_000,
            buckets: vec![(37_000, 37_999, 20), (57_000, 57_999, 1949)],
        }],
        profile: Some(profile()),
        ..Analysis::default()
    }
}

/// Five paths of two threads; one function is not known, one has a name that means harm.
fn profile() -> Profile {
    let folded = [
        ("python;py::main:robot.py;py::plan:robot.py;solve(Arm const&)", 410),
        ("python;py::main:robot.py;py::plan:robot.py;[libm.so.6]", 90),
        ("python;py::main:robot.py;read_[k];schedule_[k]", 60),
        ("python;dds.recv;take;</svg><script>alert(1)</script>", 30),
        ("python;dds.recv;take", 10),
    ];
    let folded = folded.map(|(path, count)| (path.to_owned(), count)).into();
    Profile { samples: 600, lost: 3, frames: 2260, unnamed: 90, folded }
}

/// The same loop made right: an eighth of the latency, all setpoints delivered, and no false trip.
pub fn teleop_made_right() -> Analysis {
    let mut analysis = teleop();
    analysis.totals.trips = Some(Trips::default());
    let chain = &mut analysis.chains[0];
    for delay in [&mut chain.end_to_end, &mut chain.whole_life] {
        let d = &mut delay.distribution;
        for figure in [&mut d.min_ns, &mut d.p50_ns, &mut d.p90_ns, &mut d.p95_ns, &mut d.p99_ns, &mut d.max_ns] {
            *figure = figure.map(|ns| ns / 8);
        }
        for bin in &mut delay.histogram {
            (bin.from_ns, bin.to_ns) = (bin.from_ns / 8, bin.to_ns / 8);
        }
        for (_, ns) in &mut delay.percentiles {
            *ns /= 8;
        }
    }
    chain.outcomes = Outcomes { applied: 3020, dropped: vec![("superseded".into(), 1)], ..Outcomes::default() };
    chain.explained.causes.retain(|share| share.cause != Cause::Gil);
    chain.explained.causes[0].tail_share = 0.88;
    analysis
}

/// A joint that swings once a second for a minute, ten values a second, so late.
fn wave(late_ns: u64) -> Vec<(u64, f64)> {
    let angle = |ns: u64| (ns as f64 / 1e9 * std::f64::consts::TAU).sin();
    (0..600).map(|at| at * 100_000_000).map(|ns| (ns + late_ns, angle(ns))).collect()
}

/// What no plot expects: chains of no, one, two and equal messages, of zero and of centuries, of many names.
pub fn edges() -> Analysis {
    let long = "long".repeat(60);
    let mut cases: Vec<(String, Vec<u64>)> = vec![
        ("empty".into(), vec![]),
        ("one".into(), vec![1_000_000]),
        ("two".into(), vec![1_000_000, 7_000_000]),
        ("equal".into(), vec![2_000_000; 300]),
        ("zero".into(), vec![0; 50]),
        ("zero to one".into(), (0..500).map(|i| i % 2).collect()),
        ("centuries".into(), (1..2000u64).map(|i| i * 4_000_000_000_000_000).collect()),
        ("an outlier".into(), (0..2000).map(|i| 1_000_000 + i * 1_000).chain([900_000_000]).collect()),
        ("<b>&amp; \"quoted\" </script>".into(), vec![3_000_000; 20]),
        (long, (0..100).map(|i| i * 10_000).collect()),
        ("מפרק.ימין שלום".into(), vec![3_000_000; 20]),
        ("two\nlines\tand a tab".into(), vec![3_000_000; 20]),
    ];
    cases.extend((0..20).map(|at| (format!("chain {at}"), (0..40).map(|i| 1_000_000 + i * at * 1_000).collect())));
    let chain = |(name, sorted): (String, Vec<u64>)| {
        let delay = Delay {
            distribution: Distribution::of(&sorted, &sorted),
            histogram: taut_stats::histogram(&sorted)
                .into_iter()
                .map(|(from_ns, to_ns, count)| Bin { from_ns, to_ns, count })
                .collect(),
            percentiles: taut_stats::percentile_curve(&sorted),
        };
        let n = sorted.len() as u64;
        let points = ["begin", "end"].map(|end| format!("{name}.{end}"));
        let mut explained = explained();
        explained.causes[0].detail = name.clone();
        explained.responsible[0].name = name.clone();
        explained.paths[0].lanes[0].thread = name.clone();
        explained.paths[0].path[1].note = name.clone();
        Chain {
            points: points.clone().map(|name| Point { name, messages: n, ..Point::default() }).to_vec(),
            hops: vec![Hop { from: points[0].clone(), to: points[1].clone(), delay: delay.clone(), ..Hop::default() }],
            end_to_end: delay.clone(),
            whole_life: delay,
            messages: n,
            outcomes: Outcomes { applied: n, dropped: vec![(name.clone(), 0)], ..Outcomes::default() },
            series: sorted.iter().enumerate().map(|(at, ns)| (at as u64 * 1_000_000, *ns)).collect(),
            explained,
            name,
            ..Chain::default()
        }
    };
    Analysis { chains: cases.into_iter().map(chain).collect(), ..teleop() }
}

/// Two causes of weight, a lock that does not contribute, and one message with its path.
fn explained() -> Explained {
    let share = |cause, detail: &str, tail_share, time_ns, typical_ns| CauseShare {
        cause,
        detail: detail.into(),
        tail_share,
        excess_ns: (tail_share * 83_500_000.0) as u64,
        time_ns,
        typical_ns,
        messages: 9,
    };
    let gil = share(Cause::Gil, "held by python/4243", 0.61, 52_000_000, 120_000);
    let wakeup = share(Cause::Wakeup, "by python/4243", 0.27, 23_000_000, 60_000);
    let work = share(Cause::Cpu, "", 0.12, 19_000_000, 900_000);
    let wait = Distribution { n: 868, min_ns: Some(0), p50_ns: Some(300), p99_ns: Some(2_100), ..Default::default() };
    let hypothesis = |name: &str, result, tail_share: f64, sentence: &str| Hypothesis {
        hypothesis: name.into(),
        result,
        decided_by: String::new(),
        is_asked: false,
        wait: wait.clone(),
        touched: 200,
        tail_share,
        tail_share_interval: (tail_share * 0.8, (tail_share * 1.2).min(1.0)),
        sentence: sentence.into(),
    };
    let piece = |from_us: u64, to_us: u64, hop, lane, cause, detail: &str, note: &str| PathPiece {
        from_ns: from_us * 1000,
        to_ns: to_us * 1000,
        hop,
        lane,
        cause,
        detail: detail.into(),
        note: note.into(),
        behind: None,
        by: String::new(),
    };
    let time = MessageTime {
        id: 1734,
        start_ns: 1_000_000,
        total_ns: 11_000_000,
        pieces: vec![
            TimePiece { cause: Cause::Gil, detail: gil.detail.clone(), ns: 8_000_000 },
            TimePiece { cause: Cause::Cpu, detail: String::new(), ns: 2_600_000 },
            TimePiece { cause: Cause::Wakeup, detail: wakeup.detail.clone(), ns: 400_000 },
        ],
    };
    let path = MessagePath {
        passes: [1, 2, 10, 11, 12].into_iter().enumerate().map(|(at, ms)| (at, ms * 1_000_000)).collect(),
        path: vec![
            piece(1000, 2000, 0, 0, Cause::Cpu, "", ""),
            piece(2000, 10_000, 1, 1, Cause::Gil, "held by python/4243", "python/4243 ran 98 % of it, in map update"),
            piece(10_000, 10_400, 2, 1, Cause::Wakeup, "by python/4243", "on its CPU ran python/4243 400 µs"),
            piece(10_400, 11_000, 2, 1, Cause::Cpu, "", ""),
            piece(11_000, 12_000, 3, 1, Cause::Cpu, "", ""),
        ],
        lanes: vec![
            Lane { thread: "python/4242".into(), states: vec![(900_000, 12_000_000, State::Running)] },
            Lane {
                thread: "python/4244".into(),
                states: vec![
                    (900_000, 10_000_000, State::Blocked),
                    (10_000_000, 10_400_000, State::Woken),
                    (10_400_000, 12_100_000, State::Running),
                ],
            },
        ],
        time: time.clone(),
    };
    Explained {
        messages: 868,
        tail_messages: 9,
        tail_in_holes: 0,
        tail_quantile: Some(0.99),
        tail_limit_ns: 10_980_000,
        hops: vec![vec![], vec![gil.clone()], vec![wakeup.clone()], vec![work.clone()]],
        by_cause: [&gil, &wakeup, &work]
            .map(|share: &CauseShare| CauseShare { detail: String::new(), ..share.clone() })
            .to_vec(),
        causes: vec![gil, wakeup, work],
        selected: Selected::Tail(0.99),
        lock_holders: Default::default(),
        modes: vec![Mode {
            from_ns: 9_800_000,
            to_ns: 11_200_000,
            p50_ns: 10_400_000,
            messages: 14,
            share: 0.016,
            causes: vec![ModeCause { cause: Cause::Gil, detail: "held by python/4243".into(), share: 0.97 }],
        }],
        responsible: vec![Party {
            kind: "thread".into(),
            name: "python/4243".into(),
            time_ns: 75_000_000,
            messages: 9,
            causes: vec![Cause::Gil, Cause::Wakeup],
        }],
        hypotheses: vec![
            hypothesis(
                "gil",
                Contribution::Contributes,
                0.61,
                "gil contributes 61 % of the excess, 95 % interval 49 to 73; 868 of 868 messages spent time on it",
            ),
            hypothesis(
                "lock:sdk_lock",
                Contribution::DoesNotContribute,
                0.0,
                "lock:sdk_lock does not contribute: 0 % of the excess, 95 % interval 0 to 0",
            ),
            hypothesis("irq", Contribution::DoesNotContribute, 0.001, "irq does not contribute: 0 % of the excess"),
        ],
        predictions: vec![Prediction {
            without: "gil".into(),
            p50_ns: Some(2_310_000),
            p99_ns: Some(4_900_000),
            quantiles: [(0.5, 2_430_000, 2_310_000), (0.95, 7_290_000, 3_900_000), (0.99, 10_980_000, 4_900_000)]
                .map(|(quantile, before_ns, after_ns)| Predicted {
                    quantile,
                    before_ns,
                    after_ns,
                    interval_ns: (after_ns * 9 / 10, after_ns * 6 / 5),
                })
                .to_vec(),
            percentiles: vec![(0.0, 900_000), (0.5, 2_310_000), (0.9, 3_300_000), (0.99, 4_900_000)],
            gain_quantile: Some(0.99),
            gain: 0.55,
            missed: None,
            is_replayed: false,
            keeps_typical: false,
            half_in: 4,
            remaining: vec![ModeCause { cause: Cause::Wakeup, share: 0.62, ..ModeCause::default() }],
            assumption: "no message spends time on gil, and nothing else takes its place".into(),
        }],
        recommendations: vec![Recommendation {
            against: "gil".into(),
            evidence: "gil (held by python/4243) is 61 % of the excess: 52.0 ms in 9 of 9 messages".into(),
            remedy: "give the loop a process of its own".into(),
            gain: 0.55,
            verify: "record again with the change and compare".into(),
        }],
        times: Vec::new(),
        paths: vec![path],
        sides: None,
    }
}
