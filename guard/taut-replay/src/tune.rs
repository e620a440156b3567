//! Parameters that fit a stream, each with what the stream showed: the residual monitor's evidence for e, gaps and ages for
//! the staleness limb, rest for the position error. What no recording can show, the limit above all, is taken as given.

use std::fmt::Write;

use taut_guard::{Frame, Parameters, TimeBase};

use crate::{
    config::{Config, written},
    error::Error,
    stream::Stream,
};

/// Above what was seen, since the next hour may be worse.
const ROOM: f64 = 1.25;
/// A robot may send its stamps as doubles: of seconds since 1970 they carry steps of 238 ns. Between two differences of stamps so much more or
/// less is nothing that the robot's clock did. Whole numbers are read as they are.
const DOUBLE_NS: u64 = 1024;
/// A resting tool moves less than this between neighbours.
const REST_MM: f64 = 0.2;
/// So many frames of rest in a row tell of noise.
const REST_FRAMES: usize = 25;
const FRAMES_LEAST: usize = 200;
/// A stop for silence later than this is none; the link must be repaired instead.
const STALE_MOST_NS: u64 = 500_000_000;

/// What to set, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The proposal.
    pub parameters: Parameters,
    /// What the stream showed, in the order of the file.
    pub evidence: Vec<Evidence>,
}

/// One parameter's reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Its name.
    pub parameter: &'static str,
    /// A sentence or two.
    pub why: String,
}

/// What the stream's stamps, counts and arrivals are like.
struct Measured {
    period_ns: f64,
    modulus: u64,
    base: TimeBase,
    /// Of stamps; 1 if there is none.
    quantum_ns: u64,
    /// |Δt_source − Δcount·T| of neighbours and over the window, the largest and its 99th percentile.
    residual_ns: u64,
    residual_p99_ns: u64,
    gap_ns: u64,
    gap_p99_ns: u64,
    excess_ns: u64,
    excess_p99_ns: u64,
    rest: Option<(usize, f64)>,
    lost_in_row: u64,
}

/// Proposes parameters for the stream. `given` has the limits, and all else that is no matter of the stream.
///
/// # Errors
/// A stream that is too short, or without stamps and count.
pub fn tune(stream: &Stream, given: &Parameters) -> Result<Tuned, Error> {
    if stream.frames.len() < FRAMES_LEAST {
        let (name, frames) = (stream.name.clone(), stream.frames.len());
        return Err(Error::TooShort { name, frames, least: FRAMES_LEAST });
    }
    let m = Measured::of(stream, given);
    let period_ns = m.period_ns.round() as u64;
    let usual = Parameters::for_tcp(period_ns, 0.0);
    let mut p = Parameters {
        period_ns,
        sequence_modulus: m.modulus,
        time_base: m.base,
        window_ns: usual.window_ns,
        source_error_max_ns: usual.source_error_max_ns,
        ..*given
    };
    let mut evidence = Vec::new();
    let mut say = |parameter, why| evidence.push(Evidence { parameter, why });
    let ms = |ns: u64| format!("{:.2} ms", ns as f64 * 1e-6);
    say(
        "period_ns",
        format!(
            "{:.3} ms a count over {} frames, by {}; {}",
            m.period_ns * 1e-6,
            stream.frames.len(),
            if m.base == TimeBase::Source { "the robot's stamps" } else { "arrivals" },
            match m.modulus {
                0 => "no count".to_owned(),
                modulus => format!("the count wraps at {modulus}, and at most {} were lost in a row", m.lost_in_row),
            },
        ),
    );
    match m.base {
        TimeBase::Source if m.quantum_ns > period_ns / 4 && m.residual_ns <= DOUBLE_NS => {
            p.source_error_ns = given.source_error_ns.min(period_ns / 2);
            say(
                "source_error_ns",
                "stamps are exactly T apart: neither their step nor their error can be seen. As given".to_owned(),
            );
        }
        TimeBase::Source => {
            let seen = m.residual_ns.div_ceil(2).max(m.quantum_ns.div_ceil(2));
            p.source_error_ns = nice_up(seen as f64 * ROOM, 50_000).min(period_ns / 2);
            say(
                "source_error_ns",
                format!(
                    "stamps come in steps of {}; they leave count × T by up to {} (p99 {}) within a window, and e is half of \
                     that, and at least half a step, with a quarter on top. Sampling that is off while the stamps are even \
                     cannot be seen here: add what the manual says",
                    ms(m.quantum_ns),
                    ms(m.residual_ns),
                    ms(m.residual_p99_ns),
                ),
            );
        }
        TimeBase::Sequence => {
            p.source_error_ns = given.source_error_ns.min(period_ns / 2);
            say("source_error_ns", "there are no stamps to hold the count against: as given".to_owned());
        }
        TimeBase::Arrival => {
            let jitter_ns = nice_up(m.excess_ns as f64 * ROOM, 1_000_000);
            p.arrival_jitter_ns = jitter_ns.min(10_000_000_000);
            say(
                "arrival_jitter_ns",
                format!(
                    "neither stamp nor count: arrivals were up to {} later than at best. The guard is degraded; at 1.5 L it \
                     needs four times that to be sure",
                    ms(m.excess_ns),
                ),
            );
        }
    }
    match m.rest {
        Some((frames, mm)) => {
            p.tcp_error_mm = (nice_up(mm * ROOM * 1e3, 5) as f64 * 1e-3).max(0.01);
            say("tcp_error_mm", format!("at rest ({frames} frames) positions lay up to {mm:.3} mm from their mean"));
        }
        None => say(
            "tcp_error_mm",
            format!("the robot never rested for {REST_FRAMES} frames: as given; record some rest to measure it"),
        ),
    }
    p.stale_ns =
        nice_up((m.gap_ns as f64 * ROOM).max(5.0 * m.period_ns), 1_000_000).min(STALE_MOST_NS.max(5 * period_ns));
    say(
        "stale_ns",
        format!(
            "the longest time without a new frame was {} (p99 {}){}",
            ms(m.gap_ns),
            ms(m.gap_p99_ns),
            if m.gap_ns > STALE_MOST_NS {
                "; that is too long without data: repair the link, or accept stops"
            } else {
                ""
            },
        ),
    );
    p.age_max_ns =
        nice_up((m.excess_ns as f64 * ROOM).max(5.0 * m.period_ns), 1_000_000).min(STALE_MOST_NS.max(5 * period_ns));
    say(
        "age_max_ns",
        format!(
            "frames were up to {} older than at the transport's best (p99 {})",
            ms(m.excess_ns),
            ms(m.excess_p99_ns)
        ),
    );
    p.lost_max = (m.lost_in_row as u32).clamp(usual.lost_max, 1000);
    p.tick_ns = p.tick_ns.min(p.stale_ns);
    p.check()?;
    Ok(Tuned { parameters: p, evidence })
}

