//! futex(2) by its numbers, as recorder and analysis read them.

/// The operation within its argument, without the private and clock bits.
const OPERATION: u32 = 0x7f;
const WAIT: u32 = 0;
const WAKE: u32 = 1;
const LOCK_PI: u32 = 6;
const WAIT_BITSET: u32 = 9;
const WAKE_BITSET: u32 = 10;
const LOCK_PI2: u32 = 13;
/// What the word of a mutex holds while others wait for it, and nothing else does: "locked, with waiters" in glibc and in
/// Rust's standard library (Drepper, Futexes Are Tricky) …
const CONTENDED: u32 = 2;
/// … and in musl, whose word has this bit besides the owner, or EBUSY where none is noted.
const CONTENDED_BIT: u32 = 1 << 31;

/// Whether the operation waits until the word changes.
pub fn is_wait(operation: u32) -> bool {
    matches!(operation & OPERATION, WAIT | WAIT_BITSET)
}

/// Whether the operation takes a priority-inheriting lock, which the kernel hands over from its owner.
pub fn is_lock(operation: u32) -> bool {
    matches!(operation & OPERATION, LOCK_PI | LOCK_PI2)
}

/// Whether the operation wakes others.
pub fn is_wake(operation: u32) -> bool {
    matches!(operation & OPERATION, WAKE | WAKE_BITSET)
}

/// Whether a wait that expects this value waits for a mutex.
pub fn is_contended(value: u32) -> bool {
    value == CONTENDED || value & CONTENDED_BIT != 0
}
