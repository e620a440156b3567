//! The result of a run, as one JSON object or as text.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use taut_simulated_clock::MOST_SLIP;
use taut_stats::Distribution;

use crate::{
    failure::{Failure, Name},
    fall::{Fall, STANDS_M},
    host::Host,
    live::Lived,
};

/// What the host saw, as the host's process prints it.
pub fn host(host: &Host) -> Value {
    let statistics = host.statistics();
    let (expected, missing) = statistics.replies();
    let mut phases: Map<String, Value> =
        statistics.distributions().into_iter().map(|(name, d)| (name.to_owned(), figures(&d))).collect();
    let mut sorted = host.beyond_wire_ns().to_vec();
    sorted.sort_unstable();
    phases.insert("beyond_wire".to_owned(), figures(&Distribution::of(host.beyond_wire_ns(), &sorted)));
    let cause = host.cause();
    json!({
        "cycles": statistics.cycles(),
        "skipped": statistics.skipped(),
        "expected": expected,
        "missing": missing,
        "stood": host.stood(),
        "refused": host.refused(),
        "cause": cause.as_ref().map(|(cause, ..)| cause),
        "cause_cycle": cause.as_ref().map(|(_, cycle, _)| cycle),
        "later_causes": cause.as_ref().map(|(.., later)| later),
        "warmest_c": host.warmest_c().is_finite().then(|| host.warmest_c()),
        "phases": phases,
    })
}

fn figures(d: &Distribution) -> Value {
    json!({ "n": d.n, "p50_ns": d.p50_ns, "p90_ns": d.p90_ns, "p99_ns": d.p99_ns, "p999_ns": d.p999_ns,
        "max_ns": d.max_ns })
}

/// A run that is over.
pub struct Run<'a> {
    /// What was asked.
    pub failure: &'a Failure,
    pub rate_hz: f64,
    pub duration_s: f64,
    pub gait: String,
    pub clear: bool,
    /// What each host says; `None`: it was killed.
    pub hosts: &'a [Option<Value>],
    pub fall: &'a Fall,
    pub height_m: f64,
    pub steps: u64,
    /// `None`: in virtual time.
    pub live: Option<&'a Lived>,
}

