//! Monte-Carlo: cycles drawn from the terms' jitter, losses and stuff bits.

use rand::{Rng, RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

use super::{
    file::CycleBudget,
    jitter::Sampler,
    load::{Lane, Load},
    sampling::{Sampling, cycle},
    term::Price,
};
use crate::wire::canfd::{Id, stuff_bits};

/// Payloads whose stuff bits are counted for the draws of one kind of CAN frame.
const STUFFED_PAYLOADS: usize = 256;

/// Drawn cycles.
pub(super) struct Drawn {
    /// ns, in the order drawn.
    pub cycles: Vec<u64>,
    /// ns, by lane.
    pub lanes: Vec<Vec<u64>>,
}

/// A load with what chance adds to it.
struct Drawer {
    count: u32,
    fixed_us: f64,
    jitter: Option<Sampler>,
    timeout: Option<(f64, f64)>,
    /// Time of the stuff bits over random payloads, µs.
    stuffing: Vec<f64>,
}

/// Draws so many cycles, lane by lane.
pub(super) fn draw(budget: &CycleBudget, lanes: &[Lane], sampling: Sampling) -> Drawn {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(sampling.seed);
    let drawers: Vec<Vec<Drawer>> =
        lanes.iter().map(|lane| lane.loads.iter().map(|load| drawer(budget, load, &mut random)).collect()).collect();
    let n = sampling.cycles as usize;
    let mut drawn = Drawn { cycles: Vec::with_capacity(n), lanes: vec![Vec::with_capacity(n); lanes.len()] };
    let mut busy = vec![0.0; lanes.len()];
    for _ in 0..n {
        for (at, loads) in drawers.iter().enumerate() {
            busy[at] = loads.iter().map(|load| load.draw_us(&mut random)).sum();
            drawn.lanes[at].push(nanoseconds(busy[at]));
        }
        drawn.cycles.push(nanoseconds(cycle(lanes, &busy)));
    }
    drawn
}

fn drawer(budget: &CycleBudget, load: &Load, random: &mut impl Rng) -> Drawer {
    let term = &budget.terms[load.term];
    let stuffing = match (&load.random, &budget.can) {
        (Some((id, data)), Some(bus)) => {
            let mut stuffed = || random_stuffing_us(*id, *data, (bus.nominal_hz, bus.data_hz), random);
            (0..STUFFED_PAYLOADS).map(|_| stuffed()).collect()
        }
        _ => Vec::new(),
    };
    let timeout = match term.price {
        Price::Timeout(us, loss) if loss > 0.0 => Some((us, loss)),
        _ => None,
    };
    let jitter = term.jitter.as_ref().and_then(super::Jitter::sampler);
    Drawer { count: load.count, fixed_us: load.fixed_us, jitter, timeout, stuffing }
}

fn random_stuffing_us(id: Id, data: u32, (nominal_hz, data_hz): (f64, f64), random: &mut impl Rng) -> f64 {
    let mut payload = vec![0; data as usize];
    random.fill_bytes(&mut payload);
    let (in_arbitration, in_data) = stuff_bits(id, &payload);
    f64::from(in_arbitration) * 1e6 / nominal_hz + f64::from(in_data) * 1e6 / data_hz
}

impl Drawer {
    /// All of the load's payments in one cycle, µs.
    fn draw_us(&self, random: &mut impl Rng) -> f64 {
        if self.jitter.is_none() && self.timeout.is_none() && self.stuffing.is_empty() {
            return f64::from(self.count) * self.fixed_us;
        }
        (0..self.count).map(|_| self.draw_one_us(random)).sum()
    }

    fn draw_one_us(&self, random: &mut impl Rng) -> f64 {
        let mut us = self.fixed_us;
        if let Some((timeout_us, loss)) = self.timeout
            && random.random::<f64>() < loss
        {
            us += timeout_us;
        }
        if !self.stuffing.is_empty() {
            us += self.stuffing[random.random_range(0..self.stuffing.len())];
        }
        if let Some(jitter) = &self.jitter {
            us += jitter.draw_us(random);
        }
        us.max(0.0)
    }
}

pub(super) fn nanoseconds(us: f64) -> u64 {
    (us * 1e3).round() as u64
}
