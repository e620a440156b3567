//! One simulated controller: the state of an arm, and the calls on it. It takes the calls of the vendor's Python SDK that this
//! workload needs, with their names, argument order, units and codes. Calls named `Sim…` are the simulation's own.

use anyhow::{Context, Result, bail};

use crate::{
    arms::{Arm, HOME_DEG, Joints, LOWER_DEG, UPPER_DEG},
    cnde::State,
    journal::Journal,
    servo::{Hand, Servo, Target},
    xmlrpc::Value,
};

/// The vendor's codes.
pub const DONE: i64 = 0;
pub const BAD_PARAMETER: i64 = 4;
pub const REFUSED: i64 = 14;
pub const SAFETY_STOP: i64 = 99;
/// `robot_state`.
const RESTING: u8 = 1;
const MOVING: u8 = 2;
const DRAGGED: u8 = 4;
/// Of the hand's circle.
const POINTS: usize = 240;

pub struct Controller {
    arm: &'static Arm,
    servo: Servo,
    journal: Option<Journal>,
    /// The robot's calendar is set once: later steps of the host's are not its own.
    calendar_ns: u64,
    is_enabled: bool,
    is_stopped: bool,
    is_in_servo_mode: bool,
    is_dragged: bool,
    commands: i32,
    target_deg: Joints,
}

impl Controller {
    /// `calendar_ns` is its clock's 0 in the calendar.
    pub fn new(arm: &'static Arm, now_ns: u64, calendar_ns: u64, journal: Option<Journal>) -> Controller {
        Controller {
            arm,
            servo: Servo::new(arm, HOME_DEG, now_ns),
            journal,
            calendar_ns,
            is_enabled: false,
            is_stopped: false,
            is_in_servo_mode: false,
            is_dragged: false,
            commands: 0,
            target_deg: HOME_DEG,
        }
    }

    /// Moves on by one step, if that has come.
    pub fn step(&mut self, now_ns: u64) -> std::io::Result<bool> {
        let has_moved = self.servo.step(now_ns);
        if let Some(journal) = self.journal.as_mut().filter(|_| has_moved) {
            journal.step(self.servo.time_ns, &self.servo.joints_deg)?;
        }
        Ok(has_moved)
    }

    pub fn time_ns(&self) -> u64 {
        self.servo.time_ns
    }

    /// As it is now; a robot samples when it is due.
    pub fn state(&self) -> State {
        let Servo { joints_deg, speeds_deg_s, time_ns, .. } = &self.servo;
        let (mm_s, deg_s) = self.arm.tool_speed(joints_deg, speeds_deg_s);
        let is_moving = speeds_deg_s.iter().any(|speed| speed.abs() > 0.01);
        State {
            robot_state: if self.is_dragged { DRAGGED } else { [RESTING, MOVING][usize::from(is_moving)] },
            joints_deg: *joints_deg,
            tool_mm_deg: self.arm.tool_pose_mm_deg(joints_deg),
            speeds_deg_s: *speeds_deg_s,
            tool_speed: [mm_s, deg_s],
            is_stopped: self.is_stopped,
            is_enabled: self.is_enabled,
            target_deg: self.target_deg,
            commands: self.commands,
            calendar_ns: self.calendar_ns + time_ns,
        }
    }

    pub fn close(self) -> std::io::Result<()> {
        self.journal.map_or(Ok(()), Journal::close)
    }

    /// # Errors
    /// No such call, or other arguments.
    pub fn call(&mut self, now_ns: u64, name: &str, arguments: &[Value]) -> Result<Value> {
        let first = || arguments.first().and_then(Value::number);
        let is_on = || first().map(|number| number != 0.0).with_context(|| format!("{name}: takes a number"));
        let code = match name {
            "RobotEnable" => {
                self.is_enabled = is_on()?;
                DONE
            }
            "ServoMoveStart" if self.is_stopped => SAFETY_STOP,
            "ServoMoveStart" if !self.is_enabled || self.is_dragged => REFUSED,
            "ServoMoveStart" | "ServoMoveEnd" => {
                self.is_in_servo_mode = name == "ServoMoveStart";
                DONE
            }
            "ServoJ" => self.servo_j(now_ns, arguments).context("ServoJ: takes what the SDK's takes")?,
            "DragTeachSwitch" if self.is_stopped => SAFETY_STOP,
            "DragTeachSwitch" if !self.is_enabled => REFUSED,
            // 1: the arm gives way to the operator's hand; 0: it holds.
            "DragTeachSwitch" => {
                self.is_dragged = is_on()?;
                if !self.is_dragged {
                    self.servo.hold();
                }
                DONE
            }
            "StopMotion" => {
                self.servo.hold();
                DONE
            }
            "GetActualJointPosDegree" => {
                let numbers: Vec<f64> = [DONE as f64].into_iter().chain(self.servo.joints_deg).collect();
                return Ok(Value::from(&numbers[..]));
            }
            // Press (1) or release (0) the safety stop.
            "SimSafetyStop" => {
                self.is_stopped = is_on()?;
                if self.is_stopped {
                    self.is_in_servo_mode = false;
                    self.servo.hold();
                }
                DONE
            }
            "SimHandCircle" if !self.is_dragged => REFUSED,
            // The operator's hand leads the dragged arm round a circle until StopMotion.
            "SimHandCircle" => {
                let lap_s = arguments.get(1).and_then(Value::number);
                let (radius_mm, lap_s) = first().zip(lap_s).context("SimHandCircle: takes a radius and a time")?;
                if !(lap_s > 0.0 && radius_mm.is_finite()) {
                    return Ok(Value::Integer(BAD_PARAMETER));
                }
                let path = self.arm.circle_deg(radius_mm / 1000.0, POINTS)?;
                self.servo.target = Target::Hand(Hand { path, lap_s, start_ns: self.servo.time_ns });
                DONE
            }
            "SimHandLaps" => {
                let Target::Hand(hand) = &self.servo.target else { return Ok(Value::Double(0.0)) };
                return Ok(Value::Double(hand.laps(self.servo.time_ns)));
            }
            _ => bail!("no call named {name:?}"),
        };
        Ok(Value::Integer(code))
    }

