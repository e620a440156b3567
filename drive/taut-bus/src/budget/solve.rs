//! Backward: what a rate allows. How many servos, how many bytes, how few bits a second?

use super::{
    draw::{draw, nanoseconds},
    error::Error,
    file::{CycleBudget, PAYLOAD_MAX, SERVOS_MAX},
    forecast::mean_cycle_us,
    knob::{Knob, knobs},
    load::lanes,
    sampling::Sampling,
};
use schemars::JsonSchema;
use serde::Serialize;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Solve {
    /// The most servos.
    Servos,
    /// The most payload bytes of a command and of a reply.
    Payload,
    /// The fewest bits a second, of each link by itself.
    Bitrate,
}

/// What was asked for a target, with the answers.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The target.
    pub target_hz: f64,
    /// One answer for each figure that was solved for.
    pub answers: Vec<Answer>,
}

/// One figure, solved for by itself, everything else as the budget has it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The question it answers.
    pub solve: Solve,
    /// The figure.
    #[serde(skip)]
    pub knob: Knob,
    /// Its key, as `--set` takes it.
    pub key: String,
    /// Its value now.
    pub now: f64,
    /// The value that just holds the target on average; `None` if none does.
    pub limit: Option<f64>,
    /// The value up to which 99 % of drawn cycles hold the target; `None` if there is none.
    pub limit_p99: Option<f64>,
    /// The mean cycle at the limit, or the shortest that this figure can reach where none holds, µs.
    pub cycle_us: f64,
    /// Whether the limit is not the target's but the format's: no longer frame, no more addresses.
    pub unbounded: bool,
}

/// A CAN-FD frame's longest payload.
const CAN_PAYLOAD_MAX: u32 = 64;
/// No link is faster.
const RATE_MAX: f64 = 1e12;
/// No link worth asking for is slower.
const RATE_MIN: f64 = 1.0;
/// Enough halvings for a rate to six digits over 12 decades.
const HALVINGS: u32 = 30;
/// Of the drawn cycles so many hold the target at `limit_p99`, drawn again for each value that is tried.
const HOLDING: f64 = 0.99;
const TRIED_CYCLES: u32 = 4000;

/// Solves for each figure that `questions` ask for, by the mean cycle and by drawn ones.
///
/// # Errors
/// When the budget has nothing of the kind that is asked for.
pub fn solve(budget: &CycleBudget, target_hz: f64, questions: &[Solve], sampling: Sampling) -> Result<Solved, Error> {
    if !(target_hz > 0.0 && target_hz <= 1e9) {
        return Err(Error::value("--target-hz", target_hz, "must be above 0 and at most 1e9"));
    }
    let budget = &CycleBudget { target_hz: Some(target_hz), ..budget.clone() };
    let mut answers = Vec::new();
    for question in questions {
        let asked: Vec<Knob> = knobs(budget).into_iter().filter(|knob| answers_to(knob) == Some(*question)).collect();
        if asked.is_empty() && questions.len() == 1 {
            return Err(nothing(*question));
        }
        answers.extend(asked.into_iter().map(|knob| answer(budget, *question, knob, 1e6 / target_hz, sampling)));
    }
    Ok(Solved { target_hz, answers })
}

fn answers_to(knob: &Knob) -> Option<Solve> {
    match knob {
        Knob::Servos => Some(Solve::Servos),
        Knob::Frame(_) => Some(Solve::Payload),
        rate if rate.is_rate() => Some(Solve::Bitrate),
        _ => None,
    }
}

fn nothing(question: Solve) -> Error {
    match question {
        Solve::Payload => Error::missing("[frames]", "give payloads names there, so that they can be solved for"),
        _ => Error::missing("[rs485], [can] or [spi]", "a link has a bit rate to solve for"),
    }
}

