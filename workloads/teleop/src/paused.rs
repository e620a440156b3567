//! The whole loop in virtual time while the follower arm's state stream pauses: how long motion stops, and which setpoints that costs.

use std::ops::Range;

use serde_json::{Value as Json, json};

use crate::{
    arms::{FR3, FR20, HOME_DEG, Joints},
    controller::Controller,
    follower::{Follower, Outside, Validator},
    guards::{Guard, Heartbeat, Kind},
    links::Setpoint,
    pacing::SETPOINT_PERIOD_NS,
    safety::{COMMAND_LIMITS, Clamp},
    stream::{STATE_PERIOD_NS, State},
    wire,
    xmlrpc::Value,
};

const MS: u64 = 1_000_000;
/// The guard has enabled motion by then.
const BEGINS_NS: u64 = 300 * MS;
/// The hand is up to its speed by then.
const PAUSES_NS: u64 = 2_500 * MS;
const ENDS_NS: u64 = 5_000 * MS;
/// How long the arm takes to answer.
const CALL_NS: u64 = MS / 4;
const LOOK_NS: u64 = MS / 4;
const TICK_NS: u64 = 4 * MS;

struct World {
    now_ns: u64,
    hand: Controller,
    arm: Controller,
    guard: Guard,
    silent_ns: Range<u64>,
    /// What the arm has sent and the wire keeps.
    kept: Vec<State>,
    states: Vec<State>,
    is_led: bool,
    produced: u64,
    setpoints: Vec<Setpoint>,
    answers: Vec<u32>,
    sent_ns: Vec<u64>,
}

impl World {
    fn new(silent_ns: Range<u64>) -> World {
        let mut world = World {
            now_ns: 0,
            hand: Controller::new(&FR3, 0, 0, None),
            arm: Controller::new(&FR20, 0, 0, None),
            guard: Guard::new(Kind::Taut, wire::Kind::Plain, false).unwrap(),
            silent_ns,
            kept: Vec::new(),
            states: Vec::new(),
            is_led: false,
            produced: 0,
            setpoints: Vec::new(),
            answers: Vec::new(),
            sent_ns: Vec::new(),
        };
        let (on, done) = ([Value::Integer(1)], Value::Integer(0));
        for name in ["RobotEnable", "DragTeachSwitch"] {
            assert_eq!(world.hand.call(0, name, &on).unwrap(), done);
        }
        for name in ["RobotEnable", "ServoMoveStart"] {
            assert_eq!(world.arm.call(0, name, &on).unwrap(), done);
        }
        world.pass(BEGINS_NS);
        let circle = [Value::Double(20.0), Value::Double(0.5)];
        assert_eq!(world.hand.call(world.now_ns, "SimHandCircle", &circle).unwrap(), done);
        world.is_led = true;
        world
    }

    fn pass(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        while self.now_ns < until_ns {
            self.now_ns = until_ns.min((self.now_ns / MS + 1) * MS);
            if self.now_ns.is_multiple_of(MS) {
                self.step();
            }
        }
    }

    fn step(&mut self) {
        let now_ns = self.now_ns;
        for arm in [&mut self.hand, &mut self.arm] {
            while arm.step(now_ns).unwrap() {}
        }
        if now_ns.is_multiple_of(STATE_PERIOD_NS) {
            let values = self.arm.state();
            let (source_ns, count) = (values.calendar_ns, (now_ns / STATE_PERIOD_NS) as u8);
            self.kept.push(State { values, count, source_ns, ..State::default() });
        }
        if self.is_led && now_ns.is_multiple_of(SETPOINT_PERIOD_NS as u64) {
            self.produced += 1;
            let state = self.hand.state();
            let (id, source_ns, joints_deg) = (self.produced, state.calendar_ns, state.joints_deg);
            self.setpoints.push(Setpoint { id, source_ns, produced_ns: now_ns, joints_deg });
        }
        let mut came = if self.silent_ns.contains(&now_ns) { Vec::new() } else { std::mem::take(&mut self.kept) };
        let frames_in_read = came.len() as u16;
        for state in &mut came {
            (state.arrived_ns, state.frames_in_read) = (now_ns, frames_in_read);
        }
        if !came.is_empty() || now_ns.is_multiple_of(TICK_NS) {
            self.guard.turn(&came, now_ns);
        }
        self.states.append(&mut came);
    }
}

impl Outside for World {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn setpoints(&mut self, into: &mut Vec<Setpoint>) {
        into.append(&mut self.setpoints);
    }

