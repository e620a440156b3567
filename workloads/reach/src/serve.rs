//! The arm on its clock and its link, a process of its own: each period it takes what has come, moves on, and sends its state. It
//! computes each period before the clock gets beyond it; one that was held up stops the clock (`taut-simulated-clock`).

use std::path::Path;

use anyhow::Result;
use taut_simulated_clock::{Pace, Slips};
use taut_stamp::monotonic_ns;

use crate::{
    PERIOD_NS,
    arm::Arm,
    clock::Clock,
    dynamics::Body,
    link::Link,
    packets::{Command, Reset, State},
};

/// The clock may go so far beyond the arm's next period, ns: less than until the controller's next cycle, so that this has the
/// newest state however late the arm was.
const AHEAD_NS: u64 = 200_000;

/// Until it is asked to end, or the controller has.
///
/// # Errors
/// MuJoCo's library cannot be used.
pub fn run(clock: &Clock, mujoco: &Path, most_missing: u32) -> Result<()> {
    let mut link = Link::new(rustix::stdio::stdin());
    let mut arm = Arm::new(Body::new(mujoco)?, most_missing);
    let mut pace = Pace::new(0, AHEAD_NS);
    let mut slips = Slips::default();
    // The clock begins at 0, and so does the arm.
    let mut time_ns = 0;
    loop {
        clock.sleep_until(time_ns);
        let mut command = None;
        let is_open = loop {
            match link.receive() {
                Ok(Some(packet)) => {
                    command = Command::of(packet).or(command);
                    if Reset::of(packet).is_some_and(|reset| arm.reset(reset)) {
                        (command, slips) = (None, Slips::default());
                    }
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if clock.is_over() || !is_open {
            break;
        }
        let began_ns = monotonic_ns();
        arm.period(command.as_ref());
        let step_ns = monotonic_ns() - began_ns;
        let before = pace.slips();
        pace.allow(clock.time(), time_ns + PERIOD_NS);
        slips = since(slips, before, pace.slips());
        // Whoever waits since the clock stands is woken by it, and finds that the clock goes on.
        link.send(&State {
            time_ns,
            resets: arm.resets(),
            is_stopped: arm.is_stopped(),
            touches: arm.body.touches(),
            step_ns,
            slips,
            positions: arm.body.positions(),
            speeds: arm.body.speeds(),
        });
        time_ns += PERIOD_NS;
    }
    clock.time().leave(0);
    Ok(())
}

/// `slips` with what came between two looks at all of them.
fn since(slips: Slips, before: Slips, after: Slips) -> Slips {
    let slipped_ns = after.total_ns - before.total_ns;
    Slips {
        count: slips.count + after.count - before.count,
        total_ns: slips.total_ns + slipped_ns,
        max_ns: slips.max_ns.max(slipped_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted_from_the_last_reset_on() {
        let slips = |count, total_ns, max_ns| Slips { count, total_ns, max_ns };
        let first = since(Slips::default(), slips(3, 900, 800), slips(4, 950, 800));
        assert_eq!(first, slips(1, 50, 50));
        assert_eq!(since(first, slips(4, 950, 800), slips(4, 950, 800)), first);
        assert_eq!(since(first, slips(4, 950, 800), slips(5, 980, 800)), slips(2, 80, 50));
    }
}
