//! The cycle of `taut bus` at a rate.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use taut_bus::cycle::{Command, Controller, Cycle, Schedule, States, Statistics, repeat};

use super::{Asked, Buses};
use crate::{exit::Done, stop};

/// Cycles whose times fit in memory: half a gigabyte.
const MOST_CYCLES: f64 = 1e7;

struct Repeater {
    attitude: bool,
    statistics: Statistics,
    stop: Arc<AtomicBool>,
}

impl Controller for Repeater {
    fn control(&mut self, _: u64, _: &States, _: &mut Vec<Command>) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn wants_attitude(&self) -> bool {
        self.attitude
    }

    fn after(&mut self, cycle: &Cycle, _: &States) {
        self.statistics.record(cycle);
    }
}

/// Repeats the same commands; Ctrl-C ends it early with what it has.
pub fn run(engine: &mut Buses, asked: Asked, hz: f64, duration: Duration) -> Result<(Statistics, Done)> {
    let cycles = (hz * duration.as_secs_f64()).round();
    if !(1.0..=MOST_CYCLES).contains(&cycles) {
        bail!("--rate {hz} for {} s: {cycles} cycles; from 1 to {MOST_CYCLES} fit", duration.as_secs_f64());
    }
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    let statistics = Statistics::with_room(cycles as usize);
    let mut repeater = Repeater { attitude: asked.attitude, statistics, stop: Arc::clone(&stop.flag) };
    let mut states = States::of(asked.servos.iter().copied());
    let schedule = Schedule { period_ns: (1e9 / hz) as u64, cycles: Some(cycles as u64) };
    let mut commands = asked.commands;
    repeat(engine, schedule, &mut commands, &mut states, &mut repeater);
    Ok((repeater.statistics, stop.done()))
}

/// A rate as typed.
pub fn hertz(text: &str) -> Result<f64, String> {
    let hz: Option<f64> = text.parse().ok().filter(|hz| (0.001..=1e6).contains(hz));
    hz.ok_or_else(|| "a number of cycles a second, 0.001 to 1000000".to_owned())
}
