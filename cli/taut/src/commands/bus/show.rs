//! What `taut bus` prints.

use std::fmt::Write;

use moteus_protocol::query::QueryResult;
use serde_json::{Value, json};
use taut_bus::{
    cycle::{Attitude, Outcome, Reply, Statistics},
    transport::Address,
};
use taut_report::words;

use super::Buses;

/// One cycle: attitude, frames, states, what is missing.
pub fn once(outcome: &Outcome, servos: &[(usize, u8)], engine: &Buses) -> String {
    let mut text = String::new();
    if let Some(a) = &outcome.attitude {
        let _ = writeln!(
            text,
            "attitude  w x y z {}  rate {} °/s  acceleration {} m/s²",
            numbers(&a.quaternion),
            numbers(&a.rate_dps),
            numbers(&a.acceleration_m_s2)
        );
    }
    for reply in engine.replies() {
        let _ = write!(text, "bus {} servo {:3}  ", reply.bus + 1, reply.servo);
        if servos.contains(&(reply.bus, reply.servo)) && reply.expected {
            let told = QueryResult::parse(&reply.frame);
            let _ = writeln!(
                text,
                "{}  {:.4} rev  {:.4} rev/s  {:.3} Nm  {:.1} V  {:.0} °C  fault {}",
                told.mode, told.position, told.velocity, told.torque, told.voltage, told.temperature, told.fault
            );
        } else {
            let _ = writeln!(text, "id {:04x}  {}", reply.frame.arbitration_id, hex(reply.frame.payload()));
        }
    }
    for (bus, servo) in missing(servos, engine) {
        let _ = writeln!(text, "bus {} servo {servo:3}  no reply", bus + 1);
    }
    let t = outcome.times;
    let _ = writeln!(
        text,
        "{} sent, {} of {} expected replies; send {}, inertial unit {}, receive {}",
        words::quantity(outcome.sent as u64, "frame"),
        outcome.expected - outcome.missing,
        outcome.expected,
        words::duration(t.imu_ns - t.send_ns),
        words::duration(t.receive_ns - t.imu_ns),
        words::duration(t.end_ns - t.receive_ns),
    );
    text + &errors(engine)
}

/// The same for scripts.
pub fn once_json(outcome: &Outcome, servos: &[(usize, u8)], engine: &Buses) -> String {
    let t = outcome.times;
    let reply = |reply: &Reply| {
        let told = servos.contains(&(reply.bus, reply.servo)).then(|| state(&QueryResult::parse(&reply.frame)));
        json!({
            "bus": reply.bus + 1,
            "servo": reply.servo,
            "id": reply.frame.arbitration_id,
            "data": hex(reply.frame.payload()),
            "expected": reply.expected,
            "after_ns": reply.at_ns - t.send_ns,
            "state": told,
        })
    };
    let object = json!({
        "schema_version": 1,
        "kind": "bus",
        "sent": outcome.sent,
        "expected": outcome.expected,
        "missing": outcome.missing,
        "attitude": outcome.attitude.as_ref().map(attitude),
        "replies": engine.replies().iter().map(reply).collect::<Vec<_>>(),
        "phases": { "send_ns": t.imu_ns - t.send_ns, "imu_ns": t.receive_ns - t.imu_ns, "receive_ns": t.end_ns - t.receive_ns },
        "buses": buses(engine),
    });
    format!("{object:#}\n")
}

/// Many cycles: phases as distributions, who did not answer.
pub fn statistics(s: &Statistics, addresses: &[Address], engine: &Buses) -> String {
    let (expected, missing) = s.replies();
    let mut text = format!(
        "{} cycles over {}, {} skipped; {missing} of {expected} replies missing\n\n",
        s.cycles(),
        addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(" "),
        s.skipped(),
    );
    let _ = writeln!(text, "{:<8} {:>9} {:>9} {:>9} {:>9} {:>9}  µs", "", "p50", "p90", "p99", "p99.9", "max");
    for (name, d) in s.distributions() {
        let _ = write!(text, "{name:<8}");
        for ns in [d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns] {
            let _ = write!(text, " {:>9}", ns.map_or_else(|| "–".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3)));
        }
        text.push('\n');
    }
    for (bus, servo, health) in silent(engine) {
        let _ = writeln!(text, "bus {} servo {servo}: {} of {} replies missing", bus + 1, health.missing, health.asked);
    }
    text + &errors(engine)
}

