//! The C ABI of include/taut_guard.h. Callers own all storage; nothing here allocates.
//!
//! Every function takes pointers that are null or valid for their type, as the header says; null and storage that was
//! not initialised are answered with an error, not used. Handles are not for two threads at once.
#![allow(unsafe_code, reason = "pointers from C")]
#![allow(clippy::missing_safety_doc, reason = "the header is the contract, said once above")]

// For a panic handler in the static and shared library; a panic at the boundary aborts, and a silent guard is STALE.
extern crate std;

mod guard;
mod ledger;
mod limiter;
mod watchdog;

use core::{fmt::Write, mem::MaybeUninit};

use crate::error::Error;

/// What every handle begins with once it is initialised ("taut-grd").
const MAGIC: u64 = u64::from_le_bytes(*b"taut-grd");

/// Storage that C declares and Rust lives in.
#[repr(C)]
pub struct Handle<const WORDS: usize> {
    magic: u64,
    body: [MaybeUninit<u64>; WORDS],
}

/// Puts `value` into the handle's storage.
unsafe fn place<T, const WORDS: usize>(handle: *mut Handle<WORDS>, value: T) {
    const { assert!(size_of::<T>() <= WORDS * 8 && align_of::<T>() <= 8 && !core::mem::needs_drop::<T>()) };
    // SAFETY: the handle is valid for writes, and `T` fits it by the assertion above.
    unsafe {
        (&raw mut (*handle).body).cast::<T>().write(value);
        (*handle).magic = MAGIC;
    }
}

/// The value in the handle, unless it is null or was never initialised.
unsafe fn open<'a, T, const WORDS: usize>(handle: *mut Handle<WORDS>) -> Option<&'a mut T> {
    // SAFETY: the handle is null or valid; with the magic in place, `place` put a `T` there.
    unsafe {
        if handle.is_null() || (*handle).magic != MAGIC {
            return None;
        }
        Some(&mut *(&raw mut (*handle).body).cast::<T>())
    }
}

/// 0, or a negative number for what went wrong.
fn code(error: Error) -> i32 {
    match error {
        Error::OutOfRange { .. } => -2,
        Error::Contradiction(_) => -3,
        Error::SelfTest(_) => -4,
        Error::ResetRefused(_) => -5,
        Error::NotARejection(_) => -6,
        Error::NotInFlight(_) => -7,
        Error::TooManyInFlight(_) => -8,
        Error::Unbalanced { .. } => -9,
        Error::NotFinite(_) => -10,
        Error::NoTrajectory(_) => -11,
    }
}

/// Null, or storage that was not initialised.
const NO_HANDLE: i32 = -1;

/// A sink for an error's words.
struct Message<'a> {
    room: &'a mut [u8],
    used: usize,
}

impl Write for Message<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // One octet stays for the end.
        let free = self.room.len().saturating_sub(self.used + 1);
        let text = &text.as_bytes()[..text.len().min(free)];
        self.room[self.used..self.used + text.len()].copy_from_slice(text);
        self.used += text.len();
        Ok(())
    }
}

/// Writes the words of an error, NUL-terminated, and gives its code.
unsafe fn fail(error: Error, message: *mut u8, capacity: usize) -> i32 {
    if !message.is_null() && capacity > 0 {
        // SAFETY: the caller gives `capacity` octets.
        let room = unsafe {
            message.write_bytes(0, capacity);
            core::slice::from_raw_parts_mut(message, capacity)
        };
        let mut message = Message { room, used: 0 };
        _ = write!(message, "{error}");
    }
    code(error)
}

/// The size in octets of the structs that C and Rust share, by the header's numbers; 0 for an unknown one.
#[unsafe(no_mangle)]
pub extern "C" fn taut_guard_sizeof(which: u32) -> usize {
    match which {
        0 => size_of::<guard::CParameters>(),
        1 => size_of::<guard::CFrame>(),
        2 => size_of::<guard::CVerdict>(),
        3 => size_of::<guard::CTrip>(),
        4 => size_of::<guard::CBlackBoxEntry>(),
        5 => size_of::<guard::GuardHandle>(),
        6 => size_of::<watchdog::ServoHandle>(),
        7 => size_of::<watchdog::ChainHandle>(),
        8 => size_of::<watchdog::CTimeouts>(),
        9 => size_of::<ledger::LedgerHandle>(),
        10 => size_of::<ledger::CBalance>(),
        11 => size_of::<limiter::LimiterHandle>(),
        12 => size_of::<limiter::CLimits>(),
        13 => size_of::<limiter::CShaped>(),
        _ => 0,
    }
}
