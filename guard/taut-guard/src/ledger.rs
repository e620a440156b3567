//! The setpoint ledger: each setpoint has an id and exactly one fate, and the sums are checked while the robot runs.
//!
//! produced = acknowledged + superseded by policy + Σ rejected + Σ lost + in flight; nothing may be unexplained.

mod reason;

pub use reason::{Class, REASON_COUNT, Reason};

use crate::{
    counters::{Counter, Width},
    error::Error,
};

/// How a setpoint ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reached the robot as it was.
    Passed,
    /// It reached the robot clamped, scaled or interpolated, for a limit.
    Modified(Reason),
    /// The last setpoint was kept in its place, and the caller knows.
    Held(Reason),
    /// A newer one, or an equal one, took its place by policy.
    Superseded(Reason),
    /// It was refused, and the caller knows.
    Rejected(Reason),
    /// It got lost on its way.
    Lost(Reason),
}

impl Fate {
    /// The reason, if it did not pass unchanged.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Fate::Passed => None,
            Fate::Modified(reason) | Fate::Held(reason) | Fate::Superseded(reason) => Some(reason),
            Fate::Rejected(reason) | Fate::Lost(reason) => Some(reason),
        }
    }

    /// Whether the robot got this setpoint, or a feasible one in its stead.
    pub fn is_delivered(self) -> bool {
        matches!(self, Fate::Passed | Fate::Modified(_))
    }

    fn check(self) -> Result<(), Error> {
        match self {
            Fate::Rejected(reason) if !reason.may_reject() => Err(Error::NotARejection(reason as u8)),
            _ => Ok(()),
        }
    }
}

/// One second of the alarm's window.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    ended: u64,
    delivered: u64,
}

const ALARM_SECONDS: usize = 10;
const SECOND_NS: u64 = 1_000_000_000;
/// Below this share delivered, over 10 s, the alarm is raised.
const DELIVERED_MIN: f64 = 0.99;

/// What the ledger reports each second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Balance {
    /// Setpoints produced.
    pub produced: u64,
    /// Passed or modified.
    pub acknowledged: u64,
    /// Superseded by policy.
    pub superseded: u64,
    /// Rejected, held or lost, by any reason.
    pub rejected: u64,
    /// Without a fate yet.
    pub in_flight: u64,
    /// Losses that are reported to no part of the robot (reasons 5, 11 and 20).
    pub silent: u64,
    /// Share of the setpoints that the policy let through in the last 10 s which were delivered, if any.
    pub delivered_share: Option<f64>,
    /// Whether a silent loss happened at all, or less than 99 % were delivered in the last 10 s.
    pub is_alarmed: bool,
    /// Whether a counter has reached its maximum: sums are lower bounds then, and are not compared.
    pub is_saturated: bool,
}

/// The books. `IN_FLIGHT` bounds the setpoints without a fate.
#[derive(Clone, Debug)]
pub struct Ledger<const IN_FLIGHT: usize = 64, W: Width = u64> {
    open: [Option<(u64, u64)>; IN_FLIGHT],
    open_count: usize,
    /// Where the next search for a free place begins.
    cursor: usize,
    produced: Counter<W>,
    passed: Counter<W>,
    by_reason: [[Counter<W>; KINDS]; REASON_COUNT],
    seconds: [Second; ALARM_SECONDS],
    second: u64,
    age_max_ns: u64,
}

/// Modified, held, superseded, rejected, lost.
const KINDS: usize = 5;

fn kind(fate: Fate) -> usize {
    match fate {
        Fate::Passed | Fate::Modified(_) => 0,
        Fate::Held(_) => 1,
        Fate::Superseded(_) => 2,
        Fate::Rejected(_) => 3,
        Fate::Lost(_) => 4,
    }
}

impl<const IN_FLIGHT: usize, W: Width> Default for Ledger<IN_FLIGHT, W> {
    fn default() -> Self {
        Ledger {
            open: [None; IN_FLIGHT],
            open_count: 0,
            cursor: 0,
            produced: Counter::default(),
            passed: Counter::default(),
            by_reason: [[Counter::default(); KINDS]; REASON_COUNT],
            seconds: [Second::default(); ALARM_SECONDS],
            second: 0,
            age_max_ns: 0,
        }
    }
}

impl<const IN_FLIGHT: usize, W: Width> Ledger<IN_FLIGHT, W> {
    /// Empty books.
    pub fn new() -> Self {
        Ledger::default()
    }

    /// Enters a new setpoint. Ids are the caller's; two in flight must differ.
    ///
    /// # Errors
    /// No room: the setpoint is not entered, and the caller must not send it.
    pub fn produce(&mut self, id: u64, now_ns: u64) -> Result<(), Error> {
        if self.find(id).is_some() {
            return Err(Error::Contradiction("a setpoint with this id is in flight already"));
        }
        let places = (self.cursor..IN_FLIGHT).chain(0..self.cursor);
        let Some(free) = places.into_iter().find(|&n| self.open[n].is_none()) else {
            return Err(Error::TooManyInFlight(IN_FLIGHT));
        };
        self.open[free] = Some((id, now_ns));
        self.cursor = (free + 1) % IN_FLIGHT;
        self.open_count += 1;
        self.produced.bump();
        Ok(())
    }

