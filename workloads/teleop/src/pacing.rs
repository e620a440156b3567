//! From setpoints every 20 ms to commands every 8 ms: the path between them, and when each command is due.
//!
//! Each setpoint is followed by commands at 0, 8 and 16 ms; the last one is for 4 ms, so that the next setpoint finds the servo at a
//! command's end and need not wait. The path is the guard crate's playout: a constant delay behind the robot's own time, so that
//! what jitters is the sending, not the motion.

use taut_guard::{Error, setpoint::Playout};

use crate::{arms::Joints, links::Setpoint};

pub const MS: i64 = 1_000_000;
pub const SETPOINT_PERIOD_NS: i64 = 20 * MS;
pub const COMMAND_NS: i64 = 8 * MS;
const LAST_COMMAND_NS: i64 = 4 * MS;
/// What the playout expects of its jitter; beyond it the delay grows by itself, and shrinks slowly.
const JITTER_NS: i64 = 2 * MS;
/// A stall of 200 ms, and what queues up behind it, is waited out: late, but on the hand's own path.
pub const DELAY_MOST_NS: i64 = 260 * MS;
/// A call that takes no longer counts as taken when it was sent: the arm hardly slows down in this time.
const PROMPT_NS: i64 = 5 * MS;
/// Least time between two commands: a setpoint may come a millisecond early. Its way is then shorter by as much.
const SPACING_NS: i64 = 3 * MS;
/// How long after its time a setpoint is waited for before the path is extrapolated.
const PATIENCE_NS: i64 = 3 * MS;
/// How much faster or slower than the hand the path may be played, to make up for commands that were left out or added, in
/// per mille. The hand's speed (0.92 of the limits at most) times this must stay within what is commanded, or commands are clamped.
const CATCH_UP: i64 = 20;
/// With a delay of so much the stream jitters more than commands may: they keep a beat of their own then, every 8 ms.
const DEEP_NS: i64 = SETPOINT_PERIOD_NS + 3 * JITTER_NS;
/// A stall of the machine is no jitter: up to so late, what comes late once in so many setpoints is bridged by the path's extrapolation and
/// adds no delay, which would stay for seconds. (The delay is to bear the jitter's p99.)
const BRIDGED_NS: i64 = 2 * SETPOINT_PERIOD_NS;
const SELDOM: u32 = 100;
/// Setpoints that come late one after the other are late once.
const TOGETHER: u32 = 3;
/// A path that is further off than this is not made up for but begun again: the stream was interrupted.
const JUMP_NS: i64 = 200 * MS;

/// Where to be at the end of a command's time. It plays the path from `from_ns` to `path_ns`, by the robot's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Command {
    pub joints_deg: Joints,
    pub period_ns: i64,
    /// How long the arm may take to get there at its limits: less than the period where the command before it has not had its
    /// own, so that commands close together do not add up to too much speed.
    pub limit_ns: i64,
    pub from_ns: i64,
    pub path_ns: i64,
    pub added_delay_ns: i64,
}

pub struct Pacing {
    playout: Playout<6>,
    floor_ns: Option<i64>,
    first: Option<(i64, Joints)>,
    path_ns: Option<i64>,
    newest_ns: i64,
    earlier_ns: i64,
    delay_ns: i64,
    /// Setpoints since those that came late last began to.
    since_late: u32,
    /// Whether those are bridged.
    bridges: bool,
    clock_ns: i64,
    wanted_ns: i64,
    sent: u32,
    sent_ns: i64,
    until_ns: i64,
    begun_ns: i64,
    beat_ns: i64,
    due_ns: Option<i64>,
}

impl Pacing {
    /// # Errors
    /// None, while the constants above are within the playout's ranges.
    pub fn new() -> Result<Pacing, Error> {
        Ok(Pacing {
            playout: Playout::new(SETPOINT_PERIOD_NS as u64, JITTER_NS as u64, DELAY_MOST_NS as u64)?,
            floor_ns: None,
            first: None,
            path_ns: None,
            newest_ns: 0,
            earlier_ns: 0,
            delay_ns: 0,
            since_late: 0,
            bridges: false,
            clock_ns: -JUMP_NS,
            wanted_ns: -JUMP_NS,
            sent: 0,
            sent_ns: 0,
            until_ns: 0,
            begun_ns: 0,
            beat_ns: 0,
            due_ns: None,
        })
    }

    /// When the next command is due; `None` before the first setpoint.
    pub fn due_ns(&self) -> Option<i64> {
        self.due_ns
    }

