//! The estimators of speed that people use today. Each takes frames and gives a speed as a share of its limit, the
//! largest of the tool's and of all joints'; what trips is a share above 1.

use std::collections::VecDeque;

use taut_guard::{Frame, MAX_JOINTS, Parameters};

pub use crate::against::Time;
use crate::against::{Against, Source};

/// The tool's three coordinates and the joints.
const AXES: usize = 3 + MAX_JOINTS;
type Vector = [f64; AXES];

/// Gives the share of the limit after a frame, once there are enough of them.
pub type Estimator = Box<dyn FnMut(&Frame) -> Option<f64>>;
/// Gives a velocity of each axis.
type Velocity = Box<dyn FnMut(&Frame) -> Option<Vector>>;

/// Two frames with the same stamp are taken as a microsecond apart.
const LEAST_S: f64 = 1e-6;

/// A fresh estimator; not for [`Source::Guard`], which is no estimate.
pub fn estimator(of: &Against, parameters: &Parameters) -> Option<Estimator> {
    let limits = Limits::new(parameters);
    let (time, points) = (of.time, of.points());
    let period_s = parameters.period_ns as f64 * 1e-9;
    let difference = |least_s| limits.share(difference(time, least_s));
    Some(match of.estimator {
        Source::Difference => difference(LEAST_S),
        Source::Floored => difference(period_s),
        Source::Median => median(difference(LEAST_S), points),
        Source::Ema => exponential_mean(difference(LEAST_S), of.alpha()),
        Source::SavitzkyGolay => limits.share(savitzky_golay(points, period_s)),
        Source::LeastSquares => limits.share(least_squares(time, points)),
        Source::Kalman => limits.share(kalman(time, &limits)),
        Source::AlphaBeta => limits.share(alpha_beta(time, of.alpha(), of.beta())),
        Source::Guard => return None,
    })
}

/// What each axis may do.
#[derive(Clone, Copy)]
struct Limits {
    tcp_mm_s: f64,
    joints_rad_s: [f64; MAX_JOINTS],
    joints: usize,
    /// Standard deviation of a position's error, for the Kalman filter: the bounds p taken as such.
    noise: Vector,
}

impl Limits {
    fn new(p: &Parameters) -> Limits {
        let noise = |axis| if axis < 3 { p.tcp_error_mm.max(1e-3) } else { p.joint_error_rad.max(1e-6) };
        Limits {
            tcp_mm_s: p.tcp_limit_mm_s.unwrap_or(f64::INFINITY),
            joints_rad_s: p.joint_limits_rad_s,
            joints: p.joint_count,
            noise: std::array::from_fn(noise),
        }
    }

    fn share(self, mut velocity: Velocity) -> Estimator {
        Box::new(move |frame| {
            let v = velocity(frame)?;
            let tcp = (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt() / self.tcp_mm_s;
            let joints = v[3..3 + self.joints].iter().zip(self.joints_rad_s).map(|(v, limit)| v.abs() / limit);
            Some(joints.fold(tcp, f64::max))
        })
    }
}

fn position(frame: &Frame) -> Vector {
    std::array::from_fn(|axis| if axis < 3 { frame.tcp_mm[axis] } else { frame.joints_rad[axis - 3] })
}

fn difference(time: Time, least_s: f64) -> Velocity {
    let mut last: Option<Frame> = None;
    Box::new(move |frame| {
        let last = last.replace(*frame)?;
        let dt = (time.of(frame) - time.of(&last)).abs().max(least_s);
        let (a, b) = (position(&last), position(frame));
        Some(std::array::from_fn(|axis| (b[axis] - a[axis]) / dt))
    })
}

/// The last so many.
struct Last<T> {
    items: VecDeque<T>,
    most: usize,
}

impl<T> Last<T> {
    fn new(most: usize) -> Last<T> {
        Last { items: VecDeque::with_capacity(most + 1), most }
    }