fn answer(budget: &CycleBudget, solve: Solve, knob: Knob, period_us: f64, sampling: Sampling) -> Answer {
    let cycle_us = |value: f64| mean_cycle_us(&knob.with(budget, value));
    let on_average = |value: f64| cycle_us(value) <= period_us;
    let tries = Sampling { cycles: sampling.cycles.min(TRIED_CYCLES), ..sampling };
    let nearly_always =
        |value: f64| on_average(value) && share_held(&knob.with(budget, value), period_us, tries) >= HOLDING;
    let (limit, unbounded) = limit_of(budget, solve, &knob, &on_average);
    let (limit_p99, _) = limit_of(budget, solve, &knob, &nearly_always);
    let nearest = match solve {
        Solve::Servos => 1.0,
        Solve::Payload => 0.0,
        Solve::Bitrate => RATE_MAX,
    };
    Answer {
        solve,
        key: knob.key(budget),
        now: knob.get(budget).unwrap_or(0.0),
        cycle_us: cycle_us(limit.unwrap_or(nearest)),
        limit,
        limit_p99,
        unbounded,
        knob,
    }
}

/// The last value that holds, and whether it is the format that ends there.
fn limit_of(budget: &CycleBudget, solve: Solve, knob: &Knob, holds: &impl Fn(f64) -> bool) -> (Option<f64>, bool) {
    match solve {
        Solve::Servos => most(1, SERVOS_MAX, |n| holds(f64::from(n))),
        Solve::Payload => {
            let longest = if knob.on_can(budget) { CAN_PAYLOAD_MAX } else { PAYLOAD_MAX };
            most(0, longest, |n| holds(f64::from(n)))
        }
        Solve::Bitrate => (least_rate(holds), holds(RATE_MIN)),
    }
}

/// Share of drawn cycles that end within the period.
fn share_held(budget: &CycleBudget, period_us: f64, sampling: Sampling) -> f64 {
    let cycles = draw(budget, &lanes(budget), sampling).cycles;
    let held = cycles.iter().filter(|ns| **ns <= nanoseconds(period_us)).count();
    held as f64 / cycles.len().max(1) as f64
}

/// The largest of a range that holds, given that what holds for many holds for fewer; and whether even the last does.
fn most(from: u32, to: u32, holds: impl Fn(u32) -> bool) -> (Option<f64>, bool) {
    if !holds(from) {
        return (None, false);
    }
    let (mut good, mut bad) = (from, to + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        *(if holds(middle) { &mut good } else { &mut bad }) = middle;
    }
    (Some(f64::from(good)), good == to)
}