    /// Gives a setpoint its one fate; gives its age.
    ///
    /// # Errors
    /// An id that is not in flight, or a rejection for a reason that must not reject (a limit, above all).
    pub fn end(&mut self, id: u64, fate: Fate, now_ns: u64) -> Result<u64, Error> {
        fate.check()?;
        let place = self.find(id).ok_or(Error::NotInFlight(id))?;
        let produced_ns = self.open[place].take().map_or(now_ns, |(_, at)| at);
        self.open_count -= 1;
        match fate.reason() {
            None => self.passed.bump(),
            Some(reason) => self.by_reason[reason as usize - 1][kind(fate)].bump(),
        }
        self.roll(now_ns);
        let second = &mut self.seconds[(self.second % ALARM_SECONDS as u64) as usize];
        // What the policy took back was not to be delivered.
        second.ended += u64::from(!matches!(fate, Fate::Superseded(_)));
        second.delivered += u64::from(fate.is_delivered());
        let age_ns = now_ns.saturating_sub(produced_ns);
        self.age_max_ns = self.age_max_ns.max(age_ns);
        Ok(age_ns)
    }

    /// Ends every setpoint produced before `before_ns` with one fate: after a reconnect, or when acknowledgements
    /// can no longer come. Gives how many.
    ///
    /// # Errors
    /// A rejection for a reason that must not reject.
    pub fn end_older(&mut self, before_ns: u64, fate: Fate, now_ns: u64) -> Result<u64, Error> {
        fate.check()?;
        let mut ended = 0;
        for n in 0..IN_FLIGHT {
            if let Some((id, at_ns)) = self.open[n]
                && at_ns < before_ns
            {
                self.end(id, fate, now_ns)?;
                ended += 1;
            }
        }
        Ok(ended)
    }

    /// Whether a setpoint is still without a fate.
    pub fn is_in_flight(&self, id: u64) -> bool {
        self.find(id).is_some()
    }

    /// How many setpoints met a reason, whatever it did to them.
    pub fn count(&self, reason: Reason) -> u64 {
        self.by_reason[reason as usize - 1].iter().fold(0, |sum, counter| sum.saturating_add(counter.get()))
    }

    /// The share of a reason among all that were produced.
    pub fn share(&self, reason: Reason) -> f64 {
        let produced = self.produced.get();
        if produced == 0 { 0.0 } else { self.count(reason) as f64 / produced as f64 }
    }

    /// The longest time from production to fate.
    pub fn age_max_ns(&self) -> u64 {
        self.age_max_ns
    }

    /// Checks the law of conservation; call it once a second. The in-flight table is counted again for it, so that a
    /// damaged table or counter shows.
    ///
    /// # Errors
    /// The sums differ: setpoints are unexplained.
    pub fn balance(&mut self, now_ns: u64) -> Result<Balance, Error> {
        self.roll(now_ns);
        let of_kind =
            |kind: usize| self.by_reason.iter().fold(0u64, |sum, counters| sum.saturating_add(counters[kind].get()));
        let by_reason = self.by_reason.iter().flatten().any(|counter| counter.is_saturated());
        let silent = Reason::ALL.into_iter().filter(|reason| reason.is_silent());
        let silent = silent.fold(0u64, |sum, reason| {
            sum.saturating_add(self.by_reason[reason as usize - 1][kind(Fate::Lost(reason))].get())
        });
        let timing_bug = self.count(Reason::ValidatorTimingBug);
        let window = self.seconds.iter().fold(Second::default(), |sum, second| Second {
            ended: sum.ended + second.ended,
            delivered: sum.delivered + second.delivered,
        });
        let delivered_share = (window.ended > 0).then(|| window.delivered as f64 / window.ended as f64);
        let balance = Balance {
            produced: self.produced.get(),
            acknowledged: self.passed.get().saturating_add(of_kind(0)),
            superseded: of_kind(2),
            rejected: of_kind(1).saturating_add(of_kind(3)).saturating_add(of_kind(4)),
            in_flight: self.open.iter().flatten().count() as u64,
            silent,
            delivered_share,
            is_alarmed: silent > 0 || timing_bug > 0 || delivered_share.is_some_and(|share| share < DELIVERED_MIN),
            is_saturated: by_reason || self.produced.is_saturated() || self.passed.is_saturated(),
        };
        let accounted = [balance.acknowledged, balance.superseded, balance.rejected, balance.in_flight];
        let accounted = accounted.into_iter().fold(0u64, u64::saturating_add);
        if !balance.is_saturated && (accounted != balance.produced || balance.in_flight != self.open_count as u64) {
            return Err(Error::Unbalanced { produced: balance.produced, accounted });
        }
        Ok(balance)
    }

    /// Ids mostly end in the order they came, so the search begins at the oldest.
    fn find(&self, id: u64) -> Option<usize> {
        if self.open_count == 0 {
            return None;
        }
        let start = (self.cursor + IN_FLIGHT - self.open_count.min(IN_FLIGHT)) % IN_FLIGHT;
        let places = (start..IN_FLIGHT).chain(0..start);
        places.into_iter().find(|&n| self.open[n].is_some_and(|(open, _)| open == id))
    }

    /// Moves the window's seconds on to `now`.
    fn roll(&mut self, now_ns: u64) {
        let second = now_ns / SECOND_NS;
        let passed = second.saturating_sub(self.second).min(ALARM_SECONDS as u64);
        for n in 0..passed {
            self.seconds[((second - n) % ALARM_SECONDS as u64) as usize] = Second::default();
        }
        self.second = self.second.max(second);
    }
}