    fn answers(&mut self, into: &mut Vec<u32>) {
        into.append(&mut self.answers);
    }

    fn ask(&mut self, challenge: u32) {
        self.guard.turn(&[], self.now_ns);
        self.answers.extend(self.guard.answer(challenge, self.now_ns));
    }

    fn has_guard(&self) -> bool {
        true
    }

    fn servo_j(&mut self, joints_deg: &Joints, period_ns: u64, setpoint: u64, _: u64) -> Option<i64> {
        self.sent_ns.push(self.now_ns);
        let zero = Value::Double(0.0);
        let (zeros, cmd_t) = (Value::from(&[0.0; 4][..]), Value::Double(period_ns as f64 / 1e9));
        let id = Value::Integer(setpoint as i64);
        let arguments =
            [Value::from(&joints_deg[..]), zeros, zero.clone(), zero.clone(), cmd_t, zero.clone(), zero, id];
        let Value::Integer(code) = self.arm.call(self.now_ns, "ServoJ", &arguments).unwrap() else { return None };
        self.pass(CALL_NS);
        Some(code)
    }

    fn stop_motion(&mut self, _: u64) -> bool {
        self.arm.call(self.now_ns, "StopMotion", &[]).is_ok()
    }

    fn states(&mut self, into: &mut Vec<State>) -> bool {
        into.append(&mut self.states);
        true
    }

    fn sleep(&mut self, ns: u64) {
        self.pass(ns.max(1000));
    }
}

/// The follower's summary, the guard's, and for how long no command went out, ms.
fn after_a_pause_of(pause_ms: u64, later_ms: u64) -> (Json, Json, u64) {
    let begins_ns = PAUSES_NS + later_ms * MS;
    let mut world = World::new(begins_ns..begins_ns + pause_ms * MS);
    let mut asker = Heartbeat::new(Kind::Taut, wire::Kind::Plain);
    let question = asker.question(world.now_ns).unwrap();
    world.ask(question);
    asker.hear(world.answers.pop().unwrap());
    let validator = Validator::Clamp(Clamp::new(COMMAND_LIMITS, HOME_DEG));
    let mut follower = Follower::new(world, asker, validator, false).unwrap();
    while follower.outside.now_ns < ENDS_NS {
        let left_ns = follower.due_ns().saturating_sub(follower.outside.now_ns);
        follower.outside.sleep(left_ns.min(LOOK_NS));
        follower.turn().unwrap();
    }
    follower.outside.is_led = false;
    follower.finish(follower.outside.produced).unwrap();
    let sent_ns = &follower.outside.sent_ns;
    let stood_ns = sent_ns.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    (follower.summary(), follower.outside.guard.summary(), stood_ns / MS)
}

/// A lap of the hand's has each speed and direction.
fn over_a_lap() -> impl Iterator<Item = u64> {
    (0..500).step_by(7)
}

#[test]
fn a_stream_that_paused_for_50_to_100_ms_stops_motion_for_140_to_182_ms_and_costs_no_setpoint() {
    // Of silence after a frame. At 200 ms the path would begin anew, and leave setpoints out.
    for (silent_ms, later_ms) in [60, 90].into_iter().flat_map(|ms| over_a_lap().map(move |later_ms| (ms, later_ms))) {
        let (summary, guard, stood_ms) = after_a_pause_of(silent_ms, later_ms);
        let trips = &guard["trips"];
        assert!(trips.as_array().unwrap().len() == 1 && trips[0]["is_pause"] == true, "{trips}");
        assert!((140..=182).contains(&stood_ms), "{stood_ms} ms at {silent_ms} ms, {later_ms} ms later");
        assert_eq!((&summary["stops"], &summary["holds"]), (&json!([]), &json!(1)));
        let setpoints = &summary["setpoints"];
        assert_eq!((&setpoints["dropped"], &setpoints["applied"]), (&json!({}), &setpoints["produced"]));
    }
}

#[test]
fn a_shorter_pause_stops_nothing_and_a_longer_one_for_good() {
    for later_ms in over_a_lap() {
        let (summary, guard, _) = after_a_pause_of(30, later_ms);
        assert_eq!((&summary["holds"], &guard["trips"]), (&json!(0), &json!([])));
        assert_eq!(summary["setpoints"]["dropped"], json!({}));
        let (summary, ..) = after_a_pause_of(110, later_ms);
        assert_eq!(summary["stopped"], "guard_latched");
    }
}
