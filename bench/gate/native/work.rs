//! The work of the loop's pieces: a number of passes of a small filter, never a time, as work is.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use crate::options::Options;

/// Passes of a usual message; some 4 ns each.
const SENSE: u64 = 6_500;
const ESTIMATE: u64 = 26_000;
const CONTROL: u64 = 16_000;
const DRIVE: u64 = 5_000;
/// Messages differ by up to this share of their work, either way.
const SPREAD: f64 = 0.1;
/// One message in so many is of the tail …
const TAIL_EVERY: u64 = 200;
/// … and has this many times the work.
const TAIL_FACTOR: f64 = 5.0;

/// One thread's state: some kilobytes that it works on.
pub struct Work {
    seed: u64,
    slow: f64,
    tail: bool,
    alternates: bool,
    state: [f64; 512],
}

impl Work {
    pub fn new(options: &Options) -> Work {
        Work {
            seed: options.seed,
            slow: options.slow,
            tail: options.tail,
            alternates: options.measure,
            state: [0.5; 512],
        }
    }

    pub fn warm_up(&mut self, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            self.passes(100);
        }
    }

    pub fn sense(&mut self, id: u64) {
        self.usual(SENSE, id, 0);
    }

    /// What the injections slow.
    pub fn estimate(&mut self, id: u64) {
        let is_tail = self.tail && self.chance(id, 4).is_multiple_of(TAIL_EVERY);
        let slow = if self.alternates && id.is_multiple_of(2) { 0.0 } else { self.slow };
        let factor = if is_tail { TAIL_FACTOR } else { 1.0 + slow };
        self.usual((ESTIMATE as f64 * factor) as u64, id, 1);
    }

    pub fn control(&mut self, id: u64) {
        self.usual(CONTROL, id, 2);
    }

    pub fn drive(&mut self, id: u64) {
        self.usual(DRIVE, id, 3);
    }

    fn usual(&mut self, passes: u64, id: u64, place: u64) {
        let unit = (self.chance(id, place) >> 11) as f64 / (1u64 << 53) as f64;
        self.passes((passes as f64 * (1.0 + SPREAD * (2.0 * unit - 1.0))) as u64);
    }

    /// The same for a message and a seed in every run: SplitMix64's finaliser (Steele, Lea, Flood 2014).
    fn chance(&self, id: u64, what: u64) -> u64 {
        let mut z = (self.seed ^ what << 60).wrapping_add(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn passes(&mut self, passes: u64) {
        for pass in 0..passes as usize {
            let from = pass * 8 % self.state.len();
            let mut sum = self.state[from];
            for value in &mut self.state[from..from + 8] {
                sum = 0.75 * sum + 0.25 * *value;
                *value = sum;
            }
        }
        black_box(&mut self.state);
    }
}
