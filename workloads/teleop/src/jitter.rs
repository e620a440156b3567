//! The way from the operator's hand to the arm, in virtual time, on a wire that stands still now and then: what is commanded, the arm
//! can follow, so that it never makes up for anything by going too fast.

use crate::{
    arms::{FR3, FR20, HOME_DEG, Joints, distance, largest_turn_deg},
    links::Setpoint,
    pacing::{MS, Pacing, SETPOINT_PERIOD_NS},
    safety::{COMMAND_LIMITS, Clamp, LIMITS},
    servo::{Hand, Servo, Target},
    wire::{MEAN_NS, STALL_NS, STALLS_HZ, exponential},
};

const CALM_NS: f64 = 3e9;
const RUN_NS: i64 = 15_000 * MS;
const CALL_MOST_NS: i64 = SETPOINT_PERIOD_NS;

/// The hand's circle every 20 ms, with the time of arrival: calm at first, then as the heavy wire would have it.
fn setpoints(dice: &mut fastrand::Rng, stall_most_ns: f64) -> Vec<(i64, Setpoint)> {
    let mut leader = Servo::new(&FR3, HOME_DEG, 0);
    let path = FR3.circle_deg(0.020, 240).unwrap();
    leader.target = Target::Hand(Hand { path, lap_s: 0.5, start_ns: 0 });
    let (mut clear_ns, mut stall_ns) = (CALM_NS, CALM_NS);
    let made = (1..RUN_NS / SETPOINT_PERIOD_NS).map(|number| {
        let source_ns = (number * SETPOINT_PERIOD_NS) as u64;
        while leader.step(source_ns) {}
        let now_ns = source_ns as f64;
        if now_ns >= stall_ns {
            clear_ns = clear_ns.max(now_ns + STALL_NS[0] + dice.f64() * (stall_most_ns - STALL_NS[0]));
            stall_ns = now_ns + 1e9 * exponential(dice) / STALLS_HZ;
        }
        if now_ns >= CALM_NS {
            clear_ns = clear_ns.max(now_ns + MEAN_NS * exponential(dice));
        }
        let arrived_ns = if now_ns >= CALM_NS { now_ns.max(clear_ns) } else { now_ns };
        let joints_deg = leader.joints_deg;
        (arrived_ns as i64 + MS / 2, Setpoint { id: number as u64, source_ns, produced_ns: source_ns, joints_deg })
    });
    made.collect()
}

/// The arm's joints (deg), a row a millisecond. Threads wake late and calls take their time; now and then the controller stands still:
/// calls are given up, and it takes them all when it comes back.
fn followed(dice: &mut fastrand::Rng, stream: &[(i64, Setpoint)], stalls_hz: f64) -> Vec<Joints> {
    let (mut pacing, mut clamp) = (Pacing::new().unwrap(), Clamp::new(COMMAND_LIMITS, HOME_DEG));
    let (mut arm, mut rows) = (Servo::new(&FR20, HOME_DEG, 0), Vec::new());
    let (mut now_ns, mut stalled_until_ns, mut played_ns, mut unanswered) = (0, 0, None, Vec::new());
    let mut at = 0;
    while at < stream.len() {
        let Some(due_ns) = pacing.due_ns().filter(|due_ns| *due_ns < stream[at].0) else {
            now_ns = now_ns.max(stream[at].0);
            let end = at + stream[at..].iter().take_while(|(arrived_ns, _)| *arrived_ns <= now_ns).count();
            for (n, (_, setpoint)) in stream[at..end].iter().enumerate() {
                assert!(pacing.push(setpoint, now_ns, at + n + 1 < end));
            }
            at = end;
            continue;
        };
        now_ns = now_ns.max(due_ns) + (150e3 * exponential(dice)) as i64;
        let Some(command) = pacing.next(now_ns) else { continue };
        assert!(played_ns.is_none_or(|played_ns| command.from_ns <= played_ns), "a stretch of the path was left out");
        played_ns = played_ns.max(Some(command.path_ns));
        let (joints_deg, _) = clamp.clamp(&command.joints_deg, command.limit_ns as f64 / 1e9);
        if dice.f64() < stalls_hz * command.period_ns as f64 / 1e9 {
            stalled_until_ns = now_ns + dice.i64(20 * MS..80 * MS);
        }
        unanswered.push(joints_deg);
        if now_ns + CALL_MOST_NS < stalled_until_ns {
            now_ns += CALL_MOST_NS;
            pacing.answered(now_ns);
            clamp.lose();
            continue;
        }
        now_ns = now_ns.max(stalled_until_ns) + 300_000 + (100e3 * exponential(dice)) as i64;
        pacing.answered(now_ns);
        while arm.step(now_ns as u64) {
            rows.push(arm.joints_deg);
        }
        for joints_deg in unanswered.drain(..) {
            arm.target = Target::Place(joints_deg);
        }
    }
    rows
}

/// Within the limits of the guard, frame by frame, and on its way round the hand's circle.
fn assert_legal(rows: &[Joints], what: &str) {
    const FRAME_S: f64 = 0.010;
    let frames: Vec<&Joints> = rows.iter().step_by(10).collect();
    let mut speeds = Vec::new();
    for pair in frames.windows(2) {
        assert!(largest_turn_deg(pair[0], pair[1]) / FRAME_S <= LIMITS.joint_deg_s, "{what}");
        speeds.push(distance(&FR20.tool_m(pair[0]), &FR20.tool_m(pair[1])) / FRAME_S);
    }
    speeds.sort_by(f64::total_cmp);
    assert!(*speeds.last().unwrap() <= LIMITS.tool_m_s, "{what}: {:?}", speeds.last());
    assert!(speeds[speeds.len() / 2] > 0.5 * LIMITS.tool_m_s, "{what}");
}

#[test]
fn the_arm_stays_within_its_limits_however_long_the_wire_stands_still() {
    for (seed, stall_most_ns, stalls_hz) in
        [(100, STALL_NS[1], 0.0), (203, STALL_NS[1], 0.3), (7, 500e6, 0.0), (100, 500e6, 0.3), (203, 500e6, 0.3)]
    {
        let mut dice = fastrand::Rng::with_seed(seed);
        let stream = setpoints(&mut dice, stall_most_ns);
        assert_legal(&followed(&mut dice, &stream, stalls_hz), &format!("seed {seed}"));
    }
}

#[test]
fn and_where_a_seldom_stall_is_bridged() {
    for seed in 1..6 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let (mut stream, mut newest_ns) = (setpoints(&mut dice, STALL_NS[1]), 0);
        let late_ns: Vec<i64> =
            (0..stream.len()).map(|n| if n % 125 == 124 { dice.i64(5 * MS..60 * MS) } else { 0 }).collect();
        for ((arrived_ns, setpoint), late_ns) in stream.iter_mut().zip(late_ns) {
            newest_ns = newest_ns.max(setpoint.source_ns as i64 + MS / 2 + late_ns);
            *arrived_ns = newest_ns;
        }
        assert_legal(&followed(&mut dice, &stream, 0.0), &format!("seed {seed}"));
    }
}
