//! The arm behind its controller's interface: what a missing command does, and a reset. It knows no clock and no link.

use crate::{
    PERIOD_NS,
    dynamics::{Body, STEP_NS},
    packets::{Command, Reset},
    trajectory::{JOINTS, Joints},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drive {
    /// The brakes are on until a command comes.
    Braked,
    /// So many commands in succession were missing.
    Driven(u32),
    /// The brakes are on: too many were.
    Stopped,
}

pub struct Arm {
    pub body: Body,
    drive: Drive,
    torques: Joints,
    resets: u64,
    most_missing: u32,
}

impl Arm {
    pub fn new(body: Body, most_missing: u32) -> Arm {
        Arm { body, drive: Drive::Braked, torques: [0.0; JOINTS], resets: 0, most_missing }
    }

    /// Home, at rest. False: it has been obeyed before.
    pub fn reset(&mut self, reset: Reset) -> bool {
        let is_new = reset.number != self.resets;
        if is_new {
            self.body.reset();
            (self.drive, self.resets) = (Drive::Braked, reset.number);
        }
        is_new
    }

    /// One period of the interface, with the command that came in it. Without one the last torques act on.
    pub fn period(&mut self, command: Option<&Command>) {
        self.drive = match (self.drive, command) {
            (Drive::Stopped, Some(command)) if !command.recovers => Drive::Stopped,
            (_, Some(command)) => {
                self.torques = command.torques;
                Drive::Driven(0)
            }
            (Drive::Driven(missing), None) if missing + 1 < self.most_missing => Drive::Driven(missing + 1),
            (Drive::Driven(_), None) => {
                self.body.stop();
                Drive::Stopped
            }
            (braked, None) => braked,
        };
        if let Drive::Driven(_) = self.drive {
            for _ in 0..PERIOD_NS / STEP_NS {
                self.body.step(&self.torques);
            }
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.drive == Drive::Stopped
    }

    /// The number of the last one.
    pub fn resets(&self) -> u64 {
        self.resets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::tests::library;

    const MOST: u32 = 20;
    const NUDGE: Command = Command { recovers: false, torques: [5.0; JOINTS] };

    fn arm() -> Option<Arm> {
        Some(Arm::new(Body::new(&library()?).unwrap(), MOST))
    }

    #[test]
    fn the_last_torques_act_until_too_many_commands_are_missing() {
        let Some(mut arm) = arm() else { return };
        let home = arm.body.positions();
        arm.period(None);
        assert_eq!(arm.body.positions(), home, "the brakes are on");
        arm.period(Some(&NUDGE));
        for _ in 1..MOST {
            let before = arm.body.positions();
            arm.period(None);
            assert!(arm.body.positions() != before && !arm.is_stopped());
        }
        arm.period(None);
        let stopped = arm.body.positions();
        assert!(arm.is_stopped() && arm.body.speeds() == [0.0; JOINTS]);
        arm.period(Some(&NUDGE));
        assert!(arm.is_stopped() && arm.body.positions() == stopped, "it does not recover by itself");
        arm.period(Some(&Command { recovers: true, ..NUDGE }));
        assert!(!arm.is_stopped() && arm.body.positions() != stopped);
    }

    #[test]
    fn a_command_in_time_ends_a_succession_of_missing_ones() {
        let Some(mut arm) = arm() else { return };
        for period in 0..10 * MOST {
            arm.period((period % (MOST - 1) == 0).then_some(&NUDGE));
            assert!(!arm.is_stopped());
        }
    }

    #[test]
    fn a_reset_is_obeyed_once() {
        let Some(mut arm) = arm() else { return };
        let home = arm.body.positions();
        arm.period(Some(&NUDGE));
        assert!(arm.reset(Reset { number: 1 }) && arm.body.positions() == home);
        arm.period(None);
        assert_eq!((arm.body.positions(), arm.resets()), (home, 1), "the torques before it act no more");
        arm.period(Some(&NUDGE));
        assert!(!arm.reset(Reset { number: 1 }) && arm.body.positions() != home);
    }
}