    /// Joint target in degrees; `acc`, `vel`, `filterT` and `gain` are not open in the vendor's either.
    fn servo_j(&mut self, now_ns: u64, arguments: &[Value]) -> Option<i64> {
        let [joints, _axes, _acc, _vel, cmd_t, _filter_t, _gain, id] = arguments else { return None };
        let (joints, cmd_t, id) = (joints.numbers()?, cmd_t.number()?, id.number()?);
        if self.is_stopped {
            return Some(SAFETY_STOP);
        }
        let Ok(joints) = Joints::try_from(&joints[..]) else { return Some(BAD_PARAMETER) };
        if !joints.iter().all(|joint| joint.is_finite()) || cmd_t.is_nan() || cmd_t <= 0.0 {
            return Some(BAD_PARAMETER);
        }
        let is_within = (0..6).all(|n| (LOWER_DEG[n]..=UPPER_DEG[n]).contains(&joints[n]));
        if !is_within || !self.is_enabled || !self.is_in_servo_mode {
            return Some(REFUSED);
        }
        self.servo.target = Target::Place(joints);
        (self.target_deg, self.commands) = (joints, self.commands.wrapping_add(1));
        if let Some(journal) = &mut self.journal {
            // A journal that cannot be written is found at the next step, which ends the run.
            let _ = journal.command(now_ns, id as i64, cmd_t, &joints);
        }
        Some(DONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::FR3;

    fn servo_j(joints: &[f64]) -> [Value; 8] {
        let [zero, zeros] = [Value::Double(0.0), Value::from(&[0.0; 4][..])];
        let cmd_t = Value::Double(0.008);
        [Value::from(joints), zeros, zero.clone(), zero.clone(), cmd_t, zero.clone(), zero, Value::Integer(7)]
    }

    #[test]
    fn calls_have_the_vendors_codes() {
        let mut arm = Controller::new(&FR3, 0, 0, None);
        let mut code = |name: &str, arguments: &[Value]| match arm.call(0, name, arguments).unwrap() {
            Value::Integer(code) => code,
            other => panic!("{other:?}"),
        };
        let on = [Value::Integer(1)];
        assert_eq!(code("ServoJ", &servo_j(&HOME_DEG)), REFUSED);
        assert_eq!(code("ServoMoveStart", &[]), REFUSED);
        assert_eq!(
            [code("RobotEnable", &on), code("ServoMoveStart", &[]), code("ServoJ", &servo_j(&HOME_DEG))],
            [DONE; 3]
        );
        assert_eq!(code("ServoJ", &servo_j(&HOME_DEG[..5])), BAD_PARAMETER);
        assert_eq!(code("ServoJ", &servo_j(&[f64::NAN; 6])), BAD_PARAMETER);
        assert_eq!(code("ServoJ", &servo_j(&[176.0; 6])), REFUSED);
        assert_eq!([code("ServoMoveEnd", &[]), code("ServoJ", &servo_j(&HOME_DEG))], [DONE, REFUSED]);
        let circle = [Value::Double(20.0), Value::Double(0.5)];
        assert_eq!(code("SimHandCircle", &circle), REFUSED);
        assert_eq!([code("DragTeachSwitch", &on), code("SimHandCircle", &circle)], [DONE; 2]);
        assert_eq!(
            [code("SimSafetyStop", &on), code("ServoMoveStart", &[]), code("DragTeachSwitch", &on)],
            [0, 99, 99]
        );
        assert!(arm.call(0, "Format", &[]).is_err() && arm.call(0, "ServoJ", &[]).is_err());
    }

    #[test]
    fn a_hand_leads_the_arm_and_a_target_moves_it() {
        let mut arm = Controller::new(&FR3, 0, 5_000, None);
        let on = [Value::Integer(1)];
        for (name, arguments) in [
            ("RobotEnable", &on[..]),
            ("DragTeachSwitch", &on),
            ("SimHandCircle", &[Value::Double(20.0), Value::Double(0.5)]),
        ] {
            assert_eq!(arm.call(0, name, arguments).unwrap(), Value::Integer(DONE));
        }
        while arm.step(2_000_000_000).unwrap() {}
        let state = arm.state();
        assert_eq!((state.robot_state, state.calendar_ns), (DRAGGED, 2_000_005_000));
        // A lap every half second, round 20 mm, less what the servo lags.
        let expected_mm_s = std::f64::consts::TAU * 20.0 / 0.5;
        assert!((state.tool_speed[0] / expected_mm_s - 1.0).abs() < 0.05, "{}", state.tool_speed[0]);
        assert_eq!(arm.call(0, "SimHandLaps", &[]).unwrap(), Value::Double(3.0));
    }
}
