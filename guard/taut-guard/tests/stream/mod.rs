//! A robot's state stream on virtual time: what it does, what the transport does to its frames, and when the host
//! hears of it. The same seed gives the same stream.
#![allow(dead_code, reason = "each test uses its own part")]

use std::{cmp::Reverse, collections::BinaryHeap};

use taut_guard::{Frame, Parameters, TimeBase};

pub const MS: u64 = 1_000_000;
pub const PERIOD_NS: u64 = 10 * MS;
pub const LIMIT_MM_S: f64 = 1000.0;
/// The supervised joint's limit.
pub const JOINT_LIMIT_RAD_S: f64 = 2.0;
pub const HOUR_NS: u64 = 3_600_000_000_000;

/// What the transport, the receiver and the clocks do.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub delay: Delay,
    /// Later frames never overtake earlier ones (TCP).
    pub is_fifo: bool,
    /// A stall of 200 ms, 0.5 times a second.
    pub has_stalls: bool,
    /// Reads bring 2 to 20 frames at once.
    pub is_coalesced: bool,
    pub loss: f64,
    pub duplicates: f64,
    /// Frames may be overtaken by up to 8.
    pub is_reordered: bool,
    /// The robot's clock is set by ±1 h, every ten minutes on average.
    pub has_clock_steps: bool,
    pub drift_ppm: f64,
}

#[derive(Clone, Copy, Debug)]
pub enum Delay {
    None,
    /// Mean 10 ms.
    Exponential,
    /// α = 1.5, from 2 ms, capped at 500 ms.
    Pareto,
}

pub const CLEAN: Scenario = Scenario {
    name: "clean",
    delay: Delay::None,
    is_fifo: true,
    has_stalls: false,
    is_coalesced: false,
    loss: 0.0,
    duplicates: 0.0,
    is_reordered: false,
    has_clock_steps: false,
    drift_ppm: 0.0,
};

pub const ALL_COMBINED: Scenario = Scenario {
    name: "all combined",
    delay: Delay::Pareto,
    is_fifo: false,
    has_stalls: true,
    is_coalesced: true,
    loss: 0.05,
    duplicates: 0.05,
    is_reordered: true,
    has_clock_steps: true,
    drift_ppm: 200.0,
};

/// The scenarios of the specification. In all of them the count is a u8, which wraps every 2.56 s.
pub const SCENARIOS: [Scenario; 11] = [
    Scenario { name: "u8 wrap on a clean link", ..CLEAN },
    Scenario { name: "exponential delay, mean 10 ms", delay: Delay::Exponential, ..CLEAN },
    Scenario { name: "Pareto delay, α = 1.5, capped at 500 ms", delay: Delay::Pareto, ..CLEAN },
    Scenario { name: "stalls of 200 ms at 0.5/s", delay: Delay::Exponential, has_stalls: true, ..CLEAN },
    Scenario { name: "reads of 2 to 20 frames", is_coalesced: true, ..CLEAN },
    Scenario { name: "5 % loss", delay: Delay::Exponential, loss: 0.05, ..CLEAN },
    Scenario { name: "5 % duplicates", delay: Delay::Exponential, is_fifo: false, duplicates: 0.05, ..CLEAN },
    Scenario { name: "reordering, depth 8", is_fifo: false, is_reordered: true, ..CLEAN },
    Scenario { name: "clock steps of ±1 h", delay: Delay::Exponential, has_clock_steps: true, ..CLEAN },
    Scenario { name: "200 ppm drift", delay: Delay::Exponential, drift_ppm: 200.0, ..CLEAN },
    ALL_COMBINED,
];

/// What the robot really does.
#[derive(Clone, Copy, Debug)]
pub struct Motion {
    /// Share of the limit before the overspeed, or for ever.
    pub ratio: f64,
    /// When the overspeed begins, in true time, and what share of the limit it reaches.
    pub overspeed: Option<(f64, f64)>,
    /// Acceleration in shares of the limit per second; infinite for a step.
    pub ramp: f64,
}

impl Motion {
    pub fn steady(ratio: f64) -> Motion {
        Motion { ratio, overspeed: None, ramp: f64::INFINITY }
    }

    /// When the final speed is reached, in seconds.
    pub fn reached_s(&self) -> f64 {
        self.overspeed.map_or(0.0, |(at_s, to)| at_s + (to - self.ratio) / self.ramp)
    }