impl Tuned {
    /// As a guard.toml: evidence as comments, parameters with their defaults left out, and what that means for detection.
    pub fn toml(&self, stream: &Stream, config: &Config) -> String {
        let mut text = format!("# From {} frames of {:?}.\n[guard]\n", stream.frames.len(), stream.name);
        let lines = written(&self.parameters);
        for evidence in &self.evidence {
            for line in wrapped(&format!("{}: {}.", evidence.parameter, evidence.why)) {
                _ = writeln!(text, "# {line}");
            }
            match lines.iter().find(|(key, _)| *key == evidence.parameter) {
                Some((key, value)) => _ = writeln!(text, "{key} = {value}"),
                None => text.push_str("# (the default fits)\n"),
            }
        }
        let rest: Vec<_> =
            lines.iter().filter(|(key, _)| self.evidence.iter().all(|evidence| evidence.parameter != *key)).collect();
        if !rest.is_empty() {
            text.push_str("# As given:\n");
        }
        for (key, value) in rest {
            _ = writeln!(text, "{key} = {value}");
        }
        text.push_str("# A steady overspeed is found within, at best transport and none lost:\n");
        for ratio in [1.1, 1.25, 1.5, 2.0] {
            let bound = match self.parameters.detection_bound_ns(ratio, 0, 0) {
                Some(ns) => format!("{:.0} ms", ns as f64 * 1e-6),
                None => "never: no window of this length can prove it".into(),
            };
            _ = writeln!(text, "#   {ratio} L: {bound}");
        }
        match &config.stream.topic {
            Some(topic) => {
                _ = writeln!(text, "\n[stream]\ntopic = {topic:?}\n[stream.fields]");
                for (field, mapping) in &config.stream.fields {
                    _ = writeln!(text, "{field} = {{ field = {:?}, times = {:?} }}", mapping.field(), mapping.times());
                }
            }
            None => _ = writeln!(text, "\n[stream]\nname = {:?}", stream.name),
        }
        text
    }
}