impl Run<'_> {
    /// Why the robot failed, where it did.
    pub fn reason(&self) -> Option<String> {
        if let Some(Some(first)) = self.hosts.first()
            && let Some(why) = first["refused"].as_str()
        {
            return Some(why.to_owned());
        }
        if !self.premise() {
            return Some(match (self.cause(), self.failure.name) {
                (Some(cause), Name::None) => format!("{cause}; the host lowered the robot"),
                (None, Name::None) => {
                    format!("the robot did not stay up; its body is now at {:.0} cm", self.height_cm())
                }
                (Some(cause), _) => format!("the robot did not stand when the failure began: {cause}"),
                (None, _) => "the robot did not stand when the failure began".to_owned(),
            });
        }
        if self.failure.name == Name::None { None } else { self.wrong_after_failure() }
    }

    /// Whether the robot stood when the failure began, or without one all the time.
    pub fn premise(&self) -> bool {
        let is_up = self.failure.name != Name::None || (self.cause().is_none() && self.host_stood(0));
        is_up && self.fall.stood()
    }

    /// Whether the run says anything of the host, or only of the machine.
    pub fn is_valid(&self) -> bool {
        self.slip_share() <= MOST_SLIP
    }

    fn wrong_after_failure(&self) -> Option<String> {
        let expected = self.failure.expected((1e9 / self.rate_hz) as u64);
        let watched_ns = (self.duration_s * 1e9) as u64 - self.failure.at_ns;
        let damped_ns = self.fall.damped_after_ns;
        match (expected.damped_ns, damped_ns) {
            (Some(most_ns), None) if watched_ns > most_ns => return Some("the servos did not damp".to_owned()),
            (Some(most_ns), Some(ns)) if ns > most_ns => {
                return Some(format!(
                    "the servos damped after {} ms, {} ms are allowed",
                    ns / 1_000_000,
                    most_ns / 1_000_000
                ));
            }
            (None, Some(_)) => return Some("the servos damped, and were to follow".to_owned()),
            _ => {}
        }
        if let Some(ns) = self.fall.followed_again_after_ns
            && self.cleared_after_ns().is_none_or(|cleared_ns| ns < cleared_ns)
        {
            return Some(format!("a servo that had let go followed setpoints again after {} ms", ns / 1_000_000));
        }
        if let (Some(least_ns), Some(ns)) = (expected.timed_out_ns, self.fall.timed_out_after_ns)
            && ns < least_ns
        {
            return Some(format!(
                "a servo timed out {:.1} ms after the last frame to it, before {} ms",
                ns as f64 / 1e6,
                least_ns / 1_000_000
            ));
        }
        if self.fall.timed_out() > expected.time_outs {
            let (found, most) = (self.fall.timed_out(), expected.time_outs);
            return Some(format!("{found} servos timed out, {most} are allowed"));
        }
        match self.cause() {
            Some(cause) if !expected.causes.contains(&cause) => {
                return Some(format!("the host's first cause is: {cause}"));
            }
            None if !expected.causes.is_empty()
                && expected.damped_ns.is_some_and(|ns| watched_ns > ns)
                && self.saw_it() =>
            {
                return Some("the host names no cause".to_owned());
            }
            _ => {}
        }
        if self.failure.name == Name::ReplyGap && self.height_m <= STANDS_M {
            return Some(format!("the robot went down; its body is now at {:.0} cm", self.height_cm()));
        }
        self.wrong_second_host()
    }

    /// How long after the failure a host may first clear what the servos have latched, ns.
    fn cleared_after_ns(&self) -> Option<u64> {
        if self.clear { self.failure.restarted_after_ns() } else { None }
    }

    /// A host that was resumed before the end.
    fn saw_it(&self) -> bool {
        self.failure.host_acts().iter().all(|(ns, _)| (*ns as f64) < self.duration_s * 1e9 - 20e6)
    }

    fn wrong_second_host(&self) -> Option<String> {
        let second = self.hosts.get(1)?.as_ref()?;
        let refused = second["refused"].as_str();
        match (self.clear, refused) {
            (false, Some(why)) if why.contains("is in mode timeout") => None,
            (false, Some(why)) => Some(format!("the second host: {why}")),
            (false, None) => Some("the second host did not report the servos' time-outs".to_owned()),
            (true, Some(why)) => Some(format!("the second host did not clear: {why}")),
            (true, None) => second["cause"].as_str().map(|cause| format!("the second host: {cause}")),
        }
    }

    fn cause(&self) -> Option<String> {
        Some(self.hosts.first()?.as_ref()?["cause"].as_str()?.to_owned())
    }

    fn host_stood(&self, host: usize) -> bool {
        let told = self.hosts.get(host).and_then(Option::as_ref);
        told.is_some_and(|told| told["stood"].as_bool().unwrap_or(false))
    }

    fn slip_share(&self) -> f64 {
        self.live.map_or(0.0, |live| live.slips.total_ns as f64 / 1e9 / self.duration_s)
    }

    fn height_cm(&self) -> f64 {
        100.0 * self.height_m
    }

    /// One JSON object.
    pub fn json(&self) -> Value {
        let reason = self.reason();
        let simulator = self.live.map(|live| {
            json!({
                "steps": self.steps,
                "slips": { "count": live.slips.count, "total_s": live.slips.total_ns as f64 / 1e9,
                    "max_s": live.slips.max_ns as f64 / 1e9 },
                "replies_late": figures(&live.late),
                "replies_overflowed": live.overflowed,
                "priority": live.priority,
            })
        });
        json!({
            "failure": name(self.failure.name),
            "at_s": (self.failure.name != Name::None).then_some(self.failure.at_ns as f64 / 1e9),
            "seed": self.failure.seed,
            "rate_hz": self.rate_hz,
            "duration_s": self.duration_s,
            "gait": self.gait,
            "clear": self.clear,
            "virtual": self.live.is_none(),
            // The robot's own state, not what its host believes.
            "stood": self.premise(),
            "right": reason.is_none(),
            // For labs: a metric with `valid_from`.
            "success": reason.is_none() && self.is_valid(),
            "real_time": 1.0 - self.slip_share(),
            "reason": reason,
            "valid": self.is_valid(),
            "host": self.hosts.first().cloned().flatten(),
            "second_host": self.hosts.get(1).cloned().flatten(),
            "fall": (self.failure.name != Name::None).then(|| self.fall.told()),
            "height_m": self.height_m,
            "least_height_m": self.fall.least_height_m,
            "simulator": simulator,
        })
    }

    /// As people read it, the finding first.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let done = match (self.is_valid(), self.reason()) {
            (false, _) => format!(
                "no evidence: the machine held the simulator up for {:.0} % of the run, {:.0} % are allowed; free a CPU",
                100.0 * self.slip_share(),
                100.0 * MOST_SLIP
            ),
            (true, Some(reason)) => format!("failed: {reason}"),
            (true, None) if self.failure.name == Name::None => "stood".to_owned(),
            (true, None) => format!("stood; {}, and what must follow followed", name(self.failure.name)),
        };
        // A string takes everything.
        let _ = writeln!(text, "quad: {done}; body now at {:.0} cm", self.height_cm());
        for (at, host) in self.hosts.iter().enumerate() {
            let which = if at == 0 { "the host" } else { "the host, started again" };
            match host {
                None => _ = writeln!(text, "  {which}: killed"),
                Some(host) => self.host_text(&mut text, which, host),
            }
        }
        if self.failure.name != Name::None
            && let Some(fall) = self.fall.told().as_object()
        {
            for (name, value) in fall {
                let shown = value.as_f64().map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
                let _ = writeln!(text, "  {name:<22}{shown:>10}");
            }
        }
        if let Some(live) = self.live {
            let (slips, late) = (&live.slips, &live.late);
            let _ = writeln!(
                text,
                "  simulator: {} steps of half a millisecond; held up {} times, {:.1} ms together, {:.1} ms at most; replies late by {} µs at p99; priority {}",
                self.steps,
                slips.count,
                slips.total_ns as f64 / 1e6,
                slips.max_ns as f64 / 1e6,
                late.p99_ns.map_or_else(|| "–".to_owned(), |ns| format!("{:.0}", ns as f64 / 1e3)),
                live.priority,
            );
        }
        text
    }

    fn host_text(&self, text: &mut String, which: &str, host: &Value) {
        let _ = writeln!(
            text,
            "  {which}: {} cycles at {} Hz, {} skipped; {} of {} replies missing",
            host["cycles"], self.rate_hz, host["skipped"], host["missing"], host["expected"]
        );
        if let Some(priority) = host["priority"].as_str() {
            let _ = writeln!(text, "  {which}: priority {priority}");
        }
        if let Some(why) = host["refused"].as_str().or(host["cause"].as_str()) {
            let _ = writeln!(text, "  {which}: {why}");
        }
        let _ = writeln!(text, "  {:<12}{:>10}{:>10}{:>10}", "µs", "p50", "p99", "max");
        for phase in ["wait", "control", "send", "imu", "receive", "parse", "cycle", "beyond_wire"] {
            let cell = |rank: &str| {
                host["phases"][phase][rank]
                    .as_u64()
                    .map_or_else(|| "–".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3))
            };
            let _ = writeln!(text, "  {phase:<12}{:>10}{:>10}{:>10}", cell("p50_ns"), cell("p99_ns"), cell("max_ns"));
        }
    }
}

