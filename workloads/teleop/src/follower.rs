//! The follower: setpoints in, commands out every 8 ms. One thread, so nothing here waits for a lock.
//!
//! The latest wins: of the setpoints that wait the newest says where to be, and when. Those that waited behind it are merged into the
//! path that leads there; what the path leaves out is superseded. What goes to the servo has a mailbox of depth 1, the path itself: a
//! command is made when it can be sent, from where the path is then. Commands are clamped against the last *sent* one. A setpoint counts
//! as delivered when the arm's own state shows that the commands made from it were taken.
//!
//! Without an answer of the guard's motion stops. If the guard answers again soon, so that it vouches for the time between, motion goes
//! on from where the arm is; the setpoints that came meanwhile are on the path. Otherwise the stop is latched, until an operator looks,
//! and presses reset.

use std::collections::VecDeque;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use taut_guard::{
    ledger::{Fate, Reason},
    setpoint::Retry,
};
use taut_stamp::stamp;

use crate::{
    account::Account,
    arms::{Joints, largest_turn_deg},
    guards::{Heartbeat, REARM_NS},
    links::Setpoint,
    pacing::{COMMAND_NS, Command, DELAY_MOST_NS, Pacing, SETPOINT_PERIOD_NS},
    safety::{Clamp, Reject},
    stream::State,
};

/// An older setpoint is stale: it says where the operator was.
const AGE_MAX_NS: u64 = 200_000_000;
/// By the arm's own time: a state that was sampled so long after a command must show it.
const ECHO_TIMEOUT_NS: i64 = 100_000_000;
const ECHO_DEG: f64 = 1e-6;
const ECHOES_KEPT: usize = 64;
const ATTEMPTS_MAX: u32 = 3;
/// Setpoints in a row that are no numbers; then something is broken.
const MALFORMED_MAX: u32 = 5;
/// After its silence the guard has so long to answer again, ns: an arm stops within 40 ms, and a guard that was reset needs 100 ms of
/// slow frames in a window of 150 ms. A stop for longer is latched.
const HOLD_MOST_NS: u64 = 400_000_000;
const PLAY_OUT_NS: u64 = (DELAY_MOST_NS + 5 * SETPOINT_PERIOD_NS) as u64;
const SETTLE_NS: u64 = 1_000_000_000;

/// What a follower deals with.
pub trait Outside {
    fn now_ns(&self) -> u64;
    /// All setpoints that wait, oldest first.
    fn setpoints(&mut self, into: &mut Vec<Setpoint>);
    /// All answers of the guard that wait.
    fn answers(&mut self, into: &mut Vec<u32>);
    fn ask(&mut self, challenge: u32);
    /// Whether the guard's process is there.
    fn has_guard(&self) -> bool;
    /// The controller's code; `None`: it did not answer in time.
    fn servo_j(&mut self, joints_deg: &Joints, period_ns: u64, setpoint: u64, timeout_ns: u64) -> Option<i64>;
    /// False: it did not answer in time.
    fn stop_motion(&mut self, timeout_ns: u64) -> bool;
    /// The arm's states that wait, oldest first; false: it is gone.
    fn states(&mut self, into: &mut Vec<State>) -> bool;
    fn sleep(&mut self, ns: u64);
}

/// What setpoints or commands are held against.
pub enum Validator {
    Reject(Reject),
    Clamp(Clamp),
}

/// A setpoint on its way through the path. `number` is the newest command made from it.
struct Carried {
    setpoint: Setpoint,
    after_ns: i64,
    number: i32,
    sent_ns: i64,
    modified: Option<Reason>,
    is_done: bool,
}

pub struct Follower<O> {
    pub outside: O,
    asker: Heartbeat,
    validator: Validator,
    has_operator: bool,
    pacing: Pacing,
    retry: Retry,
    carried: VecDeque<Carried>,
    newest_source_ns: u64,
    number: i32,
    sent: VecDeque<(i32, Joints)>,
    is_numbered: bool,
    arm_floor_ns: i64,
    malformed: u32,
    /// Why the arm is stopped for good, and since when.
    stopped: Option<(Reason, u64)>,
    /// It is stopped until the guard answers again.
    is_held: bool,
    state: Option<State>,
    pub account: Account,
    commands_sent: u64,
    retries: u64,
    diverged: u64,
    holds: u64,
    /// Each stop that was latched, those that an operator ended included.
    stops: Vec<&'static str>,
    added_delay_ns: Vec<i64>,
    pub arm_is_gone: bool,
    setpoints: Vec<Setpoint>,
    answers: Vec<u32>,
    states: Vec<State>,
}

