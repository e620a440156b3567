//! The follower's process.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    Part, Rule,
    arms::Joints,
    clock::Clock,
    commands::Commands,
    follower::{Follower, Outside, Validator},
    guards::Heartbeat,
    links::{Control, Link, Setpoint},
    realtime,
    safety::{COMMAND_LIMITS, Clamp, LIMITS, Reject},
    stream::{State, StateStream},
    xmlrpc::Value,
};

const START_TIMEOUT_NS: u64 = 30_000_000_000;
const LOOK_NS: u64 = 2_000_000;

struct Robot {
    clock: Clock,
    commands: Commands,
    stream: StateStream,
    setpoints: Link,
    heartbeat: Link,
}

impl Outside for Robot {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn setpoints(&mut self, into: &mut Vec<Setpoint>) {
        self.setpoints.setpoints(into);
    }

    fn answers(&mut self, into: &mut Vec<u32>) {
        self.heartbeat.numbers(into);
    }

    fn ask(&mut self, challenge: u32) {
        self.heartbeat.send(&challenge.to_le_bytes());
    }

    fn has_guard(&self) -> bool {
        self.heartbeat.is_open
    }

    fn servo_j(&mut self, joints_deg: &Joints, period_ns: u64, setpoint: u64, timeout_ns: u64) -> Option<i64> {
        self.commands.servo_j(joints_deg, period_ns, setpoint, timeout_ns).ok()
    }

    fn stop_motion(&mut self, timeout_ns: u64) -> bool {
        self.commands.call("StopMotion", &[], timeout_ns).is_ok()
    }

    fn states(&mut self, into: &mut Vec<State>) -> bool {
        self.stream.read(&self.clock, into)
    }

    fn sleep(&mut self, ns: u64) {
        self.clock.wait(self.clock.now_ns() + ns, []);
    }
}

pub fn run(control: &Control, part: &Part, setpoints: Link, heartbeat: Link) -> Result<()> {
    let clock = part.clock()?;
    let stream = StateStream::start(&part.host, part.states, part.receiver)?;
    let mut commands = Commands::new(clock.clone(), &part.host, part.commands);
    commands.must("RobotEnable", &[Value::Integer(1)])?;
    commands.must("ServoMoveStart", &[])?;
    let mut robot = Robot { clock: clock.clone(), commands, stream, setpoints, heartbeat };
    let measured = first(&mut robot)?.values.joints_deg;
    let mut asker = Heartbeat::new(part.guard, part.wire);
    await_guard(&mut robot, &mut asker)?;
    let validator = match part.validator {
        Rule::Reject => Validator::Reject(Reject::new(LIMITS, measured)),
        Rule::Clamp => Validator::Clamp(Clamp::new(COMMAND_LIMITS, measured)),
    };
    let mut follower = Follower::new(robot, asker, validator, part.operator)?;
    let priority = realtime::ask(realtime::FOLLOWER);
    control.say("ready", &json!({}));
    loop {
        let Robot { setpoints, heartbeat, stream, .. } = &follower.outside;
        let sources = [control.source(), setpoints.source(), heartbeat.source(), stream.source()];
        let [is_called, ..] = clock.wait(follower.due_ns(), sources);
        if is_called {
            break;
        }
        follower.turn()?;
    }
    let produced = control.hear().and_then(|(_, facts)| facts["produced"].as_u64());
    follower.finish(produced.unwrap_or(0))?;
    let mut result = follower.summary();
    result["priority"] = json!(priority);
    result["stream"] = follower.outside.stream.counts().json();
    control.say("result", &result);
    control.hear();
    Ok(())
}

fn first(robot: &mut Robot) -> Result<State> {
    let ends_ns = robot.now_ns() + START_TIMEOUT_NS;
    let mut states = Vec::new();
    while states.is_empty() && robot.now_ns() < ends_ns {
        robot.clock.wait(ends_ns, [robot.stream.source()]);
        ensure!(robot.states(&mut states), "the follower's controller hung up");
    }
    states.pop().context("no state of the follower arrived")
}

/// A guard enables motion after 100 ms of fresh frames, not before.
fn await_guard(robot: &mut Robot, asker: &mut Heartbeat) -> Result<()> {
    let ends_ns = robot.now_ns() + START_TIMEOUT_NS;
    let (mut states, mut answers) = (Vec::new(), Vec::new());
    while asker.overdue_ns(robot.now_ns()).is_some() {
        ensure!(robot.now_ns() < ends_ns && robot.has_guard(), "the guard does not enable motion");
        if let Some(question) = asker.question(robot.now_ns()) {
            robot.ask(question);
        }
        robot.sleep(LOOK_NS);
        robot.states(&mut states);
        states.clear();
        robot.answers(&mut answers);
        answers.drain(..).for_each(|answer| asker.hear(answer));
    }
    Ok(())
}
