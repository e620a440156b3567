//! The JSON forms of `taut bus`. The schema is documented in `docs/schemas/bus.schema.json`, generated from these types.

use std::collections::BTreeMap;

use moteus_protocol::query::QueryResult;
use schemars::JsonSchema;
use serde::Serialize;
use taut_bus::{
    cycle::{self, Clock, Engine, Outcome, ServoHealth, Statistics},
    transport::{Address, Transport},
};

use taut_stats::Distribution;

/// Either of the two.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Form {
    Once(Once),
    Cycles(Cycles),
}

/// One cycle.
#[derive(Serialize, JsonSchema)]
struct Once {
    schema_version: u32,
    /// "bus"
    kind: &'static str,
    /// Frames that the buses took.
    sent: usize,
    /// Replies that were wanted.
    expected: usize,
    /// Of these, replies that did not come.
    missing: usize,
    /// What the inertial unit told; null where it was not asked or did not answer.
    attitude: Option<Attitude>,
    /// In the order in which they were taken.
    replies: Vec<Reply>,
    phases: Phases,
    /// In the order of the command line.
    buses: Vec<Bus>,
}

#[derive(Serialize, JsonSchema)]
struct Attitude {
    /// w, x, y, z
    quaternion: [f64; 4],
    rate_dps: [f64; 3],
    acceleration_m_s2: [f64; 3],
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// From 1, in the order of the command line.
    bus: usize,
    servo: u8,
    id: u32,
    /// Hexadecimal.
    data: String,
    /// Whether it was waited for.
    expected: bool,
    /// Since the first command.
    after_ns: u64,
    /// Of servos that were queried or held; else null.
    state: Option<State>,
}

#[derive(Serialize, JsonSchema)]
struct State {
    mode: String,
    position_rev: f32,
    velocity_rev_s: f32,
    torque_nm: f32,
    voltage_v: f32,
    temperature_c: f32,
    /// 0: none.
    fault: i8,
}

#[derive(Serialize, JsonSchema)]
struct Phases {
    send_ns: u64,
    imu_ns: u64,
    receive_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct Bus {
    sent: u64,
    received: u64,
    /// Frames that lay there when a cycle began.
    late: u64,
    /// Frames from servos that were not asked, or twice.
    unexpected: u64,
    /// Frames that found no room in the engine's list.
    dropped: u64,
    errors: u64,
    last_error: Option<String>,
}

/// Many cycles at a rate.
#[derive(Serialize, JsonSchema)]
struct Cycles {
    schema_version: u32,
    /// "bus-cycles"
    kind: &'static str,
    /// As on the command line.
    addresses: Vec<String>,
    cycles: u64,
    /// Cycles left out because one before took longer than its period.
    skipped: u64,
    expected: u64,
    missing: u64,
    /// "wait" is how late the thread woke, "cycle" all from there.
    phases: BTreeMap<String, Distribution>,
    /// Servos of which replies are missing.
    silent: Vec<Silent>,
    /// In the order of the command line.
    buses: Vec<Bus>,
}

#[derive(Serialize, JsonSchema)]
struct Silent {
    /// From 1.
    bus: usize,
    servo: u8,
    asked: u64,
    missing: u64,
}

/// One cycle; of `servos`, by bus and id, replies are read as states.
pub fn bus_json<T: Transport, C: Clock>(
    outcome: &Outcome,
    servos: &[(usize, u8)],
    engine: &Engine<T, C>,
) -> serde_json::Value {
    let t = outcome.times;
    let reply = |reply: &cycle::Reply| Reply {
        bus: reply.bus + 1,
        servo: reply.servo,
        id: reply.frame.arbitration_id,
        data: reply.frame.payload().iter().map(|byte| format!("{byte:02x}")).collect(),
        expected: reply.expected,
        after_ns: reply.at_ns - t.send_ns,
        state: servos.contains(&(reply.bus, reply.servo)).then(|| state(&QueryResult::parse(&reply.frame))),
    };
    value(Form::Once(Once {
        schema_version: crate::SCHEMA_VERSION,
        kind: "bus",
        sent: outcome.sent,
        expected: outcome.expected,
        missing: outcome.missing,
        attitude: outcome.attitude.as_ref().map(|a| Attitude {
            quaternion: a.quaternion,
            rate_dps: a.rate_dps,
            acceleration_m_s2: a.acceleration_m_s2,
        }),
        replies: engine.replies().iter().map(reply).collect(),
        phases: Phases {
            send_ns: t.imu_ns - t.send_ns,
            imu_ns: t.receive_ns - t.imu_ns,
            receive_ns: t.end_ns - t.receive_ns,
        },
        buses: buses(engine),
    }))
}

/// Many cycles; `silent` by bus and id.
pub fn bus_cycles_json<T: Transport, C: Clock>(
    statistics: &Statistics,
    addresses: &[Address],
    silent: impl Iterator<Item = (usize, u8, ServoHealth)>,
    engine: &Engine<T, C>,
) -> serde_json::Value {
    let (expected, missing) = statistics.replies();
    let phases = statistics.distributions();
    value(Form::Cycles(Cycles {
        schema_version: crate::SCHEMA_VERSION,
        kind: "bus-cycles",
        addresses: addresses.iter().map(Address::to_string).collect(),
        cycles: statistics.cycles(),
        skipped: statistics.skipped(),
        expected,
        missing,
        phases: phases.iter().map(|(name, d)| ((*name).to_owned(), d.clone())).collect(),
        silent: silent
            .map(|(bus, servo, health)| Silent { bus: bus + 1, servo, asked: health.asked, missing: health.missing })
            .collect(),
        buses: buses(engine),
    }))
}

fn value(form: Form) -> serde_json::Value {
    serde_json::to_value(form).unwrap_or_default()
}

fn buses<T: Transport, C: Clock>(engine: &Engine<T, C>) -> Vec<Bus> {
    let bus = |at: usize| {
        let h = engine.bus_health(at);
        Bus {
            sent: h.sent,
            received: h.received,
            late: h.late,
            unexpected: h.unexpected,
            dropped: h.dropped,
            errors: h.errors,
            last_error: h.last_error.as_ref().map(ToString::to_string),
        }
    };
    (0..engine.buses().len()).map(bus).collect()
}

fn state(told: &QueryResult) -> State {
    State {
        mode: told.mode.to_string(),
        position_rev: told.position,
        velocity_rev_s: told.velocity,
        torque_nm: told.torque,
        voltage_v: told.voltage,
        temperature_c: told.temperature,
        fault: told.fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&schemars::schema_for!(Form).to_value(), "schemas/bus.schema.json");
    }
}
