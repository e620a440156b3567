//! Gives a simulated bus to another process: what arrives on the transport goes on the bus, and back.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::Bus;
use crate::{
    cycle::{Clock, Monotonic},
    transport::{Arrival, Error, Frame, Transport},
};

/// How often an idle server looks whether it shall stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Serves `bus` through `door` in real time until `stop`.
///
/// # Errors
/// The door broke. A full queue is no such thing: the frame is lost, as on a real adapter.
pub fn serve(mut bus: Bus, mut door: impl Transport, stop: &AtomicBool) -> Result<(), Error> {
    let mut clock = Monotonic::new(Duration::ZERO);
    let mut frame = Frame::new();
    while !stop.load(Ordering::Relaxed) {
        let now_ns = clock.now_ns();
        while door.receive(now_ns, &mut frame)? {
            lossy(bus.send(now_ns, &frame))?;
        }
        while bus.receive(now_ns, &mut frame)? {
            lossy(door.send(now_ns, &frame))?;
        }
        let until_ns = match bus.next_arrival() {
            Arrival::At(ns) => ns,
            _ => now_ns + LOOK_EVERY.as_nanos() as u64,
        };
        clock.wait(&[door.next_arrival()], until_ns);
    }
    Ok(())
}

fn lossy(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Full { .. }) => Ok(()),
        other => other,
    }
}