impl<O: Outside> Follower<O> {
    pub fn new(outside: O, asker: Heartbeat, validator: Validator, has_operator: bool) -> Result<Follower<O>> {
        Ok(Follower {
            outside,
            asker,
            validator,
            has_operator,
            pacing: Pacing::new()?,
            retry: Retry::new(SETPOINT_PERIOD_NS as u64, ATTEMPTS_MAX)?,
            carried: VecDeque::new(),
            newest_source_ns: 0,
            number: 0,
            sent: VecDeque::with_capacity(ECHOES_KEPT + 1),
            is_numbered: true,
            arm_floor_ns: i64::MAX,
            malformed: 0,
            stopped: None,
            is_held: false,
            state: None,
            account: Account::default(),
            commands_sent: 0,
            retries: 0,
            diverged: 0,
            holds: 0,
            stops: Vec::new(),
            // An hour of commands.
            added_delay_ns: Vec::with_capacity(1 << 19),
            arm_is_gone: false,
            setpoints: Vec::new(),
            answers: Vec::new(),
            states: Vec::new(),
        })
    }

    /// Until when nothing is due.
    pub fn due_ns(&self) -> u64 {
        let most_ns = self.outside.now_ns() + COMMAND_NS as u64;
        self.command_due_ns().map_or(most_ns, |due_ns| due_ns.min(most_ns))
    }

    fn command_due_ns(&self) -> Option<u64> {
        let is_moving = self.stopped.is_none() && !self.is_held;
        self.pacing.due_ns().filter(|_| is_moving).map(|due_ns| due_ns.max(0) as u64)
    }

    /// Takes what came, sends what is due; then what is in no hurry, the arm's echo and the guard's answers.
    pub fn turn(&mut self) -> Result<()> {
        self.take();
        let now_ns = self.outside.now_ns();
        if self.asker.overdue_ns(now_ns).is_some() {
            self.hear_guard()?; // a good answer may be waiting
        }
        if self.command_due_ns().is_some_and(|due_ns| now_ns >= due_ns)
            && let Some(command) = self.pacing.next(now_ns as i64)
        {
            self.send(&command);
        }
        self.hear_arm();
        self.hear_guard()?;
        self.account.check(now_ns);
        Ok(())
    }

    /// The leader has ended: plays the path to its end, confirms what the arm has taken, and closes the account.
    pub fn finish(&mut self, produced: u64) -> Result<()> {
        self.turn()?;
        let ends_ns = self.outside.now_ns() + PLAY_OUT_NS;
        while self.carried.iter().any(|one| !one.is_done) && self.stopped.is_none() && self.outside.now_ns() < ends_ns {
            let left_ns = self.due_ns().saturating_sub(self.outside.now_ns());
            self.outside.sleep(left_ns);
            self.turn()?;
        }
        self.carried.iter_mut().for_each(|one| one.is_done |= one.number > 0);
        let ends_ns = self.outside.now_ns() + SETTLE_NS;
        while self.carried.iter().any(|one| one.number > 0) && self.outside.now_ns() < ends_ns && !self.arm_is_gone {
            self.outside.sleep(2_000_000);
            self.hear_arm();
        }
        let now_ns = self.outside.now_ns();
        for one in std::mem::take(&mut self.carried) {
            let fate =
                if one.number > 0 { Fate::Lost(Reason::NotExecuted) } else { Fate::Superseded(Reason::Superseded) };
            self.account.drop(one.setpoint.id, fate, now_ns);
        }
        self.account.close(produced, now_ns);
        Ok(())
    }

