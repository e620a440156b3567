//! The host's end: any fault sends every servo to zero velocity, latched, with the first cause kept. A servo that does
//! not answer for k cycles is a fault too: old joint angles must not be used for control.

use super::timeouts::Timeouts;
use crate::{
    counters::{Counter, Width, counters},
    error::{Error, within},
};

/// By how much the damping is raised when all servos are sent to zero velocity.
pub const FIRST_FAULT_KD_SCALE: f64 = 1.5;

/// What a servo reports in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// It follows or waits.
    Healthy,
    /// It has timed out and damps.
    TimedOut,
    /// It has a fault and is off.
    Faulted,
}

/// What to send to a servo in this cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Nothing that moves.
    Stop,
    /// The setpoint of this cycle.
    Follow,
    /// Zero velocity, with kd raised by this factor.
    ZeroVelocity {
        /// Factor on kd.
        kd_scale: f64,
    },
}

/// Why the chain degraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DegradeCause {
    /// A servo reported a fault of its own.
    ServoFault(u8),
    /// A servo reported a time-out: commands did not reach it, or an earlier host died.
    ServoTimeout(u8),
    /// A servo did not answer for k cycles.
    NoReply(u8),
    /// The host itself did not run for longer than its limit.
    HostStale,
    /// The host's clock went back.
    HostClock,
    /// No word from the operator.
    OperatorLost,
    /// Tilt, battery, stand-up time: a number of the caller's.
    Other(u8),
}

/// Where the chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainState {
    /// At rest.
    Stopped,
    /// Servos follow.
    Running,
    /// All servos damp. Left only by [`DegradeChain::stop`].
    Degraded(DegradeCause),
}

counters!(
    /// What the chain saw.
    ChainCounters {
        /// Cycles.
        cycles,
        /// Replies that did not come.
        missing_replies,
        /// Causes that came after the first.
        later_causes,
    }
);

/// The host's watchdog over `N` servos.
#[derive(Clone, Debug)]
pub struct DegradeChain<const N: usize, W: Width = u32> {
    timeouts: Timeouts,
    reply_age_max: u64,
    state: ChainState,
    age_cycles: [Counter<W>; N],
    heard: [bool; N],
    is_off: [bool; N],
    last_cycle_ns: Option<u64>,
    operator_ns: u64,
    /// What it saw.
    pub counters: ChainCounters<W>,
}

impl<const N: usize, W: Width> DegradeChain<N, W> {
    /// A stopped chain. `reply_age_max` is k, in cycles, at most what fits the host's stale time.
    ///
    /// # Errors
    /// Time-outs that do not nest, or a k out of range.
    pub fn new(timeouts: Timeouts, reply_age_max: u64) -> Result<DegradeChain<N, W>, Error> {
        timeouts.check()?;
        let most = timeouts.reply_age_cycles().min(W::MAX.into());
        within("reply_age_max", reply_age_max as f64, 1.0, most as f64)?;
        Ok(DegradeChain {
            timeouts,
            reply_age_max,
            state: ChainState::Stopped,
            age_cycles: [Counter::default(); N],
            heard: [false; N],
            is_off: [false; N],
            last_cycle_ns: None,
            operator_ns: 0,
            counters: ChainCounters::default(),
        })
    }

    /// Begins to run, from rest. Replies count from here on.
    ///
    /// # Errors
    /// Unless stopped, with no servo off.
    pub fn start(&mut self, now_ns: u64) -> Result<(), Error> {
        if self.state != ChainState::Stopped {
            return Err(Error::ResetRefused("the chain must be stopped before it starts"));
        }
        if self.is_off.contains(&true) {
            return Err(Error::ResetRefused("a servo is off with a fault"));
        }
        self.state = ChainState::Running;
        self.age_cycles = [Counter::default(); N];
        (self.last_cycle_ns, self.operator_ns) = (Some(now_ns), now_ns);
        Ok(())
    }

    /// The only way out of a degraded state; never automatic.
    pub fn stop(&mut self) {
        self.state = ChainState::Stopped;
        self.is_off = [false; N];
    }

    /// Takes a servo's reply. A fault is acted upon at once, not at the cycle's end.
    pub fn reply(&mut self, servo: usize, report: Report) {
        let (Some(heard), Some(is_off)) = (self.heard.get_mut(servo), self.is_off.get_mut(servo)) else { return };
        *heard = true;
        match report {
            Report::Healthy => {}
            Report::TimedOut => self.degrade(DegradeCause::ServoTimeout(servo as u8)),
            Report::Faulted => {
                *is_off = true;
                self.degrade(DegradeCause::ServoFault(servo as u8));
            }
        }
    }

    /// A signal of the operator arrived.
    pub fn operator(&mut self, now_ns: u64) {
        self.operator_ns = self.operator_ns.max(now_ns);
    }

    /// Tells of a cause that only the caller sees: tilt above 45°, low battery, stand-up time.
    pub fn degrade(&mut self, cause: DegradeCause) {
        match self.state {
            ChainState::Degraded(_) => self.counters.later_causes.bump(),
            _ => self.state = ChainState::Degraded(cause),
        }
    }

    /// Ends a cycle: looks at ages and gaps. One pass over the servos, degraded or not.
    pub fn cycle(&mut self, now_ns: u64) -> ChainState {
        self.counters.cycles.bump();
        let last_ns = self.last_cycle_ns.replace(now_ns).unwrap_or(now_ns);
        let is_running = self.state == ChainState::Running;
        let mut silent = None;
        for servo in (0..N).rev() {
            if core::mem::take(&mut self.heard[servo]) {
                self.age_cycles[servo] = Counter::default();
            } else {
                self.age_cycles[servo].bump();
                self.counters.missing_replies.bump();
            }
            if self.age_cycles[servo].get() >= self.reply_age_max {
                silent = Some(servo as u8);
            }
        }
        let gap_ns = now_ns.saturating_sub(last_ns);
        if is_running && now_ns < last_ns {
            self.degrade(DegradeCause::HostClock);
        } else if is_running && gap_ns > self.timeouts.host_stale_ns {
            self.degrade(DegradeCause::HostStale);
        } else if is_running && now_ns.saturating_sub(self.operator_ns) > self.timeouts.operator_ns {
            self.degrade(DegradeCause::OperatorLost);
        } else if let (true, Some(servo)) = (is_running, silent) {
            self.degrade(DegradeCause::NoReply(servo));
        }
        self.state
    }

    /// What to send to a servo now.
    pub fn action(&self, servo: usize) -> Action {
        match self.state {
            _ if self.is_off.get(servo).copied().unwrap_or(true) => Action::Stop,
            ChainState::Stopped => Action::Stop,
            ChainState::Running => Action::Follow,
            ChainState::Degraded(_) => Action::ZeroVelocity { kd_scale: FIRST_FAULT_KD_SCALE },
        }
    }

    /// Where it stands, with the first cause.
    pub fn state(&self) -> ChainState {
        self.state
    }

    /// Cycles since a servo answered.
    pub fn reply_age_cycles(&self, servo: usize) -> u64 {
        self.age_cycles.get(servo).map_or(u64::MAX, |age| age.get())
    }
}