    /// The way in seconds at the limit.
    fn way(&self, t_s: f64) -> f64 {
        let Some((at_s, to)) = self.overspeed else { return self.ratio * t_s };
        let after = (t_s - at_s).max(0.0);
        let ramping = after.min((to - self.ratio) / self.ramp);
        let on_ramp = if ramping > 0.0 { (self.ratio + 0.5 * self.ramp * ramping) * ramping } else { 0.0 };
        self.ratio * (t_s - after) + on_ramp + to * (after - ramping)
    }
}

/// A frame, when the host hears it, and when the robot truly sampled it.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    pub frame: Frame,
    pub sampled_ns: u64,
}

/// Frames in the order of their arrival, without end.
pub struct Stream {
    scenario: Scenario,
    motion: Motion,
    random: fastrand::Rng,
    next: u64,
    /// No frame that is still to be made arrives before this.
    horizon_ns: u64,
    /// Arrival, a number that keeps ties in order, and where the frame lies.
    flying: BinaryHeap<Reverse<(u64, u64, usize)>>,
    frames: Vec<Delivered>,
    free: Vec<usize>,
    tie: u64,
    last_arrival_ns: u64,
    stall_until_ns: u64,
    next_stall_ns: u64,
    read_until: u64,
    read_ns: u64,
    read_count: u16,
    clock_offset_ns: i64,
    next_step_ns: u64,
    /// The counts that were lost, newest last, for stated bounds.
    pub lost_in_a_row: u32,
    pub longest_loss: u32,
    has_source: bool,
}

impl Stream {
    pub fn new(scenario: Scenario, motion: Motion, seed: u64) -> Stream {
        let mut random = fastrand::Rng::with_seed(seed);
        let next_stall_ns = exponential(&mut random, 2e9);
        let next_step_ns = exponential(&mut random, 600e9);
        Stream {
            scenario,
            motion,
            random,
            next: 0,
            horizon_ns: 0,
            flying: BinaryHeap::new(),
            frames: Vec::new(),
            free: Vec::new(),
            tie: 0,
            last_arrival_ns: 0,
            stall_until_ns: 0,
            next_stall_ns,
            read_until: 0,
            read_ns: 0,
            read_count: 1,
            // Two hours into the robot's day: a step back of an hour stays after midnight.
            clock_offset_ns: 2 * HOUR_NS as i64,
            next_step_ns,
            lost_in_a_row: 0,
            longest_loss: 0,
            has_source: true,
        }
    }

    /// The same without source stamps.
    pub fn without_source(mut self) -> Stream {
        self.has_source = false;
        self
    }

    /// The next frame that the host hears.
    pub fn hear(&mut self) -> Delivered {
        loop {
            if let Some(&Reverse((arrival_ns, _, place))) = self.flying.peek()
                && arrival_ns <= self.horizon_ns
            {
                self.flying.pop();
                self.free.push(place);
                return self.frames[place];
            }
            self.send();
        }
    }