    /// All of them once there are enough.
    fn push(&mut self, item: T) -> Option<&mut [T]> {
        self.items.push_back(item);
        if self.items.len() > self.most {
            self.items.pop_front();
        }
        (self.items.len() == self.most).then(|| self.items.make_contiguous())
    }
}

fn median(mut share: Estimator, points: usize) -> Estimator {
    let mut last = Last::new(points);
    Box::new(move |frame| {
        let mut sorted = last.push(share(frame)?)?.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(sorted[sorted.len() / 2])
    })
}

fn exponential_mean(mut share: Estimator, alpha: f64) -> Estimator {
    let mut mean: Option<f64> = None;
    Box::new(move |frame| {
        let now = share(frame)?;
        let next = mean.map_or(now, |mean| mean + alpha * (now - mean));
        mean = Some(next);
        mean
    })
}

/// Slope at the newest of samples taken as T apart, by a parabola (Savitzky and Golay 1964).
fn savitzky_golay(points: usize, period_s: f64) -> Velocity {
    let weights = end_slope_weights(points);
    let mut last = Last::new(points);
    Box::new(move |frame| {
        let positions: &mut [Vector] = last.push(position(frame))?;
        let slope = |axis: usize| positions.iter().zip(&weights).map(|(p, w)| w * p[axis]).sum::<f64>() / period_s;
        Some(std::array::from_fn(slope))
    })
}

/// Weights of the slope at the end of the least-squares parabola through samples 1 apart: with x from the middle, the
/// slope is Σxy/S₂ + 2·x_end·Σ(x² − S₂/n)y/(S₄ − S₂²/n).
fn end_slope_weights(points: usize) -> Vec<f64> {
    let n = points as f64;
    let xs = || (0..points).map(|k| k as f64 - (n - 1.0) / 2.0);
    let s2: f64 = xs().map(|x| x * x).sum();
    let s4: f64 = xs().map(|x| x.powi(4)).sum();
    let end = (n - 1.0) / 2.0;
    xs().map(|x| x / s2 + 2.0 * end * (x * x - s2 / n) / (s4 - s2 * s2 / n)).collect()
}

fn least_squares(time: Time, points: usize) -> Velocity {
    let mut last = Last::new(points);
    Box::new(move |frame| {
        let samples: &mut [(f64, Vector)] = last.push((time.of(frame), position(frame)))?;
        let mean = samples.iter().map(|(t, _)| t).sum::<f64>() / points as f64;
        let spread = samples.iter().map(|(t, _)| (t - mean) * (t - mean)).sum::<f64>().max(1e-12);
        let slope = |axis: usize| samples.iter().map(|(t, p)| p[axis] * (t - mean)).sum::<f64>() / spread;
        Some(std::array::from_fn(slope))
    })
}

/// Constant velocity of each axis, driven by an acceleration of five limits a second (5 m/s² at 1 m/s).
fn kalman(time: Time, limits: &Limits) -> Velocity {
    const ACCELERATIONS: f64 = 5.0;
    struct Axis {
        position: f64,
        velocity: f64,
        /// Variance of position, covariance, variance of velocity.
        variance: [f64; 3],
    }
    let limits = *limits;
    let limit = move |axis: usize| if axis < 3 { limits.tcp_mm_s.min(1e5) } else { limits.joints_rad_s[axis - 3] };
    let mut state: Option<(f64, Vec<Axis>)> = None;
    Box::new(move |frame| {
        let (now, measured) = (time.of(frame), position(frame));
        let Some((before, axes)) = &mut state else {
            let axis = |n: usize| {
                let variance = [limits.noise[n].powi(2), 0.0, limit(n).powi(2)];
                Axis { position: measured[n], velocity: 0.0, variance }
            };
            state = Some((now, (0..AXES).map(axis).collect()));
            return None;
        };
        let dt = (now - *before).abs().max(LEAST_S);
        *before = now;
        for (n, axis) in axes.iter_mut().enumerate() {
            let q = (ACCELERATIONS * limit(n)).powi(2);
            let [pp, pv, vv] = axis.variance;
            let pp = pp + 2.0 * dt * pv + dt * dt * vv + q * dt.powi(4) / 4.0;
            let pv = pv + dt * vv + q * dt.powi(3) / 2.0;
            let vv = vv + q * dt * dt;
            let noise = limits.noise[n].powi(2);
            let (gain_p, gain_v) = (pp / (pp + noise), pv / (pp + noise));
            axis.position += axis.velocity * dt;
            let innovation = measured[n] - axis.position;
            axis.position += gain_p * innovation;
            axis.velocity += gain_v * innovation;
            axis.variance = [(1.0 - gain_p) * pp, (1.0 - gain_p) * pv, vv - gain_v * pv];
        }
        Some(std::array::from_fn(|n| axes[n].velocity))
    })
}

fn alpha_beta(time: Time, alpha: f64, beta: f64) -> Velocity {
    let mut state: Option<(f64, Vector, Vector)> = None;
    Box::new(move |frame| {
        let (now, measured) = (time.of(frame), position(frame));
        let Some((before, p, v)) = &mut state else {
            state = Some((now, measured, [0.0; AXES]));
            return None;
        };
        let dt = (now - *before).abs().max(1e-3);
        *before = now;
        for axis in 0..AXES {
            p[axis] += v[axis] * dt;
            let innovation = measured[axis] - p[axis];
            p[axis] += alpha * innovation;
            v[axis] += beta * innovation / dt;
        }
        Some(*v)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::usual;

    const MS: u64 = 1_000_000;

    /// 6 mm and 12 mrad every 10 ms.
    fn frame(n: u64, arrival_ns: u64) -> Frame {
        let mut joints_rad = [0.0; MAX_JOINTS];
        joints_rad[1] = 0.012 * n as f64;
        let source_ns = Some((n * 10 * MS) as i64);
        Frame { source_ns, arrival_ns, tcp_mm: [6.0 * n as f64, 0.0, 0.0], joints_rad, ..Frame::default() }
    }

    fn parameters() -> Parameters {
        let mut p = Parameters { joint_count: 2, ..Parameters::for_tcp(10 * MS, 1000.0) };
        p.joint_limits_rad_s[..2].copy_from_slice(&[1.0, 1.5]);
        p
    }

    fn all() -> Vec<Against> {
        let with = |estimator, time| Against { estimator, time, ..usual()[0].clone() };
        let more = [
            (Source::Floored, Time::Arrival),
            (Source::LeastSquares, Time::Source),
            (Source::AlphaBeta, Time::Source),
            (Source::Kalman, Time::Source),
        ];
        usual().into_iter().chain(more.map(|(estimator, time)| with(estimator, time))).collect()
    }

    #[test]
    fn on_a_steady_stream_all_say_the_same() {
        for against in all() {
            let mut estimator = estimator(&against, &parameters()).unwrap();
            let last = (0..300).filter_map(|n| estimator(&frame(n, n * 10 * MS + MS))).last().unwrap();
            // 0.6 of the tool's limit, 0.8 of a joint's.
            assert!((last - 0.8).abs() < 1e-3, "{}: {last}", against.title());
        }
    }

    #[test]
    fn a_bunch_of_frames_fools_those_that_time_by_arrival() {
        let bunched = |n: u64| if (150..154).contains(&n) { 1534 * MS + (n - 150) * 2 * MS } else { n * 10 * MS + MS };
        for against in all() {
            let mut estimator = estimator(&against, &parameters()).unwrap();
            let most = (0..300).filter_map(|n| estimator(&frame(n, bunched(n)))).fold(0.0, f64::max);
            // With dt at least T, and by nominal T, a bunch alone is seen through; loss is not.
            let sees_through =
                against.time == Time::Source || matches!(against.estimator, Source::Floored | Source::SavitzkyGolay);
            assert_eq!(most < 1.0, sees_through, "{}: {most}", against.title());
        }
    }

    #[test]
    fn the_weights_are_those_of_the_tables() {
        // Seven points, as in Savitzky and Golay's second table by extrapolation to the end.
        let of_seven = |k: usize| {
            let x = k as f64 - 3.0;
            x / 28.0 + 6.0 * (x * x - 4.0) / 84.0
        };
        for (k, weight) in end_slope_weights(7).into_iter().enumerate() {
            assert!((weight - of_seven(k)).abs() < 1e-12);
        }
    }
}
