//! What can go wrong, when, and what must follow.

use taut_guard::watchdog::DegradeCause;

use crate::{
    host::{REPLY_AGE_MAX, in_words},
    joints::{JOINTS, LEGS, SERVOS},
};

/// A failure by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// Nothing fails
    #[default]
    None,
    /// All torque is gone at once: what the others are compared with
    PowerCut,
    /// The host is killed, and started again a second later
    HostKilled,
    /// The host is stopped for a second
    HostHung,
    /// The host is stopped for 90 ms, less than the servos' time-out
    HostStalled,
    /// A servo is at 90 °C at once
    ServoOverheat,
    /// Three servos of three legs go to 90 °C and back every 5 ms
    FaultStorm,
    /// A bus breaks next to the host
    BusCut,
    /// The replies of one bus are lost
    RepliesLost,
    /// Four replies of one servo in a row are lost, one fewer than the host allows
    ReplyGap,
}

/// What is done to the host's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAct {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Resume,
    /// A new process.
    Start,
}

/// A failure with its moment and place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub name: Name,
    /// When, ns of the simulated clock.
    pub at_ns: u64,
    /// Picks the servo or bus: the remainder by their number.
    pub seed: u64,
}

/// What must follow a failure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// All servos damp, or are off with a fault, at most so long after the failure, ns; `None`: they follow.
    pub damped_ns: Option<u64>,
    /// The first cause that the host names is one of these; empty: it names none.
    pub causes: Vec<String>,
    /// Servos that may run into their time-out.
    pub time_outs: usize,
    /// The least time from the last frame to a servo until it is in time-out, ns; `None`: not all frames arrive.
    pub timed_out_ns: Option<u64>,
}

const MS: u64 = 1_000_000;
const HUNG_NS: u64 = 1_000 * MS;
const STALLED_NS: u64 = 90 * MS;
/// The servos' own time-out: τ.
const TIME_OUT_NS: u64 = 100 * MS;
/// And until that is seen: a step, and a setpoint of just before the failure.
const TIMED_OUT_NS: u64 = TIME_OUT_NS + 2 * MS;
/// Of a cycle, and of a step of the body.
const SEEN_NS: u64 = 3 * MS / 2;
const FLAPPING_NS: u64 = 5 * MS;
const HOT_C: f64 = 90.0;
const WARM_C: f64 = 25.0;

impl Failure {
    /// The servo that it hits.
    pub fn servo(&self) -> usize {
        (self.seed % SERVOS as u64) as usize
    }

    /// The bus that it hits.
    pub fn bus(&self) -> usize {
        (self.seed % LEGS as u64) as usize
    }

    /// Whether it has happened.
    pub fn is_on(&self, now_ns: u64) -> bool {
        self.name != Name::None && now_ns >= self.at_ns
    }

    /// Whether all torque is gone.
    pub fn is_power_cut(&self, now_ns: u64) -> bool {
        self.name == Name::PowerCut && self.is_on(now_ns)
    }

    /// What happens to the host's process, and when; it is started at 0.
    pub fn host_acts(&self) -> Vec<(u64, HostAct)> {
        let at = self.at_ns;
        match self.name {
            Name::HostKilled => vec![(at, HostAct::Kill), (at + HUNG_NS, HostAct::Start)],
            Name::HostHung => vec![(at, HostAct::Stop), (at + HUNG_NS, HostAct::Resume)],
            Name::HostStalled => vec![(at, HostAct::Stop), (at + STALLED_NS, HostAct::Resume)],
            _ => Vec::new(),
        }
    }

    /// How long after the failure a host is started again, ns.
    pub fn restarted_after_ns(&self) -> Option<u64> {
        let acts = self.host_acts();
        acts.iter().find(|(_, act)| *act == HostAct::Start).map(|(ns, _)| ns - self.at_ns)
    }

    /// The bus whose cable is broken.
    pub fn cut(&self, now_ns: u64) -> Option<usize> {
        (self.name == Name::BusCut && self.is_on(now_ns)).then(|| self.bus())
    }