    fn send(&mut self) {
        let n = self.next;
        self.next += 1;
        let robot_ns = n as f64 * PERIOD_NS as f64 + 0.4e6 * (2.0 * self.random.f64() - 1.0) + 1e6;
        // The robot's second is a little longer or shorter than the host's.
        let sampled_ns = robot_ns * (1.0 + self.scenario.drift_ppm * 1e-6);
        let sampled = sampled_ns as u64;
        self.horizon_ns = (sampled_ns - 1e6).max(0.0) as u64;
        if self.scenario.has_clock_steps && sampled >= self.next_step_ns {
            // Back and forth between one and three o'clock.
            let forward = match self.clock_offset_ns.cmp(&(2 * HOUR_NS as i64)) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => self.random.bool(),
                std::cmp::Ordering::Greater => false,
            };
            self.clock_offset_ns += if forward { HOUR_NS as i64 } else { -(HOUR_NS as i64) };
            self.next_step_ns += exponential(&mut self.random, 600e9);
        }
        if self.random.f64() < self.scenario.loss {
            self.lost_in_a_row += 1;
            self.longest_loss = self.longest_loss.max(self.lost_in_a_row);
            return;
        }
        self.lost_in_a_row = 0;
        let frame = self.frame(n, robot_ns, sampled_ns * 1e-9);
        let arrival = self.arrival(n, sampled);
        self.fly(arrival, frame, sampled);
        if self.random.f64() < self.scenario.duplicates {
            let again = arrival + exponential(&mut self.random, 10e6);
            self.fly(again, frame, sampled);
        }
    }

    /// Stamps in whole milliseconds of the robot's clock; positions within 0.05 mm and 0.1 mrad.
    fn frame(&mut self, n: u64, robot_ns: f64, true_s: f64) -> Frame {
        // A circle of 5 m radius: over one window the chord is the arc to 30 ppm.
        const RADIUS_MM: f64 = 5000.0;
        let way = self.motion.way(true_s);
        let (y, x) = (way * LIMIT_MM_S / RADIUS_MM).sin_cos();
        let noise = 0.05 / 3f64.sqrt();
        let mut noisy = |x: f64| x + noise * (2.0 * self.random.f64() - 1.0);
        let tcp_mm = [noisy(RADIUS_MM * x), noisy(RADIUS_MM * y), noisy(500.0)];
        let mut frame = Frame {
            sequence: (n % 256) as u32,
            source_ns: self
                .has_source
                .then(|| (robot_ns as i64 + self.clock_offset_ns).div_euclid(MS as i64) * MS as i64),
            tcp_mm,
            ..Frame::default()
        };
        // A joint that swings between ±1 rad.
        let turned = (way * JOINT_LIMIT_RAD_S).rem_euclid(4.0);
        frame.joints_rad[0] = (turned - 2.0).abs() - 1.0 + 1e-4 * (2.0 * self.random.f64() - 1.0);
        frame
    }

    fn arrival(&mut self, n: u64, sampled: u64) -> u64 {
        let delay = match self.scenario.delay {
            Delay::None => 0,
            Delay::Exponential => exponential(&mut self.random, 10e6),
            Delay::Pareto => ((2e6 / (1.0 - self.random.f64()).powf(1.0 / 1.5)) as u64).min(500 * MS),
        };
        let mut arrival = sampled + delay;
        if self.scenario.is_reordered && self.random.u8(..4) == 0 {
            arrival += self.random.u64(0..=8) * PERIOD_NS;
        }
        if self.scenario.has_stalls {
            if sampled >= self.next_stall_ns {
                self.stall_until_ns = self.next_stall_ns + 200 * MS;
                self.next_stall_ns += exponential(&mut self.random, 2e9).max(200 * MS);
            }
            arrival = arrival.max(self.stall_until_ns);
        }
        if self.scenario.is_coalesced {
            // Frames n..read_until come out of one read, when the last of them is there.
            if n >= self.read_until {
                self.read_count = self.random.u16(2..=20);
                self.read_until = n + u64::from(self.read_count);
                self.read_ns = sampled + (u64::from(self.read_count) - 1) * PERIOD_NS;
            }
            arrival = arrival.max(self.read_ns);
        }
        if self.scenario.is_fifo {
            arrival = arrival.max(self.last_arrival_ns);
            self.last_arrival_ns = arrival;
        }
        arrival
    }

    fn fly(&mut self, arrival_ns: u64, frame: Frame, sampled_ns: u64) {
        self.tie += 1;
        let frames_in_read = if self.scenario.is_coalesced { self.read_count } else { 1 };
        let delivered = Delivered { frame: Frame { arrival_ns, frames_in_read, ..frame }, sampled_ns };
        let place = self.free.pop().unwrap_or(self.frames.len());
        if place == self.frames.len() {
            self.frames.push(delivered);
        } else {
            self.frames[place] = delivered;
        }
        self.flying.push(Reverse((arrival_ns, self.tie, place)));
    }
}

/// The parameters that fit the stream.
pub fn parameters(time_base: TimeBase) -> Parameters {
    let mut parameters =
        Parameters { time_base, joint_count: 1, joint_error_rad: 1e-4, ..Parameters::for_tcp(PERIOD_NS, LIMIT_MM_S) };
    parameters.joint_limits_rad_s[0] = JOINT_LIMIT_RAD_S;
    parameters
}

pub fn exponential(random: &mut fastrand::Rng, mean: f64) -> u64 {
    (-(1.0 - random.f64()).ln() * mean) as u64
}
