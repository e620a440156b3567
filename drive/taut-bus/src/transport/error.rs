//! What can go wrong on a bus. Made without allocating where it can happen in a cycle.

use thiserror::Error as ThisError;

/// Why a frame did not go or come, or a bus does not open.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
    /// The same while opening something with a name.
    #[error("{name}: {source}; {hint}")]
    Open {
        /// The device, host or interface.
        name: String,
        /// The system's answer.
        source: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// A queue of the bus is full.
    #[error("{what} is full: frames are sent faster than the bus takes them")]
    Full {
        /// Which queue.
        what: &'static str,
    },
    /// The adapter answers ERR.
    #[error("the adapter reports an error to a frame; is anything on its bus, and does it have power?")]
    Adapter,
    /// The other side is gone.
    #[error("the other end has closed")]
    Closed,
    /// An address that names no bus.
    #[error("{address}: {why}; write sim:1-3, fdcanusb:/dev/ttyACM0, udp:HOST:PORT or socketcan:can0")]
    Address {
        /// As typed.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// A frame that the bus cannot carry.
    #[error("id {id:#x} with {bytes} bytes is no CAN-FD frame: at most 29 bits and 64 bytes")]
    Frame {
        /// Its id.
        id: u32,
        /// Its length.
        bytes: usize,
    },
}

impl Error {
    /// An error of the system.
    pub(crate) fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> Error {
        move |errno| Error::System { what, source: errno.into() }
    }
}