    /// Takes a setpoint; false: of no use, it is older than what is there, or no numbers. One that `waited` here behind a newer one
    /// shapes the path that is still to be played, and is no sign that the stream is late.
    pub fn push(&mut self, setpoint: &Setpoint, arrived_ns: i64, waited: bool) -> bool {
        let source_ns = setpoint.source_ns as i64;
        let offset_ns = arrived_ns - source_ns;
        let floor_ns = self.floor_ns.map_or(offset_ns, |floor_ns| floor_ns.min(offset_ns));
        let due_ns = source_ns + floor_ns;
        let is_ahead = self.path_ns.is_none_or(|path_ns| source_ns > path_ns);
        let is_bridged = self.is_bridged(arrived_ns - due_ns);
        let heard_ns = if is_bridged || (waited && is_ahead) { due_ns } else { arrived_ns };
        if !self.playout.push(source_ns, setpoint.joints_deg, heard_ns.max(0) as u64) {
            return false;
        }
        self.floor_ns = Some(floor_ns);
        self.first.get_or_insert((source_ns, setpoint.joints_deg));
        (self.earlier_ns, self.newest_ns) = (self.newest_ns, source_ns);
        if self.delay_ns >= DEEP_NS {
            return true;
        }
        // Commands are placed by when the setpoint should have come, not by when it did; one that is whole periods late tells where
        // in a period to be, no more.
        self.wanted_ns = due_ns + (arrived_ns - due_ns).div_euclid(SETPOINT_PERIOD_NS) * SETPOINT_PERIOD_NS;
        self.begin_anew_if_far(self.path_ns.is_none());
        self.sent = 0;
        self.begun_ns = arrived_ns;
        self.due_ns = Some(arrived_ns.max(self.sent_ns + SPACING_NS));
        true
    }

    /// The command that is due now; `None` before the first setpoint.
    pub fn next(&mut self, now_ns: i64) -> Option<Command> {
        let is_deep = self.delay_ns >= DEEP_NS;
        if is_deep {
            self.wanted_ns = now_ns;
            self.begin_anew_if_far(false);
        }
        let period_ns = if self.sent == 2 && !is_deep { LAST_COMMAND_NS } else { COMMAND_NS };
        self.wanted_ns += period_ns;
        let most_ns = CATCH_UP * period_ns / 1000;
        let behind_ns = self.wanted_ns - self.clock_ns - period_ns;
        self.clock_ns += period_ns + behind_ns.clamp(-most_ns, most_ns);
        let sampled = self.playout.play(self.clock_ns.max(0) as u64);
        self.sent += 1;
        let limit_ns = (now_ns + period_ns - self.until_ns).clamp(0, period_ns);
        (self.sent_ns, self.until_ns) = (now_ns, now_ns + period_ns);
        // Counted from the setpoint, not from the last command: one that was late does not delay those after it.
        let patience_ns = if self.sent >= 3 { SETPOINT_PERIOD_NS + PATIENCE_NS - 3 * COMMAND_NS } else { 0 };
        let next_ns = self.begun_ns + i64::from(self.sent) * COMMAND_NS + patience_ns;
        // A beat: what one command was late does not delay those after it either.
        self.beat_ns = if is_deep { self.beat_ns.max(now_ns - COMMAND_NS) + COMMAND_NS } else { now_ns };
        self.due_ns = Some((if is_deep { self.beat_ns } else { next_ns }).max(now_ns + SPACING_NS));
        let (Some(sampled), Some(floor_ns)) = (sampled, self.floor_ns) else {
            // The path has not begun: to where it will.
            let (path_ns, joints_deg) = self.first?;
            self.path_ns = Some(path_ns);
            let added_delay_ns = SETPOINT_PERIOD_NS + JITTER_NS;
            return Some(Command { joints_deg, period_ns, limit_ns, from_ns: path_ns - 1, path_ns, added_delay_ns });
        };
        self.delay_ns = sampled.added_delay_ns as i64;
        let path_ns = self.clock_ns - floor_ns - self.delay_ns;
        let from_ns = match self.path_ns.replace(path_ns) {
            // The path begins between two setpoints, and so with the earlier one.
            None => self.earlier_ns.min(path_ns) - 1,
            Some(before_ns) if (0..=2 * COMMAND_NS).contains(&(path_ns - before_ns)) => before_ns,
            Some(_) => path_ns - period_ns,
        };
        let joints_deg = sampled.setpoint;
        Some(Command { joints_deg, period_ns, limit_ns, from_ns, path_ns, added_delay_ns: self.delay_ns })
    }