impl Measured {
    fn of(stream: &Stream, given: &Parameters) -> Measured {
        let mut frames: Vec<Frame> = stream.frames.iter().map(|recorded| recorded.frame).collect();
        let has_source = frames.iter().all(|frame| frame.source_ns.is_some());
        let top = frames.iter().map(|frame| frame.sequence).max().unwrap_or(0);
        let modulus = if top == 0 {
            0
        } else {
            // The next width that a count has, unless the file says otherwise.
            let fits = given.sequence_modulus > u64::from(top) && given.sequence_modulus != 0;
            if fits {
                given.sequence_modulus
            } else {
                [256, 65_536, 1 << 32].into_iter().find(|m| *m > u64::from(top)).unwrap_or(1 << 32)
            }
        };
        // In the robot's order, without repetitions.
        if has_source {
            frames.sort_by_key(|frame| frame.source_ns);
            frames.dedup_by_key(|frame| frame.source_ns);
        }
        let counts = unwrapped(&frames, modulus, given.period_ns);
        let base = match (has_source, modulus) {
            (true, _) => TimeBase::Source,
            (false, 0) => TimeBase::Arrival,
            (false, _) => TimeBase::Sequence,
        };
        let time = |frame: &Frame| frame.source_ns.filter(|_| has_source).unwrap_or(frame.arrival_ns as i64);
        let steps: Vec<(i64, i64)> = frames
            .windows(2)
            .zip(counts.windows(2))
            .map(|(pair, counts)| (time(&pair[1]) - time(&pair[0]), counts[1] - counts[0]))
            .filter(|(_, counts)| *counts > 0)
            .collect();
        let period_ns = period(&steps, given.period_ns as f64);
        let residuals = if base == TimeBase::Source { residuals(&frames, &counts, period_ns) } else { vec![0] };
        let gaps = sorted(arrival_gaps(stream));
        let offsets: Vec<i64> = if has_source {
            frames.iter().map(|frame| frame.arrival_ns as i64 - time(frame)).collect()
        } else {
            let t = |count: &i64| (*count as f64 * period_ns) as i64;
            frames.iter().zip(&counts).map(|(frame, count)| frame.arrival_ns as i64 - t(count)).collect()
        };
        let excess = sorted(excesses(&frames, &offsets));
        let quantum_ns = match base {
            TimeBase::Source => {
                frames.windows(2).map(|pair| time(&pair[1]).abs_diff(time(&pair[0]))).fold(0, rough_gcd)
            }
            _ => 0,
        };
        Measured {
            period_ns,
            modulus,
            base,
            quantum_ns: quantum_ns.max(1),
            residual_ns: residuals.last().copied().unwrap_or(0),
            residual_p99_ns: rank(&residuals, 0.99),
            gap_ns: gaps.last().copied().unwrap_or(0),
            gap_p99_ns: rank(&gaps, 0.99),
            excess_ns: excess.last().copied().unwrap_or(0),
            excess_p99_ns: rank(&excess, 0.99),
            rest: rest(&frames),
            lost_in_row: steps.iter().map(|(_, counts)| *counts as u64 - 1).max().unwrap_or(0),
        }
    }
}

