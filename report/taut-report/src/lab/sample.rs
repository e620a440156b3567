//! A lab for the tests: eight rounds in which a flood doubles every time and hides two plans, and the search for the
//! rate that does.

use std::path::Path;

use taut_lab::{Breaking, Broken, Edge, Lab, Misfortune, Outcome, Probe, Proportion, Results, Status, Trial};

use super::LabShown;

const LAB: &str = r#"
title = "an echo"
trials = 8
[trial]
command = "true"
timeout_s = 1
[[process]]
name = "robot"
command = "robot"
cpus = "1"
[metrics.ask_ms]
unit = "ms"
deadline = 20
[[scenario]]
name = "none"
[[scenario]]
name = "flood"
"#;

pub(crate) fn shown() -> LabShown<'static> {
    LabShown { verb: "run", file: Path::new("lab.toml"), folder: Path::new("out"), title: "an echo", seed: 1 }
}

pub(crate) fn results() -> Results {
    let lab = Lab::parse(LAB, Path::new("lab.toml")).unwrap();
    taut_lab::results(&lab, &trials(), "cgroup v1 cpuset")
}

pub(crate) fn trials() -> Vec<Trial> {
    (0..8).flat_map(|round| [trial(round, "none"), trial(round, "flood")]).collect()
}

fn trial(round: u32, scenario: &str) -> Trial {
    let flood = scenario == "flood";
    let failed = flood && round < 2;
    let ask_ms = (9.0 + f64::from(round)) * if flood { 2.0 } else { 1.0 };
    serde_json::from_value(serde_json::json!({
        "round": round, "scenario": scenario, "index": round, "varied": null,
        "status": if failed { "planning_failed" } else { "success" }, "reason": failed.then_some("no plan"),
        "started_unix_s": 0.0, "wall_s": 1.0, "exit_code": 0, "signal": null,
        "metrics": { "ask_ms": ask_ms, "wall_s": ask_ms / 1e3 },
        "achieved": if flood {
            serde_json::json!([{ "load": "udp 4 × 1000 Hz × 1024 B", "unit": "messages/s received", "target": 4000.0,
                "achieved": 3991.5, "sent": 3999.0, "cpus_busy": 0.123, "cpus_wanted": 0.2, "applied": true }])
        } else {
            serde_json::json!([])
        },
        "cpus_busy": { "robot": 0.2, "trial": 0.1 }, "ran_s": { "robot": { "1": 0.2 } }, "looks": 2, "threads": 4,
        "pressure": { "cpu_s": 0.1, "memory_s": 0.0, "io_s": 0.0, "steal_s": 0.0 }, "logs": "logs/r0000-flood-t0/trial-0"
    }))
    .unwrap()
}

pub(crate) fn broken() -> Broken {
    let asked: Breaking = serde_json::from_value(serde_json::json!({
        "scenario": "flood", "vary": "rate_hz", "from": 250.0, "to": 8000.0
    }))
    .unwrap();
    let probe = |value: f64, achieved: f64, k, n, proven| Probe {
        value,
        achieved: Some(achieved),
        cpus_wanted: Some(0.2),
        success: Proportion::of(k, n),
        proven,
    };
    let edge = |probe: &Probe| Edge {
        value: probe.value,
        achieved: probe.achieved,
        cpus_wanted: probe.cpus_wanted,
        success: probe.success,
    };
    let probes = vec![
        probe(250.0, 998.0, 3, 3, None),
        probe(1414.0, 5601.0, 43, 43, Some("fine")),
        probe(1682.0, 6644.0, 20, 26, None),
        probe(2000.0, 7630.0, 2, 8, Some("broken")),
        probe(8000.0, 13_900.0, 0, 4, Some("broken")),
    ];
    Broken {
        confinement: "affinity".into(),
        placement: "robot on CPU 1 · this machine's network".into(),
        asked,
        unit: "messages/s received".into(),
        outcome: Outcome::Between,
        threshold: (Some(5601.0), Some(7630.0)),
        fine: Some(edge(&probes[1])),
        broken: Some(edge(&probes[3])),
        trials: 84,
        invalid: 1,
        misfortunes: vec![Misfortune {
            status: Status::ExecutionFailed,
            reason: "the controller stalled".into(),
            trials: 6,
            logs: "logs/r0012-flood-2000-t12/trial-12".into(),
        }],
        why: None,
        probes,
    }
}