    pub fn summary(&mut self) -> Value {
        let now_ns = self.outside.now_ns();
        self.added_delay_ns.sort_unstable();
        let delay_ms = |at: usize| self.added_delay_ns.get(at).map_or(0.0, |ns| *ns as f64 / 1e6);
        let (half, last) = (self.added_delay_ns.len() / 2, self.added_delay_ns.len().saturating_sub(1));
        json!({
            "commands": self.commands_sent,
            "servo_retries": self.retries,
            "diverged": self.diverged,
            "holds": self.holds,
            "heartbeat_lapse_ms": self.asker.lapse_ns() / 1_000_000,
            "stops": self.stops,
            "stopped": self.stopped.map(|(reason, _)| reason.name()),
            "added_delay_ms": { "p50": delay_ms(half), "max": delay_ms(last) },
            "setpoints": self.account.summary(now_ns),
            "failures": self.account.failure.iter().collect::<Vec<_>>(),
        })
    }

    fn take(&mut self) {
        let mut waiting = std::mem::take(&mut self.setpoints);
        self.outside.setpoints(&mut waiting);
        let arrived_ns = self.outside.now_ns();
        let count = waiting.len();
        for (at, setpoint) in waiting.drain(..).enumerate() {
            self.account.enter(setpoint.id, setpoint.produced_ns);
            stamp!("follower.command_parsed", setpoint.id);
            if let Some((reason, _)) = self.stopped {
                self.account.drop(setpoint.id, Fate::Rejected(reason), arrived_ns);
            } else if arrived_ns.saturating_sub(setpoint.produced_ns) > AGE_MAX_NS {
                self.account.drop(setpoint.id, Fate::Rejected(Reason::Stale), arrived_ns);
            } else {
                self.accept(&setpoint, arrived_ns, at + 1 < count);
            }
        }
        self.setpoints = waiting;
    }

    fn accept(&mut self, setpoint: &Setpoint, arrived_ns: u64, waited: bool) {
        if setpoint.joints_deg.iter().any(|joint| !joint.is_finite()) {
            self.account.drop(setpoint.id, Fate::Rejected(Reason::Malformed), arrived_ns);
            self.malformed += 1;
            if self.malformed >= MALFORMED_MAX {
                self.stop(Reason::Malformed);
            }
            return;
        }
        self.malformed = 0;
        if let Validator::Reject(reject) = &mut self.validator
            && let Some(reason) = reject.judge(&setpoint.joints_deg, arrived_ns, setpoint.source_ns)
        {
            return self.leave_out(setpoint, reason, arrived_ns);
        }
        if !self.pacing.push(setpoint, arrived_ns as i64, waited) {
            let is_again = setpoint.source_ns == self.newest_source_ns;
            let reason = if is_again { Reason::Duplicate } else { Reason::OutOfOrder };
            return self.leave_out(setpoint, reason, arrived_ns);
        }
        self.carried.push_back(Carried {
            setpoint: *setpoint,
            after_ns: self.newest_source_ns as i64,
            number: 0,
            sent_ns: 0,
            modified: waited.then_some(Reason::Superseded),
            is_done: false,
        });
        self.newest_source_ns = setpoint.source_ns;
        stamp!("follower.command_pre_hardware_write", setpoint.id);
    }

    /// The ledger knows no rejection for a limit: what the validator drops is lost.
    fn leave_out(&mut self, setpoint: &Setpoint, reason: Reason, now_ns: u64) {
        let fate = if reason == Reason::Duplicate { Fate::Superseded(reason) } else { Fate::Lost(reason) };
        self.account.drop(setpoint.id, fate, now_ns);
    }

    fn send(&mut self, command: &Command) {
        let (joints_deg, modified) = match &mut self.validator {
            Validator::Clamp(clamp) => clamp.clamp(&command.joints_deg, command.limit_ns as f64 / 1e9),
            Validator::Reject(_) => (command.joints_deg, None),
        };
        let newest = self.carried.back().map_or(0, |one| one.setpoint.id);
        let code = self.call(&joints_deg, command.period_ns as u64, newest);
        let sent_ns = self.outside.now_ns() as i64;
        self.pacing.answered(sent_ns);
        match code {
            None => {
                if let Validator::Clamp(clamp) = &mut self.validator {
                    clamp.lose();
                }
                return self.drop_passed(command.path_ns, Fate::Lost(Reason::Transport));
            }
            Some(0) => {}
            Some(_) => return self.stop(Reason::NotEnabled),
        }
        self.commands_sent += 1;
        self.number += 1;
        if self.sent.len() == ECHOES_KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back((self.number, joints_deg));
        self.added_delay_ns.push(command.added_delay_ns);
        // Where the path was begun anew beyond some of them.
        self.drop_passed(command.from_ns, Fate::Superseded(Reason::Superseded));
        for one in self.carried.iter_mut().take_while(|one| command.path_ns > one.after_ns) {
            if one.number == 0 {
                stamp!("follower.command_applied", one.setpoint.id);
            }
            (one.number, one.sent_ns) = (self.number, sent_ns);
            one.modified = one.modified.or(modified);
            one.is_done = command.path_ns >= one.setpoint.source_ns as i64;
        }
    }

