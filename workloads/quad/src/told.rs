//! What the programs print when they end: one JSON object.

use serde_json::{Map, Value, json};

use crate::{host::Host, world::Exchanges};

/// What the host saw.
pub fn host(host: &Host) -> String {
    let statistics = host.statistics();
    let (expected, missing) = statistics.replies();
    let phases: Map<String, Value> = statistics
        .distributions()
        .into_iter()
        .map(|(name, d)| {
            let figures = json!({ "n": d.n, "p50_ns": d.p50_ns, "p90_ns": d.p90_ns, "p99_ns": d.p99_ns,
                "p999_ns": d.p999_ns, "max_ns": d.max_ns });
            (name.to_owned(), figures)
        })
        .collect();
    let cause = host.cause();
    let object = json!({
        "cycles": statistics.cycles(),
        "skipped": statistics.skipped(),
        "expected": expected,
        "missing": missing,
        "stood": host.stood(),
        "refused": host.refused(),
        "cause": cause.as_ref().map(|(cause, ..)| cause),
        "cause_cycle": cause.as_ref().map(|(_, cycle, _)| cycle),
        "later_causes": cause.as_ref().map(|(.., later)| later),
        "warmest_c": host.warmest_c().is_finite().then(|| host.warmest_c()),
        "phases": phases,
    });
    format!("{object}\n")
}

/// What the servos' side saw of the physics.
pub fn servos(exchanges: Exchanges) -> String {
    format!("{}\n", json!({ "steps": exchanges.done, "skipped": exchanges.skipped }))
}
