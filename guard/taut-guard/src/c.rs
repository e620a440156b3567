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
mod mailbox;
mod policies;
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
        14 => size_of::<mailbox::MailboxHandle>(),
        15 => size_of::<policies::PlayoutHandle>(),
        16 => size_of::<policies::CSampled>(),
        17 => size_of::<policies::ApproachHandle>(),
        18 => size_of::<policies::DecimateHandle>(),
        19 => size_of::<policies::KeepAliveHandle>(),
        20 => size_of::<policies::RetryHandle>(),
        21 => size_of::<watchdog::RampHandle>(),
        _ => 0,
    }
}

/// The functions as C calls them, so that Miri can look at the pointers; what they promise is tested from C itself.
#[cfg(test)]
mod tests {
    extern crate std;

    use core::ptr::{null, null_mut};
    use std::{boxed::Box, thread};

    use super::{guard::*, ledger::*, limiter::*, mailbox::*, policies::*, watchdog::*, *};

    /// Storage as C declares it, with nothing in it.
    fn zeroed<const WORDS: usize>() -> Box<Handle<WORDS>> {
        Box::new(Handle { magic: 0, body: [MaybeUninit::uninit(); WORDS] })
    }

    #[test]
    fn a_guard_lives_in_storage_of_c() {
        let mut handle: Box<GuardHandle> = zeroed();
        let mut words = [0u8; 24];
        // SAFETY: all pointers are to the values above, or null.
        unsafe {
            let mut parameters = taut_guard_parameters_for_tcp(0, 1000.0);
            assert_eq!(taut_guard_init(&raw mut *handle, &raw const parameters, words.as_mut_ptr(), words.len()), -2);
            assert_eq!(words[23], 0);
            assert!(words.starts_with(b"period_ns is 0"));
            assert_eq!(taut_guard_trip(&raw mut *handle, null_mut()), NO_HANDLE);
            parameters = taut_guard_parameters_for_tcp(10_000_000, 1000.0);
            assert_eq!(taut_guard_init(&raw mut *handle, &raw const parameters, null_mut(), 0), 0);
            for n in 0..3u64 {
                taut_guard_tick(&raw mut *handle, n * 10_000_000);
            }
            assert_eq!(taut_guard_update(&raw mut *handle, null()).enables_motion(), 0);
            let mut length = 0;
            let name = taut_guard_counter_name(0, &raw mut length);
            assert_eq!(core::slice::from_raw_parts(name.cast::<u8>(), length), b"frames");
            let mut entries = MaybeUninit::<[CBlackBoxEntry; 2]>::uninit();
            assert_eq!(taut_guard_black_box(&raw mut *handle, entries.as_mut_ptr().cast(), 2), 0);
        }
    }

    #[test]
    fn the_other_handles_live_there_too() {
        let (mut servo, mut chain): (Box<ServoHandle>, Box<ChainHandle>) = (zeroed(), zeroed());
        let (mut ledger, mut limiter): (Box<LedgerHandle>, Box<LimiterHandle>) = (zeroed(), zeroed());
        let (mut playout, mut ramp): (Box<PlayoutHandle>, Box<RampHandle>) = (zeroed(), zeroed());
        let at = [0.5; 8];
        // SAFETY: all pointers are to the values above, or null.
        unsafe {
            assert_eq!(taut_servo_init(&raw mut *servo, 100_000, 10_000_000, null_mut(), 0), 0);
            assert_eq!((taut_servo_command(&raw mut *servo, 1), taut_servo_tick(&raw mut *servo)), (1, 0));
            assert_eq!(taut_chain_init(&raw mut *chain, 3, null(), 5, null_mut(), 0), NO_HANDLE);
            assert_eq!(taut_chain_cycle(&raw mut *chain, 0), NO_HANDLE);
            assert_eq!(taut_ledger_init(&raw mut *ledger), 0);
            assert_eq!(
                (taut_ledger_produce(&raw mut *ledger, 7, 1), taut_ledger_end(&raw mut *ledger, 7, 0, 0, 2)),
                (0, 0)
            );
            assert_eq!(taut_limiter_shape(&raw mut *limiter, &raw const at, null_mut()), NO_HANDLE);
            assert_eq!(taut_playout_init(&raw mut *playout, 20_000_000, 0, 100_000_000, null_mut(), 0), 0);
            for n in 0..20 {
                assert_eq!(
                    taut_playout_push(&raw mut *playout, n * 20_000_000, &raw const at, n as u64 * 20_000_000),
                    1
                );
            }
            let mut sampled = MaybeUninit::uninit();
            assert_eq!(taut_playout_play(&raw mut *playout, 390_000_000, sampled.as_mut_ptr()), 1);
            assert_eq!(taut_ramp_init(&raw mut *ramp, &raw const at, 0.1, null_mut(), 0), 0);
            let mut next = [0.0; 8];
            assert_eq!((taut_ramp_next(&raw mut *ramp, &raw const at, &raw mut next), next), (1, at));
        }
    }

    #[test]
    fn two_threads_share_a_mailbox_of_c() {
        const ITEMS: u64 = if cfg!(miri) { 300 } else { 30_000 };
        struct Shared(*mut MailboxHandle);
        // SAFETY: the header allows one thread at each end.
        unsafe impl Send for Shared {}
        let handle = Box::into_raw(zeroed::<39>());
        // SAFETY: the handle outlives both threads; items are whole arrays.
        unsafe {
            assert_eq!(taut_mailbox_init(handle), 0);
            let sending = Shared(handle);
            let sender = thread::spawn(move || {
                let Shared(handle) = { sending };
                let mut back = [0; 10];
                let mut put = |item: [u64; 10]| taut_mailbox_put(handle, &raw const item, &raw mut back) == 1;
                (1..=ITEMS).filter(|n| put([*n; 10])).count() as u64
            });
            let (mut last, mut taken, mut item) = (0, 0, [0; 10]);
            while last < ITEMS {
                if taut_mailbox_take(handle, &raw mut item) == 1 {
                    assert!(item[0] > last && item == [item[0]; 10], "{item:?}");
                    (last, taken) = (item[0], taken + 1);
                } else {
                    thread::yield_now();
                }
            }
            assert_eq!(taken + sender.join().unwrap(), ITEMS);
            drop(Box::from_raw(handle));
        }
    }
}
