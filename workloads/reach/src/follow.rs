//! One trajectory on its way, and what is measured of it.

use taut_stamp::monotonic_ns;

use crate::{
    PERIOD_NS,
    packets::{Ended, Execution, State},
    trajectory::{Joints, Reference, Trajectory},
};

const PATH_TOLERANCE_RAD: f64 = 0.1;
const GOAL_TOLERANCE_RAD: f64 = 0.01;
/// After the last point the arm may take so long to come within the tolerance.
const GOAL_SETTLE_S: f64 = 0.5;

/// When a cycle began, on the simulated clock, and so by the controller's own fault alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    pub due_ns: u64,
    pub began_ns: u64,
    /// Cycles before it that never ran.
    pub missed: u64,
}

impl Cycle {
    /// The one that was due at `due_ns`, or if that is long past, the last one that was due.
    pub fn begun(due_ns: u64, began_ns: u64) -> Cycle {
        let missed = began_ns.saturating_sub(due_ns) / PERIOD_NS;
        Cycle { due_ns: due_ns + missed * PERIOD_NS, began_ns, missed }
    }

    fn lateness_ns(&self) -> u64 {
        self.began_ns - self.due_ns
    }
}

pub struct Follow {
    pub goal: [u8; 16],
    pub trajectory: Trajectory,
    /// When the first cycle was due and the moment of its state, on the simulated clock.
    began_ns: Option<u64>,
    from_ns: u64,
    /// The arm's brakes were seen to be off.
    is_taken_up: bool,
    /// Of each intended cycle, and of each period of the arm.
    lateness_ns: Vec<u64>,
    steps_ns: Vec<u64>,
    errors: u64,
    errors_squared: f64,
    error_max: f64,
    missed: u64,
    late: u64,
    first_command_ns: u64,
    last_command_ns: u64,
    last_ns: u64,
    /// Of the last cycle.
    pub error_rad: f64,
    pub elapsed_s: f64,
}

impl Follow {
    pub fn new(goal: [u8; 16], trajectory: Trajectory) -> Follow {
        // So that no cycle allocates, unless some were missed. A trajectory's duration is at most `MOST_S`, so this is 29 MB at most.
        let cycles = ((trajectory.duration_s() + GOAL_SETTLE_S) * 1e9) as usize / PERIOD_NS as usize + 2;
        Follow {
            goal,
            trajectory,
            began_ns: None,
            from_ns: 0,
            is_taken_up: false,
            lateness_ns: Vec::with_capacity(cycles),
            steps_ns: Vec::with_capacity(cycles),
            errors: 0,
            errors_squared: 0.0,
            error_max: 0.0,
            missed: 0,
            late: 0,
            first_command_ns: 0,
            last_command_ns: 0,
            last_ns: 0,
            error_rad: 0.0,
            elapsed_s: 0.0,
        }
    }

    /// It has had no cycle.
    pub fn is_new(&self) -> bool {
        self.began_ns.is_none()
    }

    /// The reference for this cycle: for the moment of its state, which a late cycle has from a later period.
    pub fn begin(&mut self, cycle: &Cycle, state: &State) -> Reference {
        let real_ns = monotonic_ns();
        if self.is_new() {
            (self.began_ns, self.from_ns) = (Some(cycle.due_ns), state.time_ns);
            self.first_command_ns = real_ns - cycle.lateness_ns();
        }
        (self.last_command_ns, self.last_ns) = (real_ns, cycle.began_ns);
        self.elapsed_s = state.time_ns.saturating_sub(self.from_ns) as f64 / 1e9;
        self.trajectory.at(self.elapsed_s)
    }

    /// The cycle's figures, and how the trajectory ended, if it did.
    pub fn judge(
        &mut self,
        cycle: &Cycle,
        position: &Joints,
        state: &State,
        stall_limit_ns: u64,
    ) -> Option<&'static str> {
        // What was missed before the first cycle was not this trajectory's.
        let missed = if self.errors == 0 { 0 } else { cycle.missed };
        let lateness_ns = cycle.lateness_ns();
        // A missed cycle is as late as this one, and more by the periods between them.
        self.lateness_ns.extend((0..=missed).rev().map(|periods| lateness_ns + periods * PERIOD_NS));
        (self.missed, self.late) = (self.missed + missed, self.late + missed);
        self.steps_ns.push(state.step_ns);
        let errors = position.iter().zip(&state.positions).map(|(wanted, is)| (wanted - is).abs());
        self.error_rad = errors.fold(0.0, f64::max);
        self.errors += 1;
        self.errors_squared += self.error_rad * self.error_rad;
        self.error_max = self.error_max.max(self.error_rad);
        self.is_taken_up |= !state.is_stopped;
        let over_s = self.elapsed_s - self.trajectory.duration_s();
        if lateness_ns + missed * PERIOD_NS > stall_limit_ns {
            Some("control stalled")
        } else if self.is_taken_up && state.is_stopped {
            Some("arm stopped: no commands")
        } else if self.error_rad > PATH_TOLERANCE_RAD {
            Some("path tolerance violated")
        } else if state.touches {
            Some("arm touched the cell")
        } else if over_s >= 0.0 && self.error_rad < GOAL_TOLERANCE_RAD {
            Some("")
        } else if over_s > GOAL_SETTLE_S {
            Some("goal tolerance violated")
        } else {
            None
        }
    }

    /// The command of this cycle is out. True: the first.
    pub fn done(&mut self, cycle: &Cycle, done_ns: u64) -> bool {
        self.late += u64::from(done_ns > cycle.due_ns + PERIOD_NS);
        self.errors == 1
    }

    pub fn ended(mut self, reason: &'static str) -> Ended {
        self.lateness_ns.sort_unstable();
        self.steps_ns.sort_unstable();
        let cycles = self.lateness_ns.len() as u64;
        let (real_ns, simulated_ns) =
            (self.last_command_ns - self.first_command_ns, self.last_ns - self.began_ns.unwrap_or(self.last_ns));
        let execution = Execution {
            first_command_ns: self.first_command_ns,
            last_command_ns: self.last_command_ns,
            cycles,
            missed: self.missed,
            late: self.late,
            lateness_p50_ns: rank(&self.lateness_ns, 50),
            lateness_p99_ns: rank(&self.lateness_ns, 99),
            lateness_max_ns: rank(&self.lateness_ns, 100),
            step_p50_ns: rank(&self.steps_ns, 50),
            step_p99_ns: rank(&self.steps_ns, 99),
            slipped_ns: real_ns.saturating_sub(simulated_ns),
            simulated_s: simulated_ns as f64 / 1e9,
            wall_s: real_ns as f64 / 1e9,
            tracking_rms_rad: (self.errors_squared / self.errors.max(1) as f64).sqrt(),
            tracking_max_rad: self.error_max,
        };
        Ended { goal: self.goal, reason, execution }
    }
}

/// The smallest value that has at least so many percent at or below it in rank; 0 of none.
fn rank(sorted: &[u64], percent: usize) -> u64 {
    let at = (sorted.len().saturating_sub(1) * percent).div_ceil(100);
    sorted.get(at).copied().unwrap_or(0)
}
