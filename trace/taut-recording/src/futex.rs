//! futex(2) by its numbers, as recorder and analysis read them.

/// The operation within its argument, without the private and clock bits.
const OPERATION: u32 = 0x7f;
const WAIT: u32 = 0;
const WAKE: u32 = 1;
const LOCK_PI: u32 = 6;
const UNLOCK_PI: u32 = 7;
const WAIT_BITSET: u32 = 9;
const WAKE_BITSET: u32 = 10;
const LOCK_PI2: u32 = 13;
/// What the word of a mutex holds while others wait for it, and nothing else does: "locked, with waiters" in glibc and in
/// Rust's standard library (Drepper, Futexes Are Tricky) …
const CONTENDED: u32 = 2;
/// … in libgomp …
const CONTENDED_OF_GOMP: u32 = u32::MAX;
/// … and in musl and glibc's robust mutexes: this bit besides the owner.
const CONTENDED_BIT: u32 = 1 << 31;
/// Another bit besides the owner says that one died.
const OWNER: u32 = (1 << 30) - 1;
/// The kernel's threads have numbers up to that.
const LAST_THREAD: u32 = 1 << 22;
/// In place of the owner musl has EBUSY in mutexes that note none, and in its own locks the number of threads that are at it.
const BUSY: std::ops::RangeInclusive<u32> = 2..=64;

/// Whom the word of a lock names as its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The thread of that number, in the process's own namespace.
    Thread(i32),
    /// Some thread; or that of this small number.
    Some,
}

/// Whether the operation waits until the word changes.
pub fn is_wait(operation: u32) -> bool {
    matches!(operation & OPERATION, WAIT | WAIT_BITSET)
}

/// Whether the operation takes a priority-inheriting lock, which the kernel hands over from its owner.
pub fn is_lock(operation: u32) -> bool {
    matches!(operation & OPERATION, LOCK_PI | LOCK_PI2)
}

/// Whether the operation frees such a lock, which others wait for.
pub fn is_unlock(operation: u32) -> bool {
    operation & OPERATION == UNLOCK_PI
}

/// Whether the operation wakes others.
pub fn is_wake(operation: u32) -> bool {
    matches!(operation & OPERATION, WAKE | WAKE_BITSET)
}

/// Whether a wait that expects this value may be for a mutex. Few other words have it.
pub fn is_contended(value: u32) -> bool {
    value == CONTENDED || value == CONTENDED_OF_GOMP || owner(value).is_some()
}

/// The owner in the word of a lock that others wait for. A count that grew so far has such values for a short time.
pub fn owner(value: u32) -> Option<Owner> {
    match (value & CONTENDED_BIT != 0, value & OWNER) {
        (true, number) if BUSY.contains(&number) => Some(Owner::Some),
        (true, number @ 1..=LAST_THREAD) => Some(Owner::Thread(number as i32)),
        _ => None,
    }
}
