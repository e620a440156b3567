//! A bus as the cycle engine sees it: frames go out, frames come in, nothing blocks. One file for each kind of bus.

mod address;
mod cannelloni;
mod error;
mod fdcanusb;
#[doc(hidden)]
pub mod fuzzing;
mod lines;
mod pty;
mod socketcan;
mod tty;
mod udp;

use std::os::fd::RawFd;

pub use address::{Address, ids};
pub use error::Error;
pub use fdcanusb::Fdcanusb;
pub use moteus_protocol::CanFdFrame as Frame;
pub use pty::Pty;
pub use socketcan::SocketCan;
pub use udp::{Udp, UdpDoor};

/// Bits of a CAN id; above them are flags of whoever keeps it.
pub const ID_MASK: u32 = 0x1fff_ffff;
/// The largest id of 11 bits.
pub const LARGEST_STANDARD: u32 = 0x7ff;

/// When a bus may next have something to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Not before this moment; simulated buses know.
    At(u64),
    /// When this descriptor is readable.
    Readable(RawFd),
    /// Nothing is under way.
    Never,
}

/// One bus. Times are nanoseconds of the engine's clock, real or virtual; a transport reads no clock itself.
pub trait Transport {
    /// Hands a frame to the bus, which may still queue it. Does not block.
    ///
    /// # Errors
    /// The bus is gone, or its queue is full; the frame was not taken.
    fn send(&mut self, now_ns: u64, frame: &Frame) -> Result<(), Error>;

    /// Takes the next frame that has arrived by `now_ns`; false when there is none. Does not block.
    ///
    /// # Errors
    /// The bus is gone, or says that something went wrong.
    fn receive(&mut self, now_ns: u64, frame: &mut Frame) -> Result<bool, Error>;

    /// What to wait for before asking again.
    fn next_arrival(&self) -> Arrival;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn send(&mut self, now_ns: u64, frame: &Frame) -> Result<(), Error> {
        (**self).send(now_ns, frame)
    }

    fn receive(&mut self, now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        (**self).receive(now_ns, frame)
    }

    fn next_arrival(&self) -> Arrival {
        (**self).next_arrival()
    }
}