    /// The last command's call has ended. The arm may have got it only now, and has not moved by it yet: what comes next may not make
    /// up for that.
    pub fn answered(&mut self, now_ns: i64) {
        if now_ns - self.sent_ns > PROMPT_NS {
            self.until_ns += now_ns - self.sent_ns;
        }
    }

    /// Whether a setpoint that is so late is one of the few that add no delay.
    fn is_bridged(&mut self, late_ns: i64) -> bool {
        self.since_late += 1;
        if late_ns <= JITTER_NS {
            return false;
        }
        let is_seldom = self.since_late > SELDOM;
        if self.since_late > TOGETHER {
            self.since_late = 0;
            self.bridges = is_seldom;
        }
        self.bridges && late_ns <= BRIDGED_NS
    }

    fn begin_anew_if_far(&mut self, is_first: bool) {
        if is_first || (self.wanted_ns - self.clock_ns).abs() >= JUMP_NS {
            self.clock_ns = self.wanted_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    const TRANSPORT_NS: i64 = MS;

    /// A motion of one degree a millisecond on all joints.
    fn setpoint(number: i64) -> Setpoint {
        let at_ns = (number * 20 * MS) as u64;
        Setpoint { id: number as u64, source_ns: at_ns, produced_ns: at_ns, joints_deg: [20.0 * number as f64; 6] }
    }

    fn play_until(pacing: &mut Pacing, until_ns: i64, commands: &mut Vec<(i64, Command)>) {
        while let Some(due_ns) = pacing.due_ns().filter(|due_ns| *due_ns < until_ns) {
            commands.extend(pacing.next(due_ns).map(|command| (due_ns, command)));
        }
    }

    /// Commands for setpoints that come so late, with the times they were due.
    fn played(late_ns: &[i64]) -> Vec<(i64, Command)> {
        let (mut pacing, mut commands) = (Pacing::new().unwrap(), Vec::new());
        let arrivals: Vec<i64> = (1..).zip(late_ns).map(|(n, late)| n * 20 * MS + TRANSPORT_NS + late).collect();
        for (n, arrival) in arrivals.iter().enumerate() {
            assert!(pacing.push(&setpoint(n as i64 + 1), *arrival, false));
            play_until(&mut pacing, *arrivals.get(n + 1).unwrap_or(&(arrival + 20 * MS)), &mut commands);
        }
        commands
    }

    fn moved(pair: &[(i64, Command)]) -> f64 {
        pair[1].1.joints_deg[0] - pair[0].1.joints_deg[0]
    }

    #[test]
    fn three_commands_fill_a_setpoints_period_exactly() {
        let commands = played(&[0; 10]);
        // Before the path begins all are to its first point.
        let commands: Vec<_> = commands.into_iter().skip_while(|(_, command)| command.path_ns == 20 * MS).collect();
        let periods: Vec<i64> = commands.iter().map(|(_, command)| command.period_ns).collect();
        let begun = periods.iter().position(|period| *period == LAST_COMMAND_NS).unwrap() + 1;
        assert_eq!(periods[begun..begun + 6], [COMMAND_NS, COMMAND_NS, LAST_COMMAND_NS].repeat(2));
        for pair in commands.windows(2) {
            // A degree a millisecond, at every command.
            assert!((moved(pair) - pair[1].1.period_ns as f64 / 1e6).abs() < 1e-6);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn jitter_within_the_patience_moves_commands_but_not_the_path(late_ns in prop::collection::vec(0..PATIENCE_NS * 9 / 10, 3..60)) {
            let commands = played(&[&[0, 0], &late_ns[..]].concat());
            for pair in commands.windows(2) {
                prop_assert!(pair[1].1.path_ns >= pair[0].1.path_ns, "the path never runs back");
                // What the playout took for the clocks' drift (200 ppm) comes back at once.
                let drift_ms = 200e-6 * pair[1].0 as f64 / 1e6;
                prop_assert!(moved(pair) <= 1.02 * pair[1].1.period_ns as f64 / 1e6 + 1e-3 + drift_ms, "too long a step");
            }
        }

        #[test]
        fn whatever_comes_late_commands_keep_their_distance(late_ns in prop::collection::vec(0..150 * MS, 3..30)) {
            let mut newest_ns = 0;
            let in_order: Vec<i64> = (0..).zip(&late_ns).map(|(n, late)| {
                newest_ns = newest_ns.max(n * 20 * MS + late);
                newest_ns - n * 20 * MS
            }).collect();
            let commands = played(&in_order);
            prop_assert!(commands.windows(2).all(|pair| pair[1].0 - pair[0].0 >= SPACING_NS));
            // At the limit all the way, the arm is never told to be further than one command's time ahead.
            let mut spent_ns = 0;
            for (due_ns, command) in &commands {
                spent_ns += command.limit_ns;
                prop_assert!(spent_ns <= due_ns - commands[0].0 + COMMAND_NS);
            }
        }

        #[test]
        fn a_late_setpoint_waits_for_the_path_and_skips_nothing(late_ms in 20_i64..220) {
            let late = (0..52).map(|n| if n < 10 { 0 } else { (late_ms - 20 * (n - 10)).max(0) * MS });
            let commands = played(&late.collect::<Vec<_>>());
            for pair in commands.windows(2) {
                prop_assert!(pair[1].1.path_ns - pair[0].1.path_ns <= 2 * COMMAND_NS, "the path leaps ahead");
            }
            let played: BTreeSet<i64> = commands.iter().map(|(_, command)| command.path_ns / (20 * MS)).collect();
            let (first, last) = (*played.first().unwrap(), *played.last().unwrap());
            prop_assert!(played.into_iter().eq(first..=last));
        }
    }

    /// Five come in time, then this side sleeps for 80 ms; three wait behind a fourth.
    #[test]
    fn setpoints_that_waited_are_on_the_path_and_add_no_delay() {
        let (mut pacing, mut commands) = (Pacing::new().unwrap(), Vec::new());
        let zigzag = |number: i64| Setpoint { joints_deg: [(number % 2) as f64; 6], ..setpoint(number) };
        for number in 1..6 {
            assert!(pacing.push(&zigzag(number), number * 20 * MS, false));
            play_until(&mut pacing, (number + 1) * 20 * MS, &mut commands);
        }
        let before = commands.len();
        for number in 6..10 {
            assert!(pacing.push(&zigzag(number), 180 * MS, number < 9));
        }
        for number in 10..40 {
            play_until(&mut pacing, number * 20 * MS, &mut commands);
            assert!(pacing.push(&zigzag(number), number * 20 * MS, false));
        }
        assert!(commands.iter().all(|(_, command)| command.added_delay_ns == commands[0].1.added_delay_ns));
        for number in 6..10 {
            let stretch = (number - 1) * 20 * MS + 1..=number * 20 * MS;
            let plays: Vec<&Command> = commands[before..]
                .iter()
                .map(|(_, command)| command)
                .filter(|command| stretch.contains(&command.path_ns))
                .collect();
            assert!(plays.len() >= 2, "no command plays setpoint {number}");
            let nearest = plays.iter().max_by_key(|command| command.path_ns).unwrap();
            let share = nearest.path_ns as f64 / (20 * MS) as f64 - (number - 1) as f64;
            let expected = if number % 2 == 1 { share } else { 1.0 - share };
            assert!((nearest.joints_deg[0] - expected).abs() < 1e-3);
        }
    }

    #[test]
    fn one_late_setpoint_in_two_seconds_adds_no_delay_and_the_next_one_does() {
        let late = |n: i64| {
            if n == 150 || n == 190 {
                30 * MS
            } else if n == 151 || n == 191 {
                10 * MS
            } else {
                0
            }
        };
        let commands = played(&(0..300).map(late).collect::<Vec<_>>());
        let delay_ns = |setpoint: i64| {
            let since = commands.iter().find(|(due_ns, _)| *due_ns > (setpoint + 5) * 20 * MS).unwrap();
            since.1.added_delay_ns
        };
        assert_eq!([delay_ns(140), delay_ns(155)], [SETPOINT_PERIOD_NS + JITTER_NS; 2]);
        assert!(delay_ns(195) > 45 * MS);
        let bridged = commands.windows(2).filter(|pair| (140..185).contains(&(pair[1].0 / (20 * MS))));
        for pair in bridged {
            assert!(
                moved(pair) <= 1.02 * pair[1].1.period_ns as f64 / 1e6 + 1e-3,
                "a motion at one speed is bridged whole"
            );
        }
    }

    #[test]
    fn an_older_setpoint_is_of_no_use() {
        let mut pacing = Pacing::new().unwrap();
        assert!(pacing.push(&setpoint(2), 41 * MS, false) && !pacing.push(&setpoint(1), 42 * MS, false));
    }
}
