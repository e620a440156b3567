//! By how much CLOCK_REALTIME is wrong at most, as those who keep it state it. A statement, not a measurement.

use std::{process::Command, time::Duration};

use taut_clock::{monotonic_ns, realtime_ns};

use crate::first_line::first_line_of;

/// chronyd answers at once.
const PATIENCE: Duration = Duration::from_millis(500);
/// What a clock drifts by in a while without an answer of its servers: chronyd assumes 1 ppm, which its manual calls optimistic. 50 ppm is
/// ClockBound's.
pub const DRIFT: f64 = 50e-6;
/// The reference of a chronyd that has none but its own clock ("local" in chrony.conf).
const ITS_OWN: &str = "7F7F0101";

/// What chronyd stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    bound_ns: f64,
    /// CLOCK_MONOTONIC.
    at_ns: u64,
}

impl Stated {
    /// The bound at this moment of CLOCK_MONOTONIC, in ns.
    pub fn at(self, time_ns: u64) -> u64 {
        (self.bound_ns + DRIFT * time_ns.abs_diff(self.at_ns) as f64).ceil() as u64
    }
}

/// Asks chronyd; `None` where there is none, or it has no server to go by. What other daemons leave in the kernel is no bound:
/// systemd-timesyncd and phc2sys write 0 (`maxerror` of adjtimex(2)).
pub fn stated() -> Option<Stated> {
    let mut chronyc = Command::new("chronyc");
    chronyc.args(["-n", "-c", "tracking"]);
    let said = first_line_of(chronyc, PATIENCE)?;
    Some(Stated { bound_ns: bound_ns(&said, realtime_ns())?, at_ns: monotonic_ns() })
}

/// Of the answer, whose fields stand in chronyc(1) under "tracking". The bound is the one that it gives there: what is still to be corrected,
/// the root dispersion, and half of the root delay.
fn bound_ns(said: &str, now_ns: u64) -> Option<f64> {
    let fields: Vec<&str> = said.split(',').collect();
    let [reference, _, _, at_s, left_s, _, _, _, _, _, delay_s, dispersion_s, _, leap] = fields[..] else {
        return None;
    };
    if reference == ITS_OWN || leap == "Not synchronised" {
        return None;
    }
    let [at_s, left_s, delay_s, dispersion_s] =
        [at_s, left_s, delay_s, dispersion_s].map(|field| field.parse::<f64>().ok());
    let age_s = (now_ns as f64 / 1e9 - at_s?).max(0.0);
    let bound_s = left_s?.abs() + dispersion_s? + delay_s? / 2.0 + DRIFT * age_s;
    bound_s.is_finite().then_some(bound_s * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_what_is_left_to_correct_the_dispersion_and_half_of_the_delay() {
        // chronyd 4.3.
        let said = "0A630001,10.99.0.1,9,1796000000.000000000,-0.000004300,0.000002800,0.000003100,-1.5,0.001,0.2,0.000019200,0.000001700,1.0,Normal";
        let bound = bound_ns(said, 1_796_000_010_000_000_000).unwrap();
        assert!((bound - (4_300.0 + 1_700.0 + 9_600.0 + 500_000.0)).abs() < 1_000.0, "{bound}");
        assert_eq!(bound_ns(&said.replace("Normal", "Not synchronised"), 0), None);
        assert_eq!(bound_ns(&said.replace("0A630001", ITS_OWN), 0), None);
        assert_eq!(
            (bound_ns("506 Cannot talk to daemon", 0), bound_ns(&said.replace("-0.0000043", "x"), 0)),
            (None, None)
        );
        let stated = Stated { bound_ns: 1_000.0, at_ns: 5_000_000_000 };
        assert_eq!((stated.at(5_000_000_000), stated.at(6_000_000_000)), (1_000, 51_000));
    }
}
