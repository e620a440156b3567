//! The joint-trajectory controller: 500 cycles a second on an absolute timer. Its time is the simulated clock's, which stands while the
//! machine holds the arm up, so a late cycle is late by the controller's own fault.

use std::path::Path;

use anyhow::Result;
use rustix::stdio;
use taut_stamp::Point;

use crate::{
    PERIOD_NS,
    clock::Clock,
    dynamics::Model,
    follow::{Cycle, Follow},
    link::Link,
    packets::{Command, Ended, JointState, Order, Progress, Reset, State},
    trajectory::{JOINTS, Joints, Reference},
};

/// A cycle is due so long after the arm's period begins, ns: its state has come by then, and the command is there before the next.
const AFTER_STATE_NS: u64 = 500_000;
/// Cycles: 100 Hz and 50 Hz.
const JOINT_STATES_EVERY: u64 = 5;
const PROGRESS_EVERY: u64 = 10;

static SLEEPING: Point = Point::new("control.sleeping");
static AWAKE: Point = Point::new("control.awake");
static COMMANDED: Point = Point::new("control.commanded");
static FIRST_COMMAND: Point = Point::new("controller.first_command");
static LAST_COMMAND: Point = Point::new("controller.last_command");

/// Until it is asked to end.
///
/// # Errors
/// MuJoCo's library cannot be used; the arm or the node has ended.
pub fn run(clock: &Clock, mujoco: &Path, stall_limit_ns: u64) -> Result<()> {
    let (mut arm, mut node) = (Link::new(stdio::stdin()), Link::new(stdio::stdout()));
    let mut controller = Controller::new(Model::new(mujoco)?, stall_limit_ns);
    let mut state = State::default();
    while state == State::default() && !clock.is_over() {
        clock.stands_before(clock.now_ns() + PERIOD_NS, arm.source());
        receive(&mut arm, &mut state)?;
    }
    let mut due_ns = Cycle::begun(state.time_ns + AFTER_STATE_NS, clock.now_ns()).due_ns + PERIOD_NS;
    let (mut number, mut ended) = (0, None);
    loop {
        SLEEPING.stamp(due_ns);
        while clock.stands_before(due_ns, arm.source()) {
            receive(&mut arm, &mut state)?;
        }
        if clock.is_over() {
            taut_stamp::outcome(due_ns, "stopped");
            return Ok(());
        }
        let cycle = Cycle::begun(due_ns, clock.now_ns());
        AWAKE.stamp(due_ns);
        receive(&mut arm, &mut state)?;
        obey(&mut node, &mut controller)?;
        match controller.cycle(&cycle, &state) {
            Act::Command(command) => arm.send(&command),
            Act::Reset(reset) => arm.send(&reset),
        };
        // Told again until there is room for it; of the rest there will be newer.
        ended = controller.done(&cycle, clock.now_ns(), &state).or(ended).filter(|ended| !node.send(ended));
        COMMANDED.stamp(due_ns);
        taut_stamp::applied(due_ns);
        let before = number;
        number += 1 + cycle.missed;
        let is_time = |every: u64| number / every != before / every;
        if let Some(follow) = controller.follow.as_ref().filter(|follow| is_time(PROGRESS_EVERY) && !follow.is_new()) {
            let Follow { goal, elapsed_s, error_rad, .. } = *follow;
            node.send(&Progress { goal, elapsed_s, error_rad });
        }
        if is_time(JOINT_STATES_EVERY) {
            let State { resets, slips, positions, speeds, .. } = state;
            node.send(&JointState { resets, slips, positions, speeds, efforts: controller.torques });
        }
        due_ns = cycle.due_ns + PERIOD_NS;
    }
}

/// The arm's newest.
fn receive(arm: &mut Link, state: &mut State) -> Result<()> {
    while let Some(packet) = arm.receive()? {
        *state = State::of(packet).unwrap_or(*state);
    }
    Ok(())
}

fn obey(node: &mut Link, controller: &mut Controller) -> Result<()> {
    while let Some(packet) = node.receive()? {
        match Order::of(packet) {
            Some(Order::Reset(reset)) => controller.reset(reset),
            Some(Order::Follow(goal, trajectory)) => controller.follow = Some(Follow::new(goal, trajectory)),
            None => eprintln!("reach: the controller does not know an order of {} bytes", packet.len()),
        }
    }
    Ok(())
}

/// What goes to the arm in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Command(Command),
    Reset(Reset),
}

struct Controller {
    model: Model,
    stall_limit_ns: u64,
    follow: Option<Follow>,
    /// How it ended in this cycle.
    reason: Option<&'static str>,
    /// Where it is without a trajectory.
    hold: Joints,
    reset: Reset,
    torques: Joints,
}