/// A failure as the command line writes it.
fn name(name: Name) -> String {
    use clap::ValueEnum;
    name.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use moteus_protocol::Mode;

    use super::*;
    use crate::{body::Felt, joints::SERVOS};

    const MS: u64 = 1_000_000;
    const AT_NS: u64 = 3_000 * MS;

    fn felt(height_m: f64) -> Felt {
        Felt {
            attitude: taut_bus::cycle::SimulatedInertialUnit::default().attitude,
            joints_rev: [0.0; SERVOS],
            joints_rev_s: [0.0; SERVOS],
            height_m,
            up_m_s: 0.0,
            ground_n: 98.1,
            body_n: 0.0,
            energy_j: 0.0,
        }
    }

    /// A robot at this height whose servos are in this mode until the failure, and damp so long after it.
    fn fall(height_m: f64, mode: Mode, damped_ns: Option<u64>) -> Fall {
        let felt = felt(height_m);
        let mut fall = Fall::new(AT_NS);
        fall.watch(AT_NS - MS, &felt, &[mode; SERVOS]);
        fall.watch(AT_NS, &felt, &[mode; SERVOS]);
        if let Some(ns) = damped_ns {
            fall.watch(AT_NS + ns, &felt, &[Mode::ZeroVelocity; SERVOS]);
        }
        fall
    }

    fn reason(name: Name, fall: &Fall, cause: Option<&str>, second: Option<Value>) -> Option<String> {
        reason_of(name, fall, cause, second, false)
    }

    fn reason_of(name: Name, fall: &Fall, cause: Option<&str>, second: Option<Value>, clear: bool) -> Option<String> {
        let first = json!({ "refused": null, "cause": cause, "stood": true });
        let mut hosts = vec![if name == Name::HostKilled { None } else { Some(first) }];
        hosts.extend(second.map(Some));
        let failure = Failure { name, at_ns: AT_NS, seed: 4 };
        let run = Run {
            failure: &failure,
            rate_hz: 1000.0,
            duration_s: 6.0,
            gait: "trot".to_owned(),
            clear,
            hosts: &hosts,
            fall,
            height_m: 0.1,
            steps: 0,
            live: None,
        };
        assert!(run.is_valid());
        run.reason()
    }

    #[test]
    fn a_failure_of_a_robot_on_the_ground_proves_nothing() {
        for lying in [fall(0.09, Mode::Position, Some(MS)), fall(0.23, Mode::ZeroVelocity, Some(MS))] {
            let said = reason(Name::ServoOverheat, &lying, Some("servo 5 reports a fault"), None).unwrap();
            assert!(said.contains("did not stand when the failure began"), "{said}");
        }
    }

    #[test]
    fn what_must_follow_is_held_against_what_followed() {
        let hot = |damped_ns, cause| reason(Name::ServoOverheat, &fall(0.23, Mode::Position, damped_ns), cause, None);
        let right = Some("servo 5 reports a fault");
        assert_eq!(hot(Some(3 * MS), right), None);
        assert!(hot(Some(4 * MS), right).unwrap().contains("after 4 ms, 3 ms are allowed"));
        assert!(hot(None, right).unwrap().contains("did not damp"));
        assert!(hot(Some(3 * MS), Some("servo 6 reports a fault")).unwrap().contains("first cause is: servo 6"));
        assert!(hot(Some(3 * MS), None).unwrap().contains("names no cause"));
        let gap = |damped_ns| reason(Name::ReplyGap, &fall(0.23, Mode::Position, damped_ns), None, None).unwrap();
        assert!(gap(Some(MS)).contains("were to follow") && gap(None).contains("went down"));
    }

    #[test]
    fn a_servo_that_let_go_follows_nothing_until_it_is_cleared() {
        let again = |name, after_ns, clear: bool| {
            let mut fall = fall(0.23, Mode::Position, Some(2 * MS));
            let mut modes = [Mode::ZeroVelocity; SERVOS];
            modes[7] = Mode::Position;
            fall.watch(AT_NS + after_ns, &felt(0.1), &modes);
            let refused = (!clear).then_some("servo 1 is in mode timeout");
            let second = (name == Name::HostKilled).then(|| json!({ "refused": refused, "cause": null }));
            reason_of(name, &fall, Some("servo 5 reports a fault"), second, clear)
        };
        for clear in [false, true] {
            let said = again(Name::ServoOverheat, 1_200 * MS, clear).unwrap();
            assert!(said.contains("followed setpoints again after 1200 ms"), "{said}");
        }
        assert!(again(Name::HostKilled, 1_200 * MS, false).unwrap().contains("again after 1200 ms"));
        assert_eq!(again(Name::HostKilled, 1_200 * MS, true), None);
        // Before there is a host that could clear it.
        assert!(again(Name::HostKilled, 900 * MS, true).unwrap().contains("again after 900 ms"));
    }

    #[test]
    fn one_servo_that_follows_again_is_enough_before_all_have_let_go() {
        let mut fall = fall(0.23, Mode::Position, None);
        let mut modes = [Mode::Position; SERVOS];
        modes[4] = Mode::Fault;
        fall.watch(AT_NS + MS, &felt(0.23), &modes);
        assert_eq!(fall.followed_again_after_ns, None);
        fall.watch(AT_NS + 2 * MS, &felt(0.23), &[Mode::Position; SERVOS]);
        fall.watch(AT_NS + 3 * MS, &felt(0.23), &[Mode::ZeroVelocity; SERVOS]);
        let said = reason(Name::ServoOverheat, &fall, Some("servo 5 reports a fault"), None).unwrap();
        assert!(said.contains("again after 2 ms"), "{said}");
    }

    #[test]
    fn a_time_out_comes_no_sooner_than_its_time_after_the_last_frame() {
        let timed_out = |name, silence_ns| {
            let mut fall = fall(0.23, Mode::Position, None);
            (0..SERVOS).for_each(|servo| fall.sent(servo, AT_NS - 2 * MS));
            // One is earlier than the others, by a step.
            let mut modes = [Mode::Position; SERVOS];
            modes[3] = Mode::Timeout;
            fall.watch(AT_NS - 2 * MS + silence_ns, &felt(0.2), &modes);
            fall.watch(AT_NS - 2 * MS + silence_ns + MS / 2, &felt(0.2), &[Mode::Timeout; SERVOS]);
            // What the host sends when it goes on is late.
            (0..SERVOS).for_each(|servo| fall.sent(servo, AT_NS + 1_000 * MS));
            fall.watch(AT_NS + 1_000 * MS, &felt(0.2), &[Mode::Timeout; SERVOS]);
            let second = json!({ "refused": "servo 1 is in mode timeout from an earlier run", "cause": null });
            let second = (name == Name::HostKilled).then_some(second);
            reason(name, &fall, Some("servo 4 has timed out"), second)
        };
        for name in [Name::HostKilled, Name::HostHung] {
            assert_eq!(timed_out(name, 100 * MS), None);
            let said = timed_out(name, 99 * MS).unwrap();
            assert!(said.contains("timed out 99.0 ms after the last frame to it, before 100 ms"), "{said}");
        }
    }

    #[test]
    fn a_second_host_reports_the_time_outs() {
        let second = |refused: Option<&str>| json!({ "refused": refused, "cause": null });
        let killed = |told| reason(Name::HostKilled, &fall(0.23, Mode::Position, Some(100 * MS)), None, Some(told));
        assert_eq!(killed(second(Some("servo 1 is in mode timeout from an earlier run"))), None);
        assert!(killed(second(Some("servo 1 is in mode zero velocity"))).unwrap().contains("zero velocity"));
        assert!(killed(second(None)).unwrap().contains("did not report"));
    }
}