    /// Setpoints that no command carried, and none will: the path is beyond the stretch to them and the one from them.
    fn drop_passed(&mut self, path_ns: i64, fate: Fate) {
        let now_ns = self.outside.now_ns();
        let mut at = 0;
        while let Some(following) = self.carried.get(at + 1) {
            if self.carried[at].number == 0 && following.setpoint.source_ns as i64 <= path_ns {
                self.account.drop(self.carried[at].setpoint.id, fate, now_ns);
                self.carried.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// The controller's code, or nothing: it did not answer within one setpoint's period.
    fn call(&mut self, joints_deg: &Joints, period_ns: u64, setpoint: u64) -> Option<i64> {
        self.retry.begin(self.outside.now_ns());
        loop {
            let left_ns = self.retry.left_ns(self.outside.now_ns()).max(1);
            if let Some(code) = self.outside.servo_j(joints_deg, period_ns, setpoint, left_ns) {
                return Some(code);
            }
            self.retries += 1;
            // It may have got through all the same: from here on the arm's count may be ahead of ours, and its targets are not those of our
            // numbers.
            self.is_numbered = false;
            if !self.retry.again(self.outside.now_ns()) {
                return None;
            }
        }
    }

    fn hear_arm(&mut self) {
        if self.arm_is_gone {
            return;
        }
        let mut states = std::mem::take(&mut self.states);
        self.arm_is_gone = !self.outside.states(&mut states);
        if let Some(newest) = states.drain(..).next_back() {
            self.confirm(newest);
        }
        self.states = states;
        if self.arm_is_gone {
            self.stop(Reason::NotEnabled);
        }
    }

    /// Holds what was sent against the arm's own count and target.
    fn confirm(&mut self, state: State) {
        let executed = state.values.commands;
        // A call that was given up had got through.
        self.number = self.number.max(executed);
        let is_other = self.is_other_target(&state);
        // A state may be held up on its way: when it was sampled counts, by the least time that one ever took.
        self.arm_floor_ns = self.arm_floor_ns.min(state.arrived_ns as i64 - state.source_ns as i64);
        let sampled_ns = state.source_ns as i64 + self.arm_floor_ns;
        let now_ns = self.outside.now_ns();
        while let Some(one) = self.carried.front().filter(|one| one.is_done) {
            if executed < one.number && sampled_ns - one.sent_ns < ECHO_TIMEOUT_NS {
                break;
            }
            let (id, modified) = (one.setpoint.id, one.modified);
            if executed < one.number || (executed == one.number && is_other) {
                self.account.drop(id, Fate::Lost(Reason::NotExecuted), now_ns);
            } else {
                self.account.deliver(id, modified, now_ns);
            }
            self.carried.pop_front();
        }
        let is_stopped = state.values.is_stopped;
        self.state = Some(state);
        if is_stopped && self.stopped.is_none() {
            self.stop(Reason::NotEnabled);
        }
    }

    /// Whether the arm's target is not what was sent under its number: it was bent there, or came from elsewhere.
    fn is_other_target(&mut self, state: &State) -> bool {
        let sent = self.sent.iter().find(|(number, _)| *number == state.values.commands);
        let Some((_, sent_deg)) = sent.filter(|_| self.is_numbered) else { return false };
        let is_other = largest_turn_deg(sent_deg, &state.values.target_deg) > ECHO_DEG;
        self.diverged += u64::from(is_other);
        is_other
    }

    fn hear_guard(&mut self) -> Result<()> {
        let now_ns = self.outside.now_ns();
        self.outside.answers(&mut self.answers);
        for answer in self.answers.drain(..) {
            self.asker.hear(answer);
        }
        if let Some(question) = self.asker.question(now_ns) {
            self.outside.ask(question);
        }
        match (self.stopped, self.asker.overdue_ns(now_ns)) {
            (None, Some(overdue_ns)) if overdue_ns > HOLD_MOST_NS || !self.outside.has_guard() => {
                self.stop(Reason::GuardLatched);
            }
            (None, Some(_)) if !self.is_held => self.hold(),
            (None, None) if self.is_held => self.go_on()?,
            (Some((Reason::GuardLatched, since_ns)), None) if self.has_operator && now_ns - since_ns >= REARM_NS => {
                // Somebody presses reset: the arm joins the hand's path from where it is, at what the validator lets through.
                self.pacing = Pacing::new()?;
                self.go_on()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A controlled stop where the arm is.
    fn halt(&mut self) {
        if !self.outside.stop_motion(SETPOINT_PERIOD_NS as u64) {
            self.retries += 1; // commands have ended, and with them the arm's motion
        }
    }

    fn hold(&mut self) {
        self.is_held = true;
        self.holds += 1;
        self.halt();
    }

    fn go_on(&mut self) -> Result<()> {
        let state = self.state.as_ref().context("motion went on before the arm's first state")?;
        if let Validator::Clamp(clamp) = &mut self.validator {
            clamp.rehome(&state.values.joints_deg);
        }
        (self.is_held, self.stopped) = (false, None);
        Ok(())
    }

    /// A stop that is latched: only a new start leaves it, or an operator where it was the guard's.
    fn stop(&mut self, why: Reason) {
        let now_ns = self.outside.now_ns();
        self.stopped = Some((why, now_ns));
        self.stops.push(why.name());
        self.carried.retain_mut(|one| {
            one.is_done = true;
            if one.number == 0 {
                self.account.drop(one.setpoint.id, Fate::Rejected(why), now_ns);
            }
            one.number > 0
        });
        self.halt();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use taut_guard::heartbeat;

    use super::*;
    use crate::{
        arms::HOME_DEG,
        cnde,
        guards::{Kind, agreed_hash},
        safety::LIMITS,
        wire,
    };

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 1_000_000 * MS;

    /// On virtual time: it passes when a thread sleeps, and a little when a thread reads it. The arm takes every command, or bends one, and
    /// shows it in its states; the guard answers while it is well.
    struct Virtual {
        now_ns: Cell<u64>,
        waiting: Vec<Setpoint>,
        question: Option<u32>,
        is_well: bool,
        has_guard: bool,
        count: i32,
        bends: i32,
        target_deg: Joints,
        halts: u32,
        /// The state that comes in the place of the newest.
        old: Option<cnde::State>,
    }

    impl Outside for Virtual {
        fn now_ns(&self) -> u64 {
            self.now_ns.set(self.now_ns.get() + 1000);
            self.now_ns.get()
        }

        fn setpoints(&mut self, into: &mut Vec<Setpoint>) {
            into.append(&mut self.waiting);
        }

        fn answers(&mut self, into: &mut Vec<u32>) {
            let answer = |question| heartbeat::expected(agreed_hash(Kind::Taut, wire::Kind::Plain), question);
            if self.is_well {
                into.extend(self.question.take().map(answer));
            }
        }

        fn ask(&mut self, challenge: u32) {
            self.question = Some(challenge);
        }

        fn has_guard(&self) -> bool {
            self.has_guard
        }

        fn servo_j(&mut self, joints_deg: &Joints, _: u64, _: u64, _: u64) -> Option<i64> {
            self.count += 1;
            self.target_deg = *joints_deg;
            self.target_deg[0] += if self.count == self.bends { 0.1 } else { 0.0 };
            Some(0)
        }

        fn stop_motion(&mut self, _: u64) -> bool {
            self.halts += 1;
            true
        }

        fn states(&mut self, into: &mut Vec<State>) -> bool {
            let now_ns = self.now_ns();
            let (commands, target_deg) = (self.count, self.target_deg);
            let newest = cnde::State {
                commands,
                target_deg,
                joints_deg: target_deg,
                calendar_ns: now_ns,
                ..cnde::State::default()
            };
            let values = self.old.clone().unwrap_or(newest);
            let source_ns = values.calendar_ns;
            into.push(State { values, source_ns, arrived_ns: now_ns, ..State::default() });
            true
        }

        fn sleep(&mut self, ns: u64) {
            self.now_ns.set(self.now_ns.get() + ns);
        }
    }

    struct Loop(Follower<Virtual>);

    impl Loop {
        fn new(has_operator: bool) -> Loop {
            let outside = Virtual {
                now_ns: Cell::new(START_NS),
                waiting: Vec::new(),
                question: None,
                is_well: true,
                has_guard: true,
                count: 0,
                bends: 0,
                target_deg: HOME_DEG,
                halts: 0,
                old: None,
            };
            let mut asker = Heartbeat::new(Kind::Taut, wire::Kind::Plain);
            let question = asker.question(START_NS).unwrap();
            asker.hear(heartbeat::expected(agreed_hash(Kind::Taut, wire::Kind::Plain), question));
            let validator = Validator::Clamp(Clamp::new(LIMITS, HOME_DEG));
            Loop(Follower::new(outside, asker, validator, has_operator).unwrap())
        }

        fn source_ns(number: u64) -> u64 {
            START_NS + number * 20 * MS
        }

        /// A slow turn of the first joint, a setpoint every 20 ms of the robot's time.
        fn send(&mut self, number: u64, turn_deg: f64) {
            let mut joints_deg = HOME_DEG;
            joints_deg[0] += turn_deg * number as f64;
            let produced_ns = self.0.outside.now_ns.get();
            self.0.outside.waiting.push(Setpoint {
                id: number,
                source_ns: Self::source_ns(number),
                produced_ns,
                joints_deg,
            });
        }

        /// As the process does, until each setpoint is made.
        fn come(&mut self, numbers: std::ops::Range<u64>) {
            for number in numbers {
                while self.0.outside.now_ns.get() < Self::source_ns(number) {
                    let left_ns = self.0.due_ns().saturating_sub(self.0.outside.now_ns.get());
                    self.0.outside.sleep(left_ns.min(MS));
                    self.0.turn().unwrap();
                }
                self.send(number, 0.1);
            }
        }

        fn finish(mut self, produced: u64) -> (Value, Virtual) {
            self.0.finish(produced).unwrap();
            let summary = self.0.summary();
            assert_eq!((&summary["failures"], &summary["setpoints"]["unexplained"]), (&json!([]), &json!(0)));
            assert_eq!(summary["setpoints"]["in_flight"], 0);
            (summary, self.0.outside)
        }
    }

    #[test]
    fn what_waited_is_merged_and_the_path_is_played_to_its_end() {
        let mut one = Loop::new(false);
        one.come(1..6);
        one.0.outside.sleep(80 * MS);
        (6..10).for_each(|number| one.send(number, 0.1));
        one.come(10..21);
        let (summary, arm) = one.finish(20);
        let setpoints = &summary["setpoints"];
        assert_eq!(
            (&setpoints["applied"], &setpoints["dropped"], &setpoints["silent"]),
            (&json!(20), &json!({}), &json!(0))
        );
        assert_eq!((&setpoints["modified"], &summary["diverged"]), (&json!({ "superseded": 4 }), &json!(0)));
        assert!((arm.target_deg[0] - HOME_DEG[0] - 2.0).abs() < 0.05);
    }

    #[test]
    fn what_a_path_that_is_begun_anew_leaves_out_is_superseded() {
        let mut one = Loop::new(false);
        one.come(1..6);
        one.0.outside.sleep(280 * MS);
        (6..20).for_each(|number| one.send(number, 0.1));
        one.come(20..26);
        let (summary, _) = one.finish(25);
        let dropped = summary["setpoints"]["dropped"].as_object().unwrap();
        assert!(dropped.keys().all(|reason| ["superseded", "stale"].contains(&&reason[..])), "{dropped:?}");
        assert!((5..=14).contains(&dropped["superseded"].as_u64().unwrap()), "{dropped:?}");
    }

    #[test]
    fn a_command_that_the_arm_bent_was_not_executed() {
        let mut one = Loop::new(false);
        one.0.outside.bends = 10;
        one.come(1..11);
        assert!(one.finish(10).0["diverged"].as_u64().unwrap() >= 1);
    }

    #[test]
    fn a_state_that_is_held_up_does_not_say_that_a_command_was_lost() {
        let mut one = Loop::new(false);
        one.come(1..6);
        let mut states = Vec::new();
        one.0.outside.states(&mut states);
        one.come(6..16);
        // What was sampled 200 ms ago comes now.
        one.0.outside.old = Some(states.remove(0).values);
        one.0.turn().unwrap();
        one.0.outside.old = None;
        let setpoints = &one.finish(15).0["setpoints"];
        assert_eq!((&setpoints["applied"], &setpoints["silent"]), (&json!(15), &json!(0)));
    }

    #[test]
    fn setpoints_that_are_no_numbers_stop_the_arm_after_some() {
        let mut one = Loop::new(false);
        let count = u64::from(MALFORMED_MAX) + 2;
        (1..=count).for_each(|number| one.send(number, f64::NAN));
        one.0.turn().unwrap();
        let (summary, _) = one.finish(count);
        assert_eq!(summary["stops"], json!(["malformed"]));
        assert_eq!(summary["setpoints"]["dropped"], json!({ "malformed": count }));
    }

    /// The guard says nothing from setpoint 10 to setpoint `until`.
    fn without_answers(until: u64, has_operator: bool) -> (Value, Virtual) {
        let mut one = Loop::new(has_operator);
        one.come(1..10);
        one.0.outside.is_well = false;
        one.come(10..until);
        one.0.outside.is_well = true;
        one.come(until..until + 100);
        one.finish(until + 99)
    }

    #[test]
    fn a_guard_that_was_away_for_100_ms_costs_no_setpoint() {
        let (summary, _) = without_answers(15, false);
        let setpoints = &summary["setpoints"];
        assert_eq!((&setpoints["applied"], &setpoints["dropped"]), (&json!(114), &json!({})));
        assert_eq!((&summary["stops"], &summary["holds"].as_u64().map(|holds| holds <= 1)), (&json!([]), &Some(true)));
    }

    #[test]
    fn motion_stops_without_the_guards_answer_and_goes_on_with_it() {
        let (summary, arm) = without_answers(22, false);
        assert_eq!((&summary["stops"], &summary["holds"], arm.halts), (&json!([]), &json!(1), 1));
        let dropped = summary["setpoints"]["dropped"].as_object().unwrap();
        assert!(dropped.keys().all(|reason| reason == "superseded"), "{dropped:?}");
        // At the end of the hand's path.
        assert!((arm.target_deg[0] - HOME_DEG[0] - 12.1).abs() < 0.05, "{}", arm.target_deg[0]);
    }

    #[test]
    fn a_longer_silence_of_the_guards_is_latched_until_an_operator_looks() {
        let (summary, arm) = without_answers(40, false);
        assert_eq!((&summary["stops"], arm.halts), (&json!(["guard_latched"]), 2));
        assert_eq!(summary["stopped"], "guard_latched");
        let count = |summary: &Value| summary["setpoints"]["dropped"]["guard_latched"].as_u64().unwrap();
        assert!(count(&summary) > 100, "{summary}");
        let (summary, arm) = without_answers(40, true);
        assert_eq!((&summary["stops"], &summary["stopped"]), (&json!(["guard_latched"]), &Value::Null));
        assert!((40..80).contains(&count(&summary)), "{summary}");
        assert!((arm.target_deg[0] - HOME_DEG[0] - 13.9).abs() < 0.05, "{}", arm.target_deg[0]);
    }

    #[test]
    fn a_follower_that_was_not_run_for_100_ms_does_not_stop_for_it() {
        let mut one = Loop::new(false);
        one.come(1..10);
        one.0.outside.sleep(115 * MS);
        (10..15).for_each(|number| one.send(number, 0.1));
        one.come(15..60);
        let (summary, _) = one.finish(59);
        assert_eq!((&summary["stops"], &summary["holds"]), (&json!([]), &json!(0)));
        assert_eq!((&summary["setpoints"]["applied"], &summary["setpoints"]["dropped"]), (&json!(59), &json!({})));
    }

    #[test]
    fn a_guard_that_is_gone_is_not_waited_for() {
        let mut one = Loop::new(false);
        one.come(1..10);
        (one.0.outside.is_well, one.0.outside.has_guard) = (false, false);
        one.come(10..20);
        let (summary, _) = one.finish(19);
        assert_eq!((&summary["stops"], &summary["holds"]), (&json!(["guard_latched"]), &json!(0)));
    }
}
