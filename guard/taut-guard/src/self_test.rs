//! The start-up test: a guard with the very parameters must catch an overspeed, silence and NaN, and must let a legal
//! speed pass, before the real one sees its first frame.

use crate::{
    capacity::CAPACITY,
    counters::Width,
    error::Error,
    frame::Frame,
    guard::SpeedGuard,
    parameters::{Parameters, TimeBase},
    state::State,
};

/// More frames than the buffer holds.
const FRAMES: u64 = CAPACITY as u64 + 8;

impl<W: Width> SpeedGuard<W> {
    /// Checks the parameters and tests the guard with injected faults (an overspeed, silence, NaN).
    ///
    /// # Errors
    /// A parameter out of range, or a start-up test that was not passed.
    pub fn new(parameters: Parameters) -> Result<SpeedGuard<W>, Error> {
        parameters.check()?;
        run(&parameters)?;
        Ok(SpeedGuard::untested(parameters))
    }
}

fn run(parameters: &Parameters) -> Result<(), Error> {
    let base = parameters.time_base;
    let span_ns = if base == TimeBase::Arrival { parameters.span_max_ns() } else { parameters.window_ns };
    // Twice the overspeed that the widest window can prove.
    let error_s = parameters.error_ns(base) as f64 * 1e-9;
    let span_s = span_ns as f64 * 1e-9;
    let slowest = channel(parameters);
    let ratio = 1.0 + 2.0 * (4.0 * error_s * slowest.limit + 4.0 * slowest.p) / (slowest.limit * span_s) + 0.05;
    let legal = moving(parameters, 0.95);
    if legal.state().is_latched() {
        return Err(Error::SelfTest("a legal speed trips the guard"));
    }
    if moving(parameters, ratio).state() != State::Overspeed {
        return Err(Error::SelfTest("an overspeed stays unseen with these errors, limits and window"));
    }
    let mut silent = legal.clone();
    silent.tick(legal.now_ns() + parameters.stale_ns + parameters.period_ns);
    if silent.state() != State::Stale {
        return Err(Error::SelfTest("silence stays unseen"));
    }
    let mut broken = legal;
    let frame = Frame { tcp_mm: [f64::NAN; 3], arrival_ns: broken.now_ns(), ..Frame::default() };
    if broken.update(&frame).state != State::Fault {
        return Err(Error::SelfTest("NaN stays unseen"));
    }
    Ok(())
}

struct Supervised {
    limit: f64,
    p: f64,
    joint: Option<usize>,
}

/// The channel that is hardest to supervise: largest position error for its limit.
fn channel(parameters: &Parameters) -> Supervised {
    let tcp = parameters.tcp_limit_mm_s.map(|limit| Supervised { limit, p: parameters.tcp_error_mm, joint: None });
    let joints = (0..parameters.joint_count).map(|joint| Supervised {
        limit: parameters.joint_limits_rad_s[joint],
        p: parameters.joint_error_rad,
        joint: Some(joint),
    });
    let hardest = tcp.into_iter().chain(joints).max_by(|a, b| (a.p / a.limit).total_cmp(&(b.p / b.limit)));
    hardest.unwrap_or(Supervised { limit: f64::INFINITY, p: 0.0, joint: None })
}

fn moving(parameters: &Parameters, ratio: f64) -> SpeedGuard<u32> {
    let supervised = channel(parameters);
    let mut guard = SpeedGuard::untested(*parameters);
    for n in 0..FRAMES {
        let t_ns = n * parameters.period_ns;
        let way = supervised.limit * ratio * t_ns as f64 * 1e-9;
        let mut frame = Frame {
            sequence: n.checked_rem(parameters.sequence_modulus).unwrap_or(0) as u32,
            source_ns: Some(t_ns as i64),
            arrival_ns: t_ns,
            ..Frame::default()
        };
        match supervised.joint {
            Some(joint) => frame.joints_rad[joint] = way,
            None => frame.tcp_mm[0] = way,
        }
        guard.update(&frame);
    }
    guard
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_parameters_pass_and_hopeless_ones_do_not() {
        for period_ns in [1_000_000, 8_000_000, 10_000_000, 20_000_000] {
            for time_base in [TimeBase::Source, TimeBase::Sequence, TimeBase::Arrival] {
                let e = period_ns / 10;
                let usual = Parameters::for_tcp(period_ns, 250.0);
                let usual = Parameters { time_base, source_error_ns: e, ..usual };
                assert_eq!(run(&usual), Ok(()), "{period_ns} {time_base:?}");
                let mut joints = Parameters { tcp_limit_mm_s: None, joint_count: 8, joint_error_rad: 1e-4, ..usual };
                joints.joint_limits_rad_s = [2.0; 8];
                assert_eq!(run(&joints), Ok(()), "{period_ns} {time_base:?}");
            }
        }
        // A position error that needs kilometres to be outrun.
        let hopeless = Parameters { tcp_error_mm: 100.0, ..Parameters::for_tcp(100_000, 1e5) };
        assert_eq!(run(&Parameters { source_error_ns: 0, ..hopeless }), Ok(()));
        assert!(
            run(&Parameters { trip_count: 8, trip_of: 8, window_ns: 200_000, source_error_ns: 0, ..hopeless }).is_ok()
        );
    }
}
