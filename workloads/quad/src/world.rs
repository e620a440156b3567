//! The buses, and the physics of another process that moves what hangs on their servos: twice a millisecond the
//! servos' torques go there and the joints' places come back.

use std::{
    io::{self, ErrorKind},
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
    },
};
use taut_bus::{
    cycle::{Attitude, InertialUnit, SimulatedInertialUnit},
    sim::Bus,
    transport::{Arrival, Error, Frame, Transport},
};

use crate::joints::{LEGS, SERVOS, bus, id};

/// Between two exchanges with the physics.
pub const STEP_NS: u64 = 500_000;

/// Numbers of a message to the physics: the time, s; each servo's torque, Nm, mode and fault.
const TOLD: usize = 1 + 3 * SERVOS;
/// Numbers of its answer: quaternion, rate, acceleration; each joint's position, rev, velocity, rev/s, and temperature, °C,
/// where something else than the servo heats it, else NaN; each bus' cut and share of lost replies. Little endian.
const PLACED: usize = 10 + 3 * SERVOS + 2 * LEGS;

/// The way to the physics: a socket of packets.
pub struct Link {
    socket: OwnedFd,
    /// Wait for each answer: in virtual time, where nothing may come late.
    waits: bool,
}

impl Link {
    /// Connects to the physics that listens at `path`.
    ///
    /// # Errors
    /// Nobody does.
    pub fn connect(path: &Path, waits: bool) -> io::Result<Link> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Link { socket, waits })
    }

    fn tell(&self, told: &[f64; TOLD]) -> io::Result<()> {
        let mut bytes = [0; 8 * TOLD];
        bytes.chunks_exact_mut(8).zip(told).for_each(|(to, from)| to.copy_from_slice(&from.to_le_bytes()));
        // With one exchange open at most there is always room.
        send(&self.socket, &bytes, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// False: nothing there.
    fn answer(&self, placed: &mut [f64; PLACED]) -> io::Result<bool> {
        let mut bytes = [0; 8 * PLACED];
        let flags = if self.waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        match recv(&self.socket, &mut bytes, flags) {
            Ok((_, 0)) => Err(ErrorKind::UnexpectedEof.into()),
            Ok((_, length)) if length == bytes.len() => {
                let read = |from: &[u8]| from.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN);
                placed.iter_mut().zip(bytes.chunks_exact(8)).for_each(|(to, from)| *to = read(from));
                Ok(true)
            }
            Ok((_, length)) => Err(io::Error::other(format!("the physics answers with {length} bytes"))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Exchanges with the physics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    /// Steps that the physics was asked for.
    pub done: u64,
    /// Steps whose time came while it was still busy with one before: so much time the robot lost.
    pub skipped: u64,
}

/// Buses, servos and what they move.
pub struct World {
    buses: Vec<Bus>,
    /// `None`: nothing moves.
    link: Option<Link>,
    next_ns: u64,
    first_ns: u64,
    attitude: Attitude,
    exchanges: Exchanges,
    /// An answer is still to come.
    is_open: bool,
    /// The physics has gone, or never was.
    broken: Option<io::Error>,
}

impl World {
    /// A world whose time begins at `now_ns`.
    pub fn new(buses: Vec<Bus>, link: Option<Link>, now_ns: u64) -> World {
        World {
            buses,
            link,
            next_ns: now_ns,
            first_ns: now_ns,
            attitude: SimulatedInertialUnit::default().attitude,
            exchanges: Exchanges::default(),
            is_open: false,
            broken: None,
        }
    }

    /// The buses.
    pub fn buses_mut(&mut self) -> &mut [Bus] {
        &mut self.buses
    }

    /// When the physics is next asked.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// What to poll for its answers.
    pub fn raw_fd(&self) -> Option<RawFd> {
        self.link.as_ref().map(|link| link.socket.as_raw_fd())
    }

    /// How the physics kept up.
    pub fn exchanges(&self) -> Exchanges {
        self.exchanges
    }

    /// Whether the physics has said where the joints are.
    pub fn is_placed(&self) -> bool {
        // It may have been asked a second time by now.
        self.exchanges.done > u64::from(self.is_open)
    }

    /// Whether the physics has gone.
    ///
    /// # Errors
    /// It has, in another way than by closing its end.
    pub fn is_over(&mut self) -> io::Result<bool> {
        match self.broken.take() {
            None => Ok(false),
            Some(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
                self.broken = Some(ErrorKind::UnexpectedEof.into());
                Ok(true)
            }
            Some(error) => Err(error),
        }
    }

    /// Everything that happens until `now_ns`: on the wires, in the servos, to the robot.
    pub fn advance(&mut self, now_ns: u64) {
        while self.next_ns <= now_ns && self.broken.is_none() {
            self.broken = self.step(self.next_ns).err();
            self.next_ns += STEP_NS;
        }
    }

    /// Takes answers that have come; for real time.
    pub fn listen(&mut self) {
        while self.broken.is_none() {
            match self.take() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => self.broken = Some(error),
            }
        }
    }

    fn step(&mut self, at_ns: u64) -> io::Result<()> {
        if self.is_open {
            // The physics is late. It loses time rather than hear of torques that no longer fit its state.
            self.exchanges.skipped += 1;
            return Ok(());
        }
        let mut told = [0.0; TOLD];
        told[0] = (at_ns - self.first_ns) as f64 / 1e9;
        for (servo, told) in told[1..].chunks_exact_mut(3).enumerate() {
            let bus = &mut self.buses[bus(servo)];
            bus.advance(at_ns);
            let Some(servo) = bus.servo_mut(id(servo)) else { continue };
            let motor = servo.motor_mut();
            motor.advance(at_ns);
            told.copy_from_slice(&[motor.torque_nm(), f64::from(motor.mode() as u8), f64::from(motor.fault())]);
        }
        let Some(link) = &self.link else { return Ok(()) };
        link.tell(&told)?;
        (self.is_open, self.exchanges.done) = (true, self.exchanges.done + 1);
        if link.waits { self.take().map(|_| ()) } else { Ok(()) }
    }

    fn take(&mut self) -> io::Result<bool> {
        let mut placed = [0.0; PLACED];
        if !self.link.as_ref().map_or(Ok(false), |link| link.answer(&mut placed))? {
            return Ok(false);
        }
        self.is_open = false;
        let (inertial, rest) = placed.split_at(10);
        let (joints, buses) = rest.split_at(3 * SERVOS);
        self.attitude = attitude(inertial);
        for (servo, joint) in joints.chunks_exact(3).enumerate() {
            let Some(servo) = self.buses[bus(servo)].servo_mut(id(servo)) else { continue };
            servo.motor_mut().place(joint[0], joint[1]);
            if joint[2].is_finite() {
                servo.motor_mut().set_temperature_c(joint[2]);
            }
        }
        for (bus, state) in self.buses.iter_mut().zip(buses.chunks_exact(2)) {
            bus.cut(state[0] != 0.0);
            bus.set_loss(state[1]);
        }
        Ok(true)
    }
}

/// Reads an attitude out of the numbers that the physics sends: quaternion, rate, acceleration.
pub fn attitude(numbers: &[f64]) -> Attitude {
    let of = |at: usize| numbers.get(at).copied().unwrap_or(f64::NAN);
    Attitude {
        quaternion: std::array::from_fn(of),
        rate_dps: std::array::from_fn(|at| of(4 + at)),
        acceleration_m_s2: std::array::from_fn(|at| of(7 + at)),
    }
}

/// A world that several buses and the inertial unit share on one thread.
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

    /// Its buses, each as an engine takes it.
    pub fn wires(&self) -> Vec<Wire> {
        (0..LEGS).map(|bus| Wire { world: self.clone(), bus }).collect()
    }
}

impl InertialUnit for Shared {
    fn read(&mut self, now_ns: u64) -> Result<(Attitude, u64), Error> {
        let mut world = self.lock();
        world.advance(now_ns);
        Ok((world.attitude, now_ns + SimulatedInertialUnit::default().takes_ns))
    }
}

/// One bus of a shared world.
pub struct Wire {
    world: Shared,
    bus: usize,
}

impl Transport for Wire {
    fn send(&mut self, now_ns: u64, frame: &Frame) -> Result<(), Error> {
        let mut world = self.world.lock();
        world.advance(now_ns);
        world.buses[self.bus].send(now_ns, frame)
    }

    fn receive(&mut self, now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        let mut world = self.world.lock();
        world.advance(now_ns);
        world.buses[self.bus].receive(now_ns, frame)
    }

    fn next_arrival(&self) -> Arrival {
        self.world.lock().buses[self.bus].next_arrival()
    }
}

#[cfg(test)]
mod tests {
    use taut_bus::sim::Wiring;

    use super::*;
    use crate::joints;

    #[test]
    fn one_answer_places_the_joints_also_when_the_next_question_is_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("physics");
        let door = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::bind(&door, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&door, 1).unwrap();
        let link = Link::connect(&path, false).unwrap();
        let physics = rustix::net::accept(&door).unwrap();
        let mut world = World::new(joints::buses(&Wiring::default()), Some(link), 0);
        world.advance(0);
        world.listen();
        assert!(!world.is_placed());
        send(&physics, &[0; 8 * PLACED], SendFlags::NOSIGNAL).unwrap();
        world.listen();
        world.advance(STEP_NS);
        assert!(world.is_open && world.is_placed());
    }
}