    /// By servo, how many of its next replies are lost; asked once, when the failure begins.
    pub fn lost_replies(&self) -> [u64; SERVOS] {
        std::array::from_fn(|servo| match self.name {
            Name::RepliesLost if servo / JOINTS == self.bus() => u64::MAX,
            Name::ReplyGap if servo == self.servo() => REPLY_AGE_MAX - 1,
            _ => 0,
        })
    }

    /// The temperature that something else than the servo's own torque brings it to, °C.
    pub fn temperature_c(&self, servo: usize, now_ns: u64) -> Option<f64> {
        if !self.is_on(now_ns) || !self.hot().contains(&servo) {
            return None;
        }
        let flapped = (now_ns - self.at_ns) / FLAPPING_NS;
        let is_cool = self.name == Name::FaultStorm && flapped % 2 == 1;
        Some(if is_cool { WARM_C } else { HOT_C })
    }

    fn hot(&self) -> Vec<usize> {
        let servo = self.servo();
        match self.name {
            Name::ServoOverheat => vec![servo],
            // One a leg: a leg apart, and another joint.
            Name::FaultStorm => (0..3).map(|n| (servo + n * (JOINTS + 1)) % SERVOS).collect(),
            _ => Vec::new(),
        }
    }

    /// What must follow, for a host with this period.
    pub fn expected(&self, period_ns: u64) -> Expected {
        let words = |servos: &[usize], cause: fn(u8) -> DegradeCause| {
            servos.iter().map(|servo| in_words(cause(*servo as u8))).collect::<Vec<_>>()
        };
        let on_bus: Vec<usize> = (0..SERVOS).filter(|servo| servo / JOINTS == self.bus()).collect();
        let within = |cycles: u64| Some(cycles * period_ns + SEEN_NS);
        let (damped_ns, causes, time_outs) = match self.name {
            // Servos without power report nothing.
            Name::None | Name::PowerCut | Name::ReplyGap => (None, Vec::new(), 0),
            // A host that was killed names nothing.
            Name::HostKilled => (Some(TIMED_OUT_NS), Vec::new(), SERVOS),
            Name::HostHung => {
                let all: Vec<usize> = (0..SERVOS).collect();
                (Some(TIMED_OUT_NS), words(&all, DegradeCause::ServoTimeout), SERVOS)
            }
            Name::HostStalled => {
                (Some(STALLED_NS + 2 * period_ns + SEEN_NS), vec![in_words(DegradeCause::HostStale)], 0)
            }
            Name::ServoOverheat | Name::FaultStorm => (within(2), words(&self.hot(), DegradeCause::ServoFault), 0),
            Name::BusCut => (Some(TIMED_OUT_NS), words(&on_bus, DegradeCause::NoReply), JOINTS),
            Name::RepliesLost => (within(REPLY_AGE_MAX + 2), words(&on_bus, DegradeCause::NoReply), 0),
        };
        // Only where each frame that was sent arrives: the last one before a bus is cut may be on its way.
        let timed_out_ns = matches!(self.name, Name::HostKilled | Name::HostHung).then_some(TIME_OUT_NS);
        Expected { damped_ns, causes, time_outs, timed_out_ns }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn a_storm_hits_three_legs_and_flaps() {
        for seed in 0..SERVOS as u64 {
            let storm = Failure { name: Name::FaultStorm, at_ns: 7, seed };
            let mut legs: Vec<usize> = storm.hot().iter().map(|servo| servo / JOINTS).collect();
            legs.sort_unstable();
            legs.dedup();
            assert_eq!(legs.len(), 3, "{:?}", storm.hot());
            let c = [0, FLAPPING_NS, 2 * FLAPPING_NS].map(|ns| storm.temperature_c(storm.servo(), 7 + ns).unwrap());
            assert_eq!(c, [HOT_C, WARM_C, HOT_C]);
        }
    }

    #[test]
    fn nothing_happens_before_its_time() {
        for name in Name::value_variants() {
            let failure = Failure { name: *name, at_ns: 10, seed: 3 };
            assert!(!failure.is_on(9) && !failure.is_power_cut(9) && failure.cut(9).is_none());
            assert!((0..SERVOS).all(|servo| failure.temperature_c(servo, 9).is_none()));
            assert!(failure.host_acts().iter().all(|(ns, _)| *ns >= 10));
        }
    }
}