fn sorted(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

fn rank(sorted: &[u64], q: f64) -> u64 {
    sorted.get(((sorted.len() as f64 * q).ceil() as usize).max(1) - 1).copied().unwrap_or(0)
}

/// The count without its wraps; without a count, frames are a step each, or as many as their stamps say.
fn unwrapped(frames: &[Frame], modulus: u64, period_ns: u64) -> Vec<i64> {
    let mut count = 0i64;
    let mut counts = vec![0];
    for pair in frames.windows(2) {
        let by_stamp = pair[1].source_ns.zip(pair[0].source_ns).map(|(b, a)| b - a);
        let by_stamp = by_stamp.map(|ns| (ns + period_ns as i64 / 2).div_euclid(period_ns.max(1) as i64));
        count += match modulus as i64 {
            0 => by_stamp.unwrap_or(1).max(1),
            modulus => {
                let ahead = (i64::from(pair[1].sequence) - i64::from(pair[0].sequence)).rem_euclid(modulus);
                // Whole turns that a long silence hid.
                let turns =
                    by_stamp.map_or(0, |steps| ((steps - ahead) as f64 / modulus as f64).round().max(0.0) as i64);
                ahead + turns * modulus
            }
        };
        counts.push(count);
    }
    counts
}

/// The median time of one count: stalls, losses and set clocks are no part of it. Refined by the sum of all undisturbed
/// steps, which has no quantum.
fn period(steps: &[(i64, i64)], given_ns: f64) -> f64 {
    let mut each: Vec<f64> = steps.iter().map(|(time, counts)| *time as f64 / *counts as f64).collect();
    if each.is_empty() {
        return given_ns;
    }
    each.sort_by(f64::total_cmp);
    let median = each[each.len() / 2];
    let is_even = |(time, counts): &&(i64, i64)| (*time as f64 - median * *counts as f64).abs() <= 0.5 * median;
    let (time, counts) = steps.iter().filter(is_even).fold((0, 0), |(t, c), (time, counts)| (t + time, c + counts));
    let mean = if counts > 0 { time as f64 / counts as f64 } else { median };
    // A nominal period is a round number; a mean that lies within its drift of one is that one.
    let round = (mean / 1e4).round() * 1e4;
    if (mean - round).abs() <= 200e-6 * round { round } else { mean }
}

/// |Δt_source − Δcount·T| between each frame and every other up to 15 back, as the guard's monitor looks at them. Sorted;
/// steps of the clock by more than half a second are left out: they are counted as such.
fn residuals(frames: &[Frame], counts: &[i64], period_ns: f64) -> Vec<u64> {
    const BACK: usize = 15;
    const CLOCK_STEP_NS: f64 = 5e8;
    let mut all = Vec::new();
    for later in 1..frames.len() {
        for earlier in [later - 1, later.saturating_sub(BACK)] {
            let (Some(a), Some(b)) = (frames[earlier].source_ns, frames[later].source_ns) else { continue };
            let off = ((b - a) as f64 - (counts[later] - counts[earlier]) as f64 * period_ns).abs();
            if off < CLOCK_STEP_NS {
                all.push(off as u64);
            }
        }
    }
    sorted(all)
}

fn arrival_gaps(stream: &Stream) -> Vec<u64> {
    stream.frames.windows(2).map(|pair| pair[1].frame.arrival_ns - pair[0].frame.arrival_ns).collect()
}

/// How much later than at the transport's best each frame came; the best may drift by 200 ppm.
fn excesses(frames: &[Frame], offsets: &[i64]) -> Vec<u64> {
    const CLOCK_STEP_NS: i64 = 5_000_000_000;
    let mut by_arrival: Vec<(u64, i64)> =
        frames.iter().map(|frame| frame.arrival_ns).zip(offsets.iter().copied()).collect();
    by_arrival.sort_unstable();
    let (mut floor, mut last_ns) = (i64::MAX, 0);
    let mut all = Vec::new();
    for (arrival_ns, offset) in by_arrival {
        let risen = floor.saturating_add((arrival_ns.saturating_sub(last_ns) / 5000) as i64);
        last_ns = arrival_ns;
        if floor == i64::MAX || (offset - risen).abs() > CLOCK_STEP_NS {
            floor = offset;
            continue;
        }
        floor = risen.min(offset);
        all.push((offset - floor) as u64);
    }
    all
}

/// The longest distance from the mean in stretches of rest, and how many frames those have.
fn rest(frames: &[Frame]) -> Option<(usize, f64)> {
    let step = |pair: &[Frame]| distance(&pair[0].tcp_mm, &pair[1].tcp_mm);
    let (mut total, mut farthest, mut from) = (0, 0.0f64, 0);
    for at in 1..=frames.len() {
        if at < frames.len() && step(&frames[at - 1..=at]) < REST_MM {
            continue;
        }
        let still = &frames[from..at];
        from = at;
        if still.len() < REST_FRAMES {
            continue;
        }
        let mean: [f64; 3] =
            std::array::from_fn(|axis| still.iter().map(|frame| frame.tcp_mm[axis]).sum::<f64>() / still.len() as f64);
        let most = still.iter().map(|frame| distance(&frame.tcp_mm, &mean)).fold(0.0, f64::max);
        // A slow creep is no rest.
        if most < REST_MM * 2.0 {
            total += still.len();
            farthest = farthest.max(most);
        }
    }
    (total > 0).then_some((total, farthest))
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The greatest common divisor of steps that may be off by [`DOUBLE_NS`].
fn rough_gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > DOUBLE_NS {
        let rest = a % b;
        // Just below a multiple is a multiple.
        (a, b) = (b, rest.min(b - rest));
    }
    a
}

/// Up to the next multiple.
fn nice_up(value: f64, step: u64) -> u64 {
    (value / step as f64).ceil() as u64 * step
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + word.chars().count() > 96 {
            lines.push(word.to_owned());
            continue;
        }
        if !lines[last].is_empty() {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}
