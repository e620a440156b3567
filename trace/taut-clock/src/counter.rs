//! The counters a process may stamp with.

use crate::Ticks;

/// Which counter a process reads for its stamps. The numbers are part of the
/// shared-memory protocol and of the recording format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Counter {
    /// x86 time-stamp counter; only with constant_tsc and nonstop_tsc.
    Tsc = 1,
    /// vDSO `clock_gettime(CLOCK_MONOTONIC)`: works everywhere.
    Monotonic = 2,
    /// aarch64 virtual counter.
    Cntvct = 3,
}

impl Counter {
    /// The counter with this protocol number.
    pub fn from_number(number: u8) -> Option<Counter> {
        match number {
            1 => Some(Counter::Tsc),
            2 => Some(Counter::Monotonic),
            3 => Some(Counter::Cntvct),
            _ => None,
        }
    }

    /// Reads the counter now. A TSC or CNTVCT read is not serialising: it may
    /// reorder by tens of nanoseconds with its neighbours, which hops of a
    /// microsecond and more do not notice and a fence would double the price.
    #[inline(always)]
    pub fn now(self) -> Ticks {
        Ticks(match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: RDTSC reads a register and has no other effect.
            Counter::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            #[cfg(target_arch = "aarch64")]
            Counter::Cntvct => {
                let ticks: u64;
                // SAFETY: reads a register that the kernel opens to user space.
                unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
                ticks
            }
            _ => monotonic_ns(),
        })
    }
}

/// CLOCK_MONOTONIC, in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, in nanoseconds since 1970.
#[inline]
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
