//! A small teleoperation result with the source report's shape, for golden files.

use taut_analysis::*;
use taut_recording::{Ending, Info, Tier};
use taut_stats::Distribution;

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
            dropped: vec![("speed_limit".into(), 2101), ("work_area".into(), 50)],
            last_seen: vec![("follower.command_pre_hardware_write".into(), "speed_limit".into(), 2101)],
            ..Outcomes::default()
        },
        series: (0..869).map(|i| (i * 69_000_000, 2_000_000 + (i * 7_919) % 9_000_000)).collect(),
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
            ..Totals::default()
        },
        chains: vec![chain],
        ..Analysis::default()
    }
}