fn least_rate(holds: &impl Fn(f64) -> bool) -> Option<f64> {
    if !holds(RATE_MAX) {
        return None;
    }
    let (mut bad, mut good) = (RATE_MIN, RATE_MAX);
    for _ in 0..HALVINGS {
        let middle = (bad * good).sqrt();
        *(if holds(middle) { &mut good } else { &mut bad }) = middle;
    }
    Some(good)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLING: Sampling = Sampling { cycles: 100, seed: 1 };

    fn bus(servos: u32, bytes: u32, baud: f64) -> CycleBudget {
        let text = format!(
            "title = 't'\n[servos]\ncount = {servos}\n[frames]\ncommand = {bytes}\n[rs485]\nbaud = {baud:.3}\n\
             [[resource]]\nname = 'bus'\n[[term]]\nname = 'c'\nstage = 'host-wire'\nper = 'servo'\nrs485 = 'command'\n\
             [[term]]\nname = 'turn'\nstage = 'servo-turnaround'\nper = 'servo'\nus = 20\n"
        );
        CycleBudget::parse(&text, &[]).unwrap()
    }

    #[test]
    fn a_bus_of_100_us_a_servo_holds_ten_at_1_khz() {
        // (17 + 7) bytes at 3 Mbaud are 80 µs, and 20 of turn-around.
        let solved =
            solve(&bus(4, 17, 3e6), 1000.0, &[Solve::Servos, Solve::Payload, Solve::Bitrate], SAMPLING).unwrap();
        let limits: Vec<(&str, f64)> =
            solved.answers.iter().map(|a| (a.key.as_str(), a.limit.unwrap().round())).collect();
        // 4 servos have 250 µs each: 230 of wire, 69 bytes; or 24 bytes in 230 µs: 1.0435 Mbaud.
        assert_eq!(limits, [("servos.count", 10.0), ("frames.command", 62.0), ("rs485.baud", 1_043_478.0)]);
        assert!(solved.answers.iter().all(|a| a.limit_p99 == a.limit), "nothing varies");
    }

    #[test]
    fn what_varies_needs_room_beyond_the_mean() {
        let mut budget = bus(4, 17, 3e6);
        budget.terms[1].jitter = Some(crate::budget::Jitter::Uniform { from_us: -20.0, to_us: 20.0 });
        let sampling = Sampling { cycles: 4000, seed: 1 };
        let solved = solve(&budget, 1000.0, &[Solve::Servos, Solve::Payload, Solve::Bitrate], sampling).unwrap();
        let [servos, payload, baud] = &solved.answers[..] else { panic!() };
        assert_eq!((servos.limit, servos.limit_p99), (Some(10.0), Some(9.0)));
        assert!(payload.limit_p99 < payload.limit && baud.limit_p99 > baud.limit);
    }

    #[test]
    fn what_no_rate_can_mend_is_said_with_its_floor() {
        let solved = solve(&bus(60, 17, 3e6), 1000.0, &[Solve::Bitrate], SAMPLING).unwrap();
        assert_eq!(solved.answers[0].limit, None);
        assert!((solved.answers[0].cycle_us - 1200.0).abs() < 0.1, "turn-arounds alone");
    }

    #[test]
    fn a_can_frame_ends_at_64_bytes() {
        let text = "title = 't'\n[servos]\ncount = 1\n[frames]\nreply = 5\n[can]\nnominal_hz = 1e6\ndata_hz = 5e6\n\
            [[resource]]\nname = 'can'\n[[term]]\nname = 'r'\nstage = 'can'\nper = 'servo'\ncan = 'reply'\n";
        let solved = solve(&CycleBudget::parse(text, &[]).unwrap(), 1000.0, &[Solve::Payload], SAMPLING).unwrap();
        assert_eq!((solved.answers[0].limit, solved.answers[0].unbounded), (Some(64.0), true));
    }

    #[test]
    fn a_budget_without_frames_says_what_to_write() {
        let text =
            "title = 't'\n[servos]\ncount = 1\n[[resource]]\nname = 'r'\n[[term]]\nname = 'a'\nstage = 'imu'\nus = 1\n";
        let budget = CycleBudget::parse(text, &[]).unwrap();
        let told = |question| solve(&budget, 100.0, &[question], SAMPLING).unwrap_err().to_string();
        assert!(told(Solve::Payload).contains("[frames] is missing"));
        assert!(told(Solve::Bitrate).contains("[rs485], [can] or [spi] is missing"));
        assert!(solve(&budget, -1.0, &[Solve::Servos], SAMPLING).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn solving_and_forecasting_agree(servos in 1u32..40, bytes in 0u32..200, baud in 1e5..1e7, hz in 10.0..3000.0) {
            let budget = bus(servos, bytes, baud);
            for answer in solve(&budget, hz, &[Solve::Servos, Solve::Payload, Solve::Bitrate], SAMPLING).unwrap().answers {
                let cycle = |value: f64| mean_cycle_us(&answer.knob.with(&budget, value));
                let Some(limit) = answer.limit else {
                    prop_assert!(answer.cycle_us > 1e6 / hz);
                    continue;
                };
                prop_assert!(cycle(limit) <= 1e6 / hz * (1.0 + 1e-9));
                let beyond = if answer.knob.is_rate() { limit * 0.999 } else { limit + 1.0 };
                prop_assert!(answer.unbounded || cycle(beyond) > 1e6 / hz);
            }
        }
    }
}