/// The same for scripts.
pub fn statistics_json(s: &Statistics, addresses: &[Address], engine: &Buses) -> String {
    let phases: serde_json::Map<String, Value> = s
        .distributions()
        .into_iter()
        .map(|(name, d)| {
            let figures = json!({ "n": d.n, "min_ns": d.min_ns, "p50_ns": d.p50_ns, "p90_ns": d.p90_ns, "p95_ns": d.p95_ns,
                "p99_ns": d.p99_ns, "p999_ns": d.p999_ns, "max_ns": d.max_ns, "mean_ns": d.mean_ns, "sd_ns": d.sd_ns });
            (name.to_owned(), figures)
        })
        .collect();
    let (expected, missing) = s.replies();
    let silent: Vec<Value> = silent(engine)
        .map(|(bus, servo, h)| json!({ "bus": bus + 1, "servo": servo, "asked": h.asked, "missing": h.missing }))
        .collect();
    let object = json!({
        "schema_version": 1,
        "kind": "bus-cycles",
        "addresses": addresses.iter().map(Address::to_string).collect::<Vec<_>>(),
        "cycles": s.cycles(),
        "skipped": s.skipped(),
        "expected": expected,
        "missing": missing,
        "phases": phases,
        "silent": silent,
        "buses": buses(engine),
    });
    format!("{object:#}\n")
}

/// Whether every bus worked and every wanted reply came.
pub fn is_whole(engine: &Buses, buses: usize) -> bool {
    (0..buses).all(|bus| engine.bus_health(bus).errors == 0) && silent(engine).next().is_none()
}

fn silent(engine: &Buses) -> impl Iterator<Item = (usize, u8, taut_bus::cycle::ServoHealth)> {
    let all = (0..engine.buses().len()).flat_map(|bus| (1..=126).map(move |servo| (bus, servo)));
    all.map(|(bus, servo)| (bus, servo, engine.servo_health(bus, servo))).filter(|(.., health)| health.missing > 0)
}

fn missing(servos: &[(usize, u8)], engine: &Buses) -> Vec<(usize, u8)> {
    let answered = |asked: &&(usize, u8)| !engine.replies().iter().any(|reply| (reply.bus, reply.servo) == **asked);
    servos.iter().filter(answered).copied().collect()
}

fn errors(engine: &Buses) -> String {
    (0..engine.buses().len())
        .filter_map(|bus| {
            let health = engine.bus_health(bus);
            let last = health.last_error.as_ref()?;
            Some(format!("bus {}: {}, the last: {last}\n", bus + 1, words::quantity(health.errors, "error")))
        })
        .collect()
}

fn buses(engine: &Buses) -> Vec<Value> {
    (0..engine.buses().len())
        .map(|bus| {
            let h = engine.bus_health(bus);
            json!({ "sent": h.sent, "received": h.received, "late": h.late, "unexpected": h.unexpected, "dropped": h.dropped,
                "errors": h.errors, "last_error": h.last_error.as_ref().map(ToString::to_string) })
        })
        .collect()
}

fn state(told: &QueryResult) -> Value {
    json!({
        "mode": told.mode.to_string(),
        "position_rev": told.position,
        "velocity_rev_s": told.velocity,
        "torque_nm": told.torque,
        "voltage_v": told.voltage,
        "temperature_c": told.temperature,
        "fault": told.fault,
    })
}

fn attitude(a: &Attitude) -> Value {
    json!({ "quaternion": a.quaternion, "rate_dps": a.rate_dps, "acceleration_m_s2": a.acceleration_m_s2 })
}

fn numbers(all: &[f64]) -> String {
    all.iter().map(|x| format!("{x:.3}")).collect::<Vec<_>>().join(" ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
