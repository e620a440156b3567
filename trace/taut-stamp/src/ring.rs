//! The single-producer single-consumer ring: the algorithm of `docs/protocol.md` "Write"
//! and "Consume", over the atomics of whoever includes it: `tests/loom_ring.rs` includes it over loom's
//! to walk every interleaving.

use super::atomic::{AtomicU64, Ordering};

/// Where in the ring the next record goes, or `None` when it is full (then `lost` has grown).
///
/// `capacity` is a power of two. The record must be written before [`publish`].
#[inline(always)]
pub fn reserve(
    head: &AtomicU64,
    cached_tail: &AtomicU64,
    tail: &AtomicU64,
    lost: &AtomicU64,
    capacity: u64,
) -> Option<u64> {
    let position = head.load(Ordering::Relaxed);
    let looks_full = position.wrapping_sub(cached_tail.load(Ordering::Relaxed)) >= capacity;
    (!looks_full || has_room(position, cached_tail, tail, lost, capacity)).then_some(position)
}

/// Looks at the true tail, once in as many records as the ring has; counts what finds no room.
#[cold]
#[inline(never)]
fn has_room(position: u64, cached_tail: &AtomicU64, tail: &AtomicU64, lost: &AtomicU64, capacity: u64) -> bool {
    // Acquire pairs with the release in `release`: the consumer has read what we will overwrite. SYNC POINT tail
    let true_tail = tail.load(Ordering::Acquire);
    cached_tail.store(true_tail, Ordering::Relaxed);
    let has_room = position.wrapping_sub(true_tail) < capacity;
    if !has_room {
        lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    has_room
}

/// Makes the record at `position` visible to the consumer.
#[inline(always)]
pub fn publish(head: &AtomicU64, position: u64) {
    // Release: the record's bytes are there before the consumer sees the new head. SYNC POINT head
    head.store(position + 1, Ordering::Release);
}

/// The positions that the consumer may read.
pub fn readable(head: &AtomicU64, tail: &AtomicU64) -> core::ops::Range<u64> {
    let start = tail.load(Ordering::Relaxed);
    // SYNC POINT head
    start..head.load(Ordering::Acquire)
}

/// Gives the positions below `position` back to the producer.
pub fn release(tail: &AtomicU64, position: u64) {
    // SYNC POINT tail
    tail.store(position, Ordering::Release);
}
