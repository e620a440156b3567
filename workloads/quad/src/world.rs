//! The robot without its host: buses, servos, and the body that hangs on them. Only the times that it is given move it, so it
//! is the same in virtual and in real time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moteus_protocol::Mode;
use taut_bus::{
    cycle::{Attitude, InertialUnit, SimulatedInertialUnit},
    sim::Bus,
    transport::{Arrival, Error, Frame, Transport},
};

use crate::{
    body::{Body, STEP_NS},
    failure::{Failure, Name},
    fall::Fall,
    joints::{LEGS, SERVOS, bus, id},
};

/// Buses, servos and what they move. Its time begins at 0.
pub struct World {
    buses: Vec<Bus>,
    /// `None`: nothing moves.
    body: Option<Body>,
    failure: Failure,
    has_failed: bool,
    /// By servo: so many of its next replies are lost.
    lost: [u64; SERVOS],
    fall: Fall,
    /// The run is over: what the robot does from here on is no part of it.
    is_over: bool,
    next_ns: u64,
    now_ns: u64,
    steps: u64,
}

impl World {
    /// A world to which this will happen.
    pub fn new(buses: Vec<Bus>, body: Option<Body>, failure: Failure) -> World {
        let at_ns = if failure.name == Name::None { u64::MAX } else { failure.at_ns };
        let mut world = World {
            buses,
            body,
            failure,
            has_failed: false,
            lost: [0; SERVOS],
            fall: Fall::new(at_ns),
            is_over: false,
            next_ns: 0,
            now_ns: 0,
            steps: 0,
        };
        // A host begins from where the joints are.
        world.place();
        world
    }

    /// The buses.
    #[cfg(test)]
    pub fn buses_mut(&mut self) -> &mut [Bus] {
        &mut self.buses
    }

    /// When something happens next, and may be seen by the host.
    pub fn next_ns(&self) -> u64 {
        self.buses.iter().fold(self.next_ns, |first, bus| match bus.next_arrival() {
            Arrival::At(ns) => first.min(ns),
            _ => first,
        })
    }

    /// The run is over: nothing is measured any more, though time goes on until the host has ended.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Steps of the body so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How it came down.
    pub fn fall(&self) -> &Fall {
        &self.fall
    }

    /// Height of the body's middle, m.
    pub fn height_m(&self) -> f64 {
        self.body.as_ref().map_or(f64::NAN, |body| body.felt().height_m)
    }

    /// What the inertial unit feels.
    pub fn attitude(&self) -> Attitude {
        self.body.as_ref().map_or(SimulatedInertialUnit::default().attitude, |body| body.felt().attitude)
    }

    /// How far it is.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Everything that happens until `now_ns`, in its order: on the wires, in the servos, to the body.
    pub fn advance(&mut self, now_ns: u64) {
        while self.next_ns <= now_ns {
            self.step(self.next_ns);
            self.next_ns += STEP_NS;
        }
        self.buses.iter_mut().for_each(|bus| bus.advance(now_ns));
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Hands a frame to a bus.
    ///
    /// # Errors
    /// As those of a simulated bus.
    pub fn send(&mut self, bus: usize, now_ns: u64, frame: &Frame) -> Result<(), Error> {
        self.advance(now_ns);
        self.buses[bus].send(now_ns, frame)?;
        // What goes into a broken cable reaches nobody.
        if self.failure.cut(now_ns) != Some(bus) {
            self.fall.sent(usize::from((frame.arbitration_id & 0x7f) as u8).wrapping_sub(1), now_ns);
        }
        Ok(())
    }

    /// Takes the next reply that has arrived by `now_ns`, and says when that was.
    ///
    /// # Errors
    /// As those of a simulated bus.
    pub fn receive(&mut self, bus: usize, now_ns: u64, frame: &mut Frame) -> Result<Option<u64>, Error> {
        self.advance(now_ns);
        let bus = &mut self.buses[bus];
        while let Arrival::At(at_ns) = bus.next_arrival()
            && at_ns <= now_ns
            && bus.receive(now_ns, frame)?
        {
            let servo = usize::from((frame.arbitration_id >> 8 & 0x7f) as u8).wrapping_sub(1);
            match self.lost.get_mut(servo).filter(|lost| **lost > 0) {
                Some(lost) => *lost -= u64::from(*lost != u64::MAX),
                None => return Ok(Some(at_ns)),
            }
        }
        Ok(None)
    }

    fn step(&mut self, at_ns: u64) {
        self.fail(at_ns);
        let (mut torques_nm, mut modes) = ([0.0; SERVOS], [Mode::Stopped; SERVOS]);
        for servo in 0..SERVOS {
            let bus = &mut self.buses[bus(servo)];
            bus.advance(at_ns);
            let Some(servo_on_bus) = bus.servo_mut(id(servo)) else { continue };
            let motor = servo_on_bus.motor_mut();
            if let Some(temperature_c) = self.failure.temperature_c(servo, at_ns) {
                motor.set_temperature_c(temperature_c);
            }
            motor.advance(at_ns);
            (torques_nm[servo], modes[servo]) = (motor.torque_nm(), motor.mode());
        }
        if self.failure.is_power_cut(at_ns) {
            torques_nm = [0.0; SERVOS];
        }
        let Some(body) = &mut self.body else { return };
        body.step(&torques_nm);
        if !self.is_over {
            self.fall.watch(at_ns, body.felt(), &modes);
            self.steps += 1;
        }
        self.place();
    }

    fn fail(&mut self, at_ns: u64) {
        if self.has_failed || !self.failure.is_on(at_ns) {
            return;
        }
        self.has_failed = true;
        self.lost = self.failure.lost_replies();
        if let Some(bus) = self.failure.cut(at_ns) {
            self.buses[bus].cut(true);
        }
    }

    /// The joints are where the body has them.
    fn place(&mut self) {
        let Some(body) = &self.body else { return };
        let felt = body.felt();
        for servo in 0..SERVOS {
            if let Some(on_bus) = self.buses[bus(servo)].servo_mut(id(servo)) {
                on_bus.motor_mut().place(felt.joints_rev[servo], felt.joints_rev_s[servo]);
            }
        }
    }
}

/// A world that several buses and the inertial unit share on one thread: in virtual time the host calls it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<World>>);

impl Shared {
    /// Shares it.
    pub fn new(world: World) -> Shared {
        Shared(Arc::new(Mutex::new(world)))
    }

    /// The world itself.
    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world again, once no other thread has it.
    pub fn into_inner(self) -> Option<World> {
        Arc::into_inner(self.0).map(|world| world.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its buses, each as an engine takes it.
    pub fn wires(&self) -> Vec<Wire> {
        (0..LEGS).map(|bus| Wire { world: self.clone(), bus }).collect()
    }
}

impl InertialUnit for Shared {
    fn read(&mut self, now_ns: u64) -> Result<(Attitude, u64), Error> {
        let mut world = self.lock();
        world.advance(now_ns);
        Ok((world.attitude(), now_ns + SimulatedInertialUnit::default().takes_ns))
    }
}

/// One bus of a shared world.
pub struct Wire {
    world: Shared,
    bus: usize,
}

impl Transport for Wire {
    fn send(&mut self, now_ns: u64, frame: &Frame) -> Result<(), Error> {
        self.world.lock().send(self.bus, now_ns, frame)
    }

    fn receive(&mut self, now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        Ok(self.world.lock().receive(self.bus, now_ns, frame)?.is_some())
    }

    fn next_arrival(&self) -> Arrival {
        self.world.lock().buses[self.bus].next_arrival()
    }
}
