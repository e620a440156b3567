//! The inertial unit, read while the replies queue on the buses.

use crate::transport::Error;

/// What an inertial unit tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attitude {
    /// Rotation from the body to the world: w, x, y, z.
    pub quaternion: [f64; 4],
    /// Rate of rotation, body axes, degrees a second.
    pub rate_dps: [f64; 3],
    /// Specific force, body axes, m/s².
    pub acceleration_m_s2: [f64; 3],
}

/// An inertial unit.
pub trait InertialUnit {
    /// Reads it at `now_ns`; the second value is when the reading is done, which keeps the CPU busy as a polled SPI does.
    ///
    /// # Errors
    /// It does not answer.
    fn read(&mut self, now_ns: u64) -> Result<(Attitude, u64), Error>;
}

impl<T: InertialUnit + ?Sized> InertialUnit for Box<T> {
    fn read(&mut self, now_ns: u64) -> Result<(Attitude, u64), Error> {
        (**self).read(now_ns)
    }
}

/// A body that stands still, or is placed from outside.
#[derive(Clone, Debug)]
pub struct SimulatedInertialUnit {
    /// What it tells.
    pub attitude: Attitude,
    /// How long a reading takes; 44.8 µs is the pi3hat's 42 bytes over polled SPI.
    pub takes_ns: u64,
}

impl Default for SimulatedInertialUnit {
    fn default() -> SimulatedInertialUnit {
        let attitude = Attitude {
            quaternion: [1.0, 0.0, 0.0, 0.0],
            rate_dps: [0.0; 3],
            // At rest it feels what holds it up.
            acceleration_m_s2: [0.0, 0.0, 9.80665],
        };
        SimulatedInertialUnit { attitude, takes_ns: 44_800 }
    }
}

impl InertialUnit for SimulatedInertialUnit {
    fn read(&mut self, now_ns: u64) -> Result<(Attitude, u64), Error> {
        Ok((self.attitude, now_ns + self.takes_ns))
    }
}