impl Controller {
    fn new(model: Model, stall_limit_ns: u64) -> Controller {
        let hold = model.home;
        let reset = Reset { number: 0 };
        Controller { model, stall_limit_ns, follow: None, reason: None, hold, reset, torques: [0.0; JOINTS] }
    }

    /// Home, following nothing.
    fn reset(&mut self, reset: Reset) {
        (self.follow, self.hold, self.reset) = (None, self.model.home, reset);
    }

    fn cycle(&mut self, cycle: &Cycle, state: &State) -> Act {
        // A state from before the reset is no ground for a command.
        if state.resets != self.reset.number {
            return Act::Reset(self.reset);
        }
        // An arm that stopped is taken up again, but not on its way.
        let (mut reference, mut recovers) = (Reference::rest(self.hold), true);
        if let Some(follow) = &mut self.follow {
            recovers = follow.is_new();
            reference = follow.begin(cycle, state);
            self.reason = follow.judge(cycle, &reference.position, state, self.stall_limit_ns);
        }
        self.torques = self.model.torques(&state.positions, &state.speeds, &reference);
        Act::Command(Command { recovers, torques: self.torques })
    }

    /// The command is out.
    fn done(&mut self, cycle: &Cycle, done_ns: u64, state: &State) -> Option<Ended> {
        let follow = self.follow.as_mut().filter(|follow| !follow.is_new())?;
        let id = follow.goal.first_chunk().copied().map_or(0, u64::from_le_bytes);
        if follow.done(cycle, done_ns) {
            FIRST_COMMAND.stamp(id);
        }
        let reason = self.reason.take()?;
        LAST_COMMAND.stamp(id);
        self.hold = if reason.is_empty() { follow.trajectory.goal() } else { state.positions };
        self.follow.take().map(|follow| follow.ended(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arm::Arm,
        dynamics::{Body, tests::library},
        trajectory::{Point, Trajectory},
    };

    const GOAL: [u8; 16] = [7; 16];
    const STALL_NS: u64 = 20_000_000;
    const SWING_RAD: Joints = [-0.4, -0.2, 0.1, 0.2, -0.3, 0.2, 0.3];

    /// Controller and arm in step, each cycle 1 µs late but where cycles were missed.
    struct Both {
        arm: Arm,
        controller: Controller,
        due_ns: u64,
        time_ns: u64,
    }

    impl Both {
        fn new() -> Option<Both> {
            let library = library()?;
            let controller = Controller::new(Model::new(&library).unwrap(), STALL_NS);
            Some(Both {
                arm: Arm::new(Body::new(&library).unwrap(), 20),
                controller,
                due_ns: 1_000_000_000,
                time_ns: 999_500_000,
            })
        }

        fn state(&self) -> State {
            State {
                time_ns: self.time_ns,
                resets: self.arm.resets(),
                is_stopped: self.arm.is_stopped(),
                touches: self.arm.body.touches(),
                positions: self.arm.body.positions(),
                speeds: self.arm.body.speeds(),
                ..State::default()
            }
        }

        /// A cycle after so many that never ran.
        fn cycle(&mut self, missed: u64) -> Option<Ended> {
            (0..missed).for_each(|_| self.arm.period(None));
            self.time_ns += missed * PERIOD_NS;
            let cycle = Cycle::begun(self.due_ns, self.due_ns + missed * PERIOD_NS + 1000);
            assert_eq!(cycle.missed, missed);
            let state = self.state();
            match self.controller.cycle(&cycle, &state) {
                Act::Command(command) => self.arm.period(Some(&command)),
                Act::Reset(reset) => _ = self.arm.reset(reset),
            }
            let ended = self.controller.done(&cycle, cycle.began_ns, &state);
            (self.due_ns, self.time_ns) = (cycle.due_ns + PERIOD_NS, self.time_ns + PERIOD_NS);
            ended
        }

        /// Follows for a second, with cycles missed where `missed` says.
        fn follow(&mut self, missed: impl Fn(u64) -> u64) -> Ended {
            self.controller.follow = Some(Follow::new(GOAL, self.swing()));
            (0..1000).find_map(|cycle| self.cycle(missed(cycle))).unwrap()
        }

        /// From home, one second, touching nothing.
        fn swing(&self) -> Trajectory {
            let home = self.controller.model.home;
            let point = |at: usize| {
                let share = at as f64 / 40.0;
                Point {
                    time_s: share,
                    position: std::array::from_fn(|j| home[j] + SWING_RAD[j] * share * share * (3.0 - 2.0 * share)),
                    speed: SWING_RAD.map(|rad| 6.0 * rad * share * (1.0 - share)),
                }
            };
            Trajectory::new((0..=40).map(point).collect()).unwrap()
        }
    }

    #[test]
    fn the_arm_follows_and_arrives() {
        let Some(mut both) = Both::new() else { return };
        both.cycle(0);
        let ended = both.follow(|_| 0);
        let Ended { goal, reason, execution } = ended;
        assert_eq!((goal, reason, execution.missed, execution.late), (GOAL, "", 0, 0));
        assert!(execution.tracking_max_rad < 0.005, "{execution:?}");
        assert_eq!((execution.lateness_p50_ns, execution.lateness_max_ns), (1000, 1000));
        assert!((501..510).contains(&execution.cycles), "{execution:?}");
        let goal = both.swing().goal();
        (0..200).for_each(|_| assert_eq!(both.cycle(0), None));
        let off = both.state().positions.iter().zip(&goal).map(|(is, wanted)| (is - wanted).abs()).fold(0.0, f64::max);
        assert!(off < 1e-4, "it holds the goal: {off}");
    }

    #[test]
    fn missed_cycles_are_counted_and_the_arm_goes_on_without_them() {
        let Some(mut both) = Both::new() else { return };
        // Before the first: none of the trajectory's.
        let ended =
            both.follow(|cycle| [(0, 7), (100, 4), (200, 1)].iter().find(|(at, _)| *at == cycle).map_or(0, |at| at.1));
        let execution = ended.execution;
        assert_eq!((ended.reason, execution.missed, execution.late), ("", 5, 5));
        // A missed cycle is late by all the periods until the one that ran.
        assert_eq!(execution.lateness_max_ns, 4 * PERIOD_NS + 1000);
        assert_eq!(execution.lateness_p50_ns, 1000);
    }

    #[test]
    fn a_late_cycle_has_the_reference_of_its_state() {
        let Some(mut both) = Both::new() else { return };
        both.cycle(0);
        both.controller.follow = Some(Follow::new(GOAL, both.swing()));
        (0..250).for_each(|_| assert_eq!(both.cycle(0), None));
        // So late that the arm's next period has begun, and no cycle was missed.
        both.arm.period(None);
        both.time_ns += PERIOD_NS;
        both.cycle(0);
        let error_rad = both.controller.follow.as_ref().unwrap().error_rad;
        // In a period it moves 1.2 mrad here.
        assert!(error_rad < 1e-3, "{error_rad}");
    }

    #[test]
    fn a_controller_that_stalled_gives_up() {
        let Some(mut both) = Both::new() else { return };
        let ended = both.follow(|cycle| if cycle == 100 { 10 } else { 0 });
        assert_eq!((ended.reason, ended.execution.missed), ("control stalled", 10));
        // Longer than the arm waits, it is the controller's own failure all the same.
        let ended = both.follow(|cycle| if cycle == 100 { 150 } else { 0 });
        assert_eq!((ended.reason, ended.execution.missed), ("control stalled", 150));
        assert!(both.arm.is_stopped());
        assert_eq!(both.cycle(0), None);
        assert!(!both.arm.is_stopped(), "it is taken up where it stands");
    }

    #[test]
    fn an_arm_that_stopped_on_its_way_ends_the_motion() {
        let Some(mut both) = Both::new() else { return };
        both.cycle(0);
        both.controller.follow = Some(Follow::new(GOAL, both.swing()));
        (0..10).for_each(|_| assert_eq!(both.cycle(0), None));
        (0..20).for_each(|_| both.arm.period(None));
        assert_eq!(both.cycle(0).unwrap().reason, "arm stopped: no commands");
    }

    #[test]
    fn an_arm_that_stopped_before_is_taken_up_by_a_motion() {
        let Some(mut both) = Both::new() else { return };
        both.cycle(0);
        (0..20).for_each(|_| both.arm.period(None));
        assert!(both.arm.is_stopped());
        assert_eq!(both.follow(|_| 0).reason, "");
    }

    #[test]
    fn a_reset_ends_the_motion_and_brings_the_arm_home() {
        let Some(mut both) = Both::new() else { return };
        both.controller.follow = Some(Follow::new(GOAL, both.swing()));
        (0..300).for_each(|_| assert_eq!(both.cycle(0), None));
        let home = both.controller.model.home;
        assert_ne!(both.state().positions, home);
        both.controller.reset(Reset { number: 1 });
        both.cycle(0);
        assert_eq!((both.state().positions, both.state().resets), (home, 1));
        (0..50).for_each(|_| assert_eq!(both.cycle(0), None));
        assert!(both.state().positions.iter().zip(&home).all(|(is, wanted)| (is - wanted).abs() < 1e-6));
    }
}
