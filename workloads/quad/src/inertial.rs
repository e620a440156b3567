//! The inertial unit in real time: the physics sends what it feels, the host takes the newest.

use std::{io::ErrorKind, os::unix::net::UnixDatagram, path::Path};

use taut_bus::{
    cycle::{Attitude, InertialUnit, SimulatedInertialUnit},
    transport::Error,
};

use crate::world::attitude;

/// Numbers of a message.
const TOLD: usize = 10;

/// Listens for attitudes.
pub struct Felt {
    socket: UnixDatagram,
    newest: Option<Attitude>,
}

impl Felt {
    /// Listens at `path`, in the place of whoever did before.
    ///
    /// # Errors
    /// The path cannot be had.
    pub fn at(path: &Path) -> std::io::Result<Felt> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(path)?;
        socket.set_nonblocking(true)?;
        Ok(Felt { socket, newest: None })
    }
}

impl InertialUnit for Felt {
    fn read(&mut self, now_ns: u64) -> Result<(Attitude, u64), Error> {
        let mut bytes = [0; 8 * TOLD];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            if length == bytes.len() {
                let mut numbers = [0.0; TOLD];
                let read = |from: &[u8]| from.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN);
                numbers.iter_mut().zip(bytes.chunks_exact(8)).for_each(|(to, from)| *to = read(from));
                self.newest = Some(attitude(&numbers));
            }
        }
        // As long as the pi3hat's polled reading takes.
        let done_ns = now_ns + SimulatedInertialUnit::default().takes_ns;
        self.newest.map(|attitude| (attitude, done_ns)).ok_or(Error::Closed)
    }
}
