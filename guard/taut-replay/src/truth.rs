//! The true speed, where it is known, and trips judged by it.

use schemars::JsonSchema;
use serde::Serialize;
use taut_guard::Parameters;

use crate::{
    error::Error,
    judgement::Judgement,
    replay_run::Run,
    serialized,
    stream::{Recorded, Stream},
};

/// Where the true speed of the tool is known from.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// `truth_mm_s` of the frames: a simulation wrote it.
    Recorded,
    /// `reported_mm_s` of the frames: the controller's own word is believed.
    Reported,
    /// Nothing was ever too fast: the motion was limited by other means.
    Legal,
    /// Measured by another device: CLOCK_MONOTONIC in ns and mm/s, in order.
    Series(Vec<(u64, f64)>),
}

/// A stretch in which the true speed lay above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Overspeed {
    /// When it began, by the host's clock and the transport at its best; in a [`Replay`](crate::Replay) since the first arrival.
    #[serde(rename = "from_s", serialize_with = "serialized::seconds")]
    #[schemars(with = "f64")]
    pub from_ns: u64,
    /// When it ended.
    #[serde(rename = "to_s", serialize_with = "serialized::seconds")]
    #[schemars(with = "f64")]
    pub to_ns: u64,
    /// The fastest.
    pub peak_mm_s: f64,
}

impl Truth {
    /// What `--truth` says: `recorded`, `reported`, `legal`, or the text of a file of `monotonic_ns,mm_s` lines.
    ///
    /// # Errors
    /// Names the line that is none.
    pub fn series(csv: &str) -> Result<Truth, Error> {
        let mut series = Vec::new();
        for (n, line) in csv.lines().enumerate() {
            let number = n + 1;
            let wrong = || Error::Truth(format!("line {number} is {line:?}; it must be monotonic_ns,mm_s"));
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            match fields.as_slice() {
                [""] => {}
                // A heading.
                [time, _] if n == 0 && time.parse::<u64>().is_err() => {}
                [time, speed] => {
                    let (time, speed) = (time.parse::<u64>(), speed.parse::<f64>());
                    let (Ok(time), Ok(speed)) = (time, speed) else { return Err(wrong()) };
                    if !speed.is_finite() || series.last().is_some_and(|(before, _)| *before > time) {
                        return Err(wrong());
                    }
                    series.push((time, speed));
                }
                _ => return Err(wrong()),
            }
        }
        if series.is_empty() {
            return Err(Error::Truth("has no line monotonic_ns,mm_s".into()));
        }
        Ok(Truth::Series(series))
    }

    /// In words, for reports.
    pub fn words(&self) -> &'static str {
        match self {
            Truth::Recorded => "truth_mm_s of the frames",
            Truth::Reported => "the controller's own speed",
            Truth::Legal => "never above the limit",
            Truth::Series(_) => "a measured series",
        }
    }

    /// The stretches above the limit.
    pub(crate) fn overspeeds(&self, stream: &Stream, limit_mm_s: f64) -> Result<Vec<Overspeed>, Error> {
        let of = |speed: fn(&Recorded) -> Option<f64>, name: &str| {
            let points: Vec<(u64, f64)> = sampled(stream).filter_map(|(at, r)| Some((at, speed(r)?))).collect();
            if points.is_empty() {
                let name = &name;
                return Err(Error::Truth(format!("names {name}, which no frame of {:?} carries", stream.name)));
            }
            Ok(points)
        };
        let mut points = match self {
            Truth::Legal => return Ok(Vec::new()),
            Truth::Recorded => of(|recorded| recorded.truth_mm_s, "truth_mm_s")?,
            Truth::Reported => of(|recorded| recorded.frame.reported_mm_s, "reported_mm_s")?,
            Truth::Series(series) => series.clone(),
        };
        points.sort_by_key(|(at_ns, _)| *at_ns);
        let mut overspeeds: Vec<Overspeed> = Vec::new();
        let mut is_over = false;
        for (at_ns, speed) in points {
            let was_over = std::mem::replace(&mut is_over, speed > limit_mm_s);
            match overspeeds.last_mut() {
                Some(last) if was_over && is_over => {
                    (last.to_ns, last.peak_mm_s) = (at_ns, last.peak_mm_s.max(speed));
                }
                _ if is_over => overspeeds.push(Overspeed { from_ns: at_ns, to_ns: at_ns, peak_mm_s: speed }),
                _ => {}
            }
        }
        Ok(overspeeds)
    }
}

/// Each frame with the moment it was sampled, by the host's clock: its own stamp moved by the least offset seen, which is
/// the transport at its best. Its arrival where there is no stamp, or where the robot's clock was set in between.
fn sampled(stream: &Stream) -> impl Iterator<Item = (u64, &Recorded)> {
    const CLOCK_WAS_SET_NS: i64 = 10_000_000_000;
    let offset = |recorded: &Recorded| Some(recorded.frame.arrival_ns as i64 - recorded.frame.source_ns?);
    let least = stream.frames.iter().filter_map(offset).min();
    stream.frames.iter().map(move |recorded| {
        let frame = &recorded.frame;
        let excess = least.zip(offset(recorded)).map_or(0, |(least, offset)| offset - least);
        let excess = if excess > CLOCK_WAS_SET_NS { 0 } else { excess };
        (frame.arrival_ns.saturating_add_signed(-excess), recorded)
    })
}

/// Trips against overspeeds. A trip counts for an overspeed up to this long after its end: samples of it are still in the
/// window, or on their way.
pub(crate) fn judge(run: &mut Run, overspeeds: &[Overspeed], parameters: &Parameters) -> Judgement {
    let grace_ns = parameters.window_ns + parameters.age_max_ns + parameters.stale_ns;
    let is_of = |o: &Overspeed, at_ns: u64| (o.from_ns..=o.to_ns + grace_ns).contains(&at_ns);
    let mut judgement = Judgement::default();
    for trip in run.trips.iter_mut().filter(|trip| trip.state == "overspeed") {
        let is_false = !overspeeds.iter().any(|overspeed| is_of(overspeed, trip.at_ns));
        trip.is_false = Some(is_false);
        judgement.false_trips += usize::from(is_false);
    }
    let trips = run.trips.iter().filter(|trip| trip.state != "fault").map(|trip| (trip.at_ns, trip.state == "stale"));
    let mut said: Vec<(u64, bool)> = trips.chain(run.decisions.iter().map(|at_ns| (*at_ns, false))).collect();
    said.sort_unstable();
    for overspeed in overspeeds {
        match said.iter().find(|(at_ns, _)| is_of(overspeed, *at_ns)) {
            Some((at_ns, by_silence)) => {
                judgement.found += 1;
                judgement.delays_ns.push(at_ns - overspeed.from_ns);
                judgement.by_silence += usize::from(*by_silence);
            }
            None => judgement.missed += 1,
        }
    }
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_read_or_its_line_is_named() {
        let Ok(Truth::Series(series)) = Truth::series("monotonic_ns,mm_s\n10, 5.5\n\n20,6\n") else { panic!() };
        assert_eq!(series, [(10, 5.5), (20, 6.0)]);
        for (text, words) in
            [("", "has no line"), ("1,2\n3\n", "line 2 is \"3\""), ("1,2\n0,3\n", "line 2"), ("1,nan\n", "line 1")]
        {
            assert!(Truth::series(text).unwrap_err().to_string().contains(words), "{text}");
        }
    }
}
