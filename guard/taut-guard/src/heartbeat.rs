//! The heartbeat that another process asks for: a question with a number, an answer that only a
//! guard gives that enables motion and whose time goes on. No answer, or a wrong one, means: stop.

use crate::{counters::Width, guard::SpeedGuard};

/// The answer of a living guard to `challenge`, or `None` from one that does not enable motion or that has not been
/// called for T_stale. Ask with a new number each time.
pub fn answer<W: Width>(guard: &SpeedGuard<W>, challenge: u32, now_ns: u64) -> Option<u32> {
    let is_called = now_ns.saturating_sub(guard.now_ns()) < guard.parameters().stale_ns;
    (guard.state().enables_motion() && is_called).then(|| expected(guard.parameters_hash(), challenge))
}

/// What the asker compares the answer with. Both ends know the hash of the parameters, so an answer also proves
/// that the guard runs with the agreed ones.
pub fn expected(parameters_hash: u64, challenge: u32) -> u32 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
    let mut z = parameters_hash ^ u64::from(challenge).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 32) as u32 ^ z as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Parameters};

    #[test]
    fn only_a_guard_that_enables_motion_and_is_called_answers() {
        let mut guard: SpeedGuard = SpeedGuard::new(Parameters::for_tcp(10_000_000, 1000.0)).unwrap();
        assert_eq!(answer(&guard, 7, 0), None);
        for n in 0..20u32 {
            let t = u64::from(n) * 10_000_000;
            guard.update(&Frame { sequence: n, source_ns: Some(t as i64), arrival_ns: t, ..Frame::default() });
        }
        let now = 190_000_000;
        assert_eq!(answer(&guard, 7, now), Some(expected(guard.parameters_hash(), 7)));
        assert_ne!(answer(&guard, 8, now), answer(&guard, 7, now));
        assert_ne!(Some(expected(1, 7)), answer(&guard, 7, now));
        assert_eq!(answer(&guard, 7, now + 50_000_000), None);
    }
}
