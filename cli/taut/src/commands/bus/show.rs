//! What `taut bus` prints.

use std::fmt::Write;

use moteus_protocol::query::QueryResult;
use taut_bus::{
    cycle::{Outcome, Statistics},
    transport::Address,
};
use taut_report::{bus_cycles_json, bus_json, words};

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
    format!("{:#}\n", bus_json(outcome, servos, engine))
}

/// Many cycles: phases as distributions, servos that did not answer.
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
    format!("{:#}\n", bus_cycles_json(s, addresses, silent(engine), engine))
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

fn numbers(all: &[f64]) -> String {
    all.iter().map(|x| format!("{x:.3}")).collect::<Vec<_>>().join(" ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
