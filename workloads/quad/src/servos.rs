//! The servos' side in real time: four buses behind UDP, in a process of its own that outlives the host.

use std::{io::Write, time::Duration};

use anyhow::{Context, Result};
use taut_bus::{
    cycle::{Clock, Monotonic},
    sim::Wiring,
    transport::{Arrival, Error, Frame, Transport, UdpDoor},
};

use crate::{
    joints::{self, LEGS},
    world::{Exchanges, Link, World},
};

/// Prints the addresses of the buses, a bus a line, as soon as the physics has placed the joints, and serves them until the
/// physics goes. Says how the physics kept up.
pub fn serve(physics: Link, wiring: &Wiring) -> Result<Exchanges> {
    let mut doors = Vec::with_capacity(LEGS);
    for _ in 0..LEGS {
        doors.push(UdpDoor::listen("127.0.0.1:0")?);
    }
    let mut clock = Monotonic::new(Duration::ZERO);
    let mut world = World::new(joints::buses(wiring), Some(physics), clock.now_ns());
    // A host that asked before the joints are where the robot has them would begin from zeros.
    while !world.is_placed() {
        world.listen();
        world.advance(clock.now_ns());
        if world.is_over().context("the physics")? {
            return Ok(world.exchanges());
        }
        let answer: Vec<Arrival> = world.raw_fd().map(Arrival::Readable).into_iter().collect();
        clock.wait(&answer, world.next_ns());
    }
    let mut stdout = std::io::stdout().lock();
    for door in &doors {
        writeln!(stdout, "{}", door.address()?)?;
    }
    stdout.flush()?;
    let mut frame = Frame::new();
    let mut arrivals = Vec::with_capacity(2 * LEGS + 1);
    loop {
        let now_ns = clock.now_ns();
        world.listen();
        world.advance(now_ns);
        if world.is_over().context("the physics")? {
            return Ok(world.exchanges());
        }
        arrivals.clear();
        for (bus, door) in world.buses_mut().iter_mut().zip(&mut doors) {
            while door.receive(now_ns, &mut frame)? {
                lossy(bus.send(now_ns, &frame))?;
            }
            while bus.receive(now_ns, &mut frame)? {
                lossy(door.send(now_ns, &frame))?;
            }
            arrivals.extend([door.next_arrival(), bus.next_arrival()]);
        }
        arrivals.extend(world.raw_fd().map(Arrival::Readable));
        clock.wait(&arrivals, world.next_ns());
    }
}

/// A full queue loses the frame, as on a real adapter; a host that is gone hears nothing.
fn lossy(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Full { .. } | Error::System { .. }) => Ok(()),
        other => other,
    }
}
