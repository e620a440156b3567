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
    if position.wrapping_sub(cached_tail.load(Ordering::Relaxed)) >= capacity {
        // Acquire pairs with the release in `release`: the consumer has read what we will overwrite. SYNC POINT tail
        cached_tail.store(tail.load(Ordering::Acquire), Ordering::Relaxed);
        if position.wrapping_sub(cached_tail.load(Ordering::Relaxed)) >= capacity {
            lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return None;
        }
    }
    Some(position)
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
