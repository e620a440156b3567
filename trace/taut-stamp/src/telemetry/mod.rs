//! Telemetry: a whole struct of values from the control thread, by one copy into a ring of its own.
//!
//! ```
//! use taut_stamp::telemetry::{Channel, Telemetry};
//!
//! #[derive(Clone, Copy, Default, Telemetry)]
//! #[repr(C)]
//! struct Joint {
//!     /// rad
//!     position: f64,
//!     /// N·m
//!     torque: f32,
//!     mode: Mode,
//! }
//!
//! #[derive(Clone, Copy, Default, Telemetry)]
//! #[repr(u8)]
//! enum Mode {
//!     #[default]
//!     Stopped = 0,
//!     Position = 10,
//! }
//!
//! #[derive(Clone, Copy, Default, Telemetry)]
//! #[repr(C)]
//! struct Leg {
//!     joints: [Joint; 3],
//! }
//!
//! let mut log = Channel::new("leg", 400.0); // the one slow step, before real time begins
//! let mut leg = Leg::default();
//! leg.joints[1].mode = Mode::Position;
//! log.write(&leg);
//! ```
//!
//! The recorder turns it into a channel `/telemetry/leg` that plotting tools open as it is. The bytes are
//! those of `docs/reference/protocol.md`, "Telemetry"; the guarantees those of a stamp.

mod describe;
pub(crate) mod ring;

use core::marker::PhantomData;

pub use describe::{Field, FieldType, Kind, Layout, Telemetry, Text};
pub use taut_stamp_derive::Telemetry;

use ring::Ring;

/// Where values of one struct go, from one thread at a time.
pub struct Channel<T> {
    ring: Box<Ring>,
    of: PhantomData<fn(&T)>,
}

impl<T: Telemetry> Channel<T> {
    /// Makes and maps the ring, if there is a session. `rate_hz`, about how often will be written, sizes it for a
    /// recorder that stands still for 2 s. Without a name, or with a rate that is not above 0 and up to 1,000,000, there is no
    /// ring: what is written counts as lost.
    pub fn new(name: &str, rate_hz: f64) -> Channel<T> {
        Channel {
            ring: Ring::new(name, &describe::text(const { &T::LAYOUT }), size_of::<T>(), rate_hz),
            of: PhantomData,
        }
    }

    /// The values are these now. Without a session one load and one branch; else a copy of the struct.
    #[inline(always)]
    pub fn write(&mut self, value: &T) {
        if !crate::is_off() {
            // SAFETY: a T is as many bytes as it was said to be; they are copied untyped, padding and all.
            unsafe { self.ring.write(core::ptr::from_ref(value).cast(), size_of::<T>()) };
        }
    }

    /// Values dropped because the ring was full or could not be had.
    pub fn lost(&self) -> u64 {
        self.ring.lost()
    }
}

/// A channel whose struct is known only at run time: for bindings.
pub struct RawChannel {
    ring: Box<Ring>,
    bytes: usize,
}

impl RawChannel {
    /// As [`Channel::new`], with the description as `docs/reference/protocol.md` has it and the size of the struct.
    pub fn new(name: &str, description: &str, bytes: usize, rate_hz: f64) -> RawChannel {
        RawChannel { ring: Ring::new(name, description, bytes, rate_hz), bytes }
    }

    /// Bytes of one value.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// As [`Channel::write`].
    ///
    /// # Safety
    /// `value` points to as many readable bytes as [`RawChannel::bytes`] says.
    #[inline(always)]
    pub unsafe fn write(&mut self, value: *const u8) {
        if !crate::is_off() {
            // SAFETY: of the caller.
            unsafe { self.ring.write(value, self.bytes) };
        }
    }

    /// As [`Channel::lost`].
    pub fn lost(&self) -> u64 {
        self.ring.lost()
    }
}
