//! The leader's process: a state frame comes in, a setpoint goes out. One thread.
//!
//! The robot's own time decides when a setpoint is due, not a timer of the host's: setpoints are then 20 ms apart as the operator
//! moved, and made from a state that has just come.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use taut_stamp::stamp;

use crate::{
    Part,
    clock::Clock,
    commands::Commands,
    links::{Control, Link, Setpoint},
    realtime,
    stream::{STATE_PERIOD_NS, State, StateStream},
    xmlrpc::Value,
};

const SETPOINT_PERIOD_NS: u64 = 20_000_000;

#[derive(Default)]
struct Leader {
    last_source_ns: u64,
    newest_source_ns: u64,
    produced: u64,
    overflowed: u64,
}

impl Leader {
    /// Takes what came, with `send` for each setpoint; false at the stream's end.
    fn turn(
        &mut self,
        now_ns: u64,
        read: impl FnOnce(&mut Vec<State>) -> bool,
        mut send: impl FnMut(&Setpoint) -> bool,
    ) -> bool {
        // Mostly the next frame is the one after the last; only a setpoint's own read is its first point.
        let mut is_expected = self.is_due(self.newest_source_ns + STATE_PERIOD_NS);
        if is_expected {
            stamp!("publish.pre_read", self.produced + 1);
        }
        let mut states = Vec::with_capacity(4);
        let is_open = read(&mut states);
        // Of a bunch each is a point of the operator's way: the newest alone would cut its corners.
        for state in &states {
            self.newest_source_ns = state.source_ns;
            if !self.is_due(state.source_ns) {
                continue;
            }
            self.produced += 1;
            if !std::mem::take(&mut is_expected) {
                stamp!("publish.pre_read", self.produced);
            }
            stamp!("publish.got_state", self.produced);
            self.last_source_ns = state.source_ns;
            // The two arms' joints turn the same way from the same zero.
            let (source_ns, joints_deg) = (state.source_ns, state.values.joints_deg);
            let setpoint = Setpoint { id: self.produced, source_ns, produced_ns: now_ns, joints_deg };
            stamp!("orch.cb_converted", self.produced);
            // The follower learns from the gap in the ids what found no room.
            self.overflowed += u64::from(!send(&setpoint));
        }
        is_open
    }

    fn is_due(&self, source_ns: u64) -> bool {
        // A frame's stamp is cut to milliseconds; half a frame is far from either neighbour.
        source_ns.saturating_sub(self.last_source_ns) >= SETPOINT_PERIOD_NS - STATE_PERIOD_NS / 2
    }
}

pub fn run(control: &Control, part: &Part, setpoints: &Link, desk: &Link) -> Result<()> {
    let clock = part.clock()?;
    let mut stream = StateStream::start(&part.host, part.states, part.receiver)?;
    let mut commands = Commands::new(clock.clone(), &part.host, part.commands);
    commands.must("RobotEnable", &[Value::Integer(1)])?;
    commands.must("DragTeachSwitch", &[Value::Integer(1)])?;
    let priority = realtime::ask(realtime::LEADER);
    control.say("ready", &json!({}));
    await_go(control, &clock, &mut stream)?;
    commands.must("SimHandCircle", &[Value::Double(part.radius_mm), Value::Double(part.lap_s)])?;
    drop(commands);
    // What came while the hand took hold shows an arm at rest: no setpoint is made of it.
    let mut old = Vec::new();
    while stream.read(&clock, &mut old) && !old.is_empty() {
        old.clear();
    }
    let mut leader = Leader::default();
    loop {
        let [is_called, has_states] = clock.wait(u64::MAX, [control.source(), stream.source()]);
        if is_called {
            break;
        }
        if has_states {
            let send = |setpoint: &Setpoint| {
                let has_room = setpoints.send_setpoint(setpoint);
                desk.send_setpoint(setpoint);
                has_room
            };
            leader.turn(clock.now_ns(), |states| stream.read(&clock, states), send);
        }
    }
    control.say(
        "result",
        &json!({ "produced": leader.produced, "overflowed": leader.overflowed, "priority": priority,
            "stream": stream.counts().json() }),
    );
    control.hear();
    Ok(())
}

/// Reads the stream meanwhile, so that the first setpoint is made from a new state.
fn await_go(control: &Control, clock: &Clock, stream: &mut StateStream) -> Result<()> {
    loop {
        let mut old = Vec::new();
        let [is_called, has_states] = clock.wait(u64::MAX, [control.source(), stream.source()]);
        if is_called {
            return control.hear().map(drop).context("the main process is gone");
        }
        ensure!(!has_states || stream.read(clock, &mut old), "the leader's controller hung up");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn made(reads: &[&[u64]]) -> Vec<u64> {
        let (mut leader, mut made) = (Leader::default(), Vec::new());
        for frames_ms in reads {
            let states = frames_ms.iter().map(|ms| State { source_ns: ms * MS, ..State::default() });
            leader.turn(
                7,
                |into| {
                    into.extend(states);
                    true
                },
                |setpoint| {
                    assert_eq!(setpoint.id as usize, made.len() + 1);
                    made.push(setpoint.source_ns / MS);
                    true
                },
            );
        }
        made
    }

    #[test]
    fn a_setpoint_is_made_of_every_second_frame_and_of_each_that_is_due_in_a_bunch() {
        let start = 1_000;
        let alone: Vec<u64> = (0..6).map(|n| start + 10 * n).collect();
        let alone: Vec<&[u64]> = alone.chunks(1).collect();
        assert_eq!(made(&alone), [1000, 1020, 1040]);
        assert_eq!(made(&[&[1000], &[1010, 1020, 1030, 1041, 1050], &[1060]]), [1000, 1020, 1041, 1060]);
        assert_eq!(made(&[&[1000], &[1200]]), [1000, 1200]);
    }
}
