//! The single-producer single-consumer ring: the algorithm of `docs/reference/protocol.md` "Write"
//! and "Consume", over the atomics of whoever includes it: `tests/loom_ring.rs` includes it over loom's
//! to walk every interleaving.

use super::atomic::{AtomicU32, AtomicU64, Ordering};
use core::cell::Cell;

/// A slot's state while a thread takes it.
pub const CLAIMING: u32 = 3;

/// The producer's own knowledge of its ring. The hot path compares two numbers of one cache line that nothing
/// else touches; a thread without a ring has no room in it, so that needs no question of its own.
pub struct Producer {
    /// Position of the next record: what the shared head is, or is about to be.
    head: Cell<u64>,
    /// The position up to which there is room, as far as is known: a tail seen earlier + capacity.
    limit: Cell<u64>,
}

impl Producer {
    /// One that has no ring.
    pub const fn nowhere() -> Producer {
        Producer { head: Cell::new(0), limit: Cell::new(0) }
    }

    /// Goes on where the ring's head is, with no room known.
    pub fn start(&self, head: u64) {
        self.head.set(head);
        self.forget_room();
    }

    /// Has the next record take the slow way: [`Producer::find_room`].
    pub fn forget_room(&self) {
        self.limit.set(self.head.get());
    }

    /// Where in the ring the next record goes, or `None` when no room is known. The record must be written before
    /// [`Producer::publish`].
    #[inline(always)]
    pub fn reserve(&self) -> Option<u64> {
        let position = self.head.get();
        (position != self.limit.get()).then_some(position)
    }

    /// Looks at the true tail, which is needed when no room is known; counts a record for which there is none.
    pub fn find_room(&self, tail: &AtomicU64, lost: &AtomicU64, capacity: u64) -> bool {
        // Acquire pairs with the release in `release`: the consumer has read what we will overwrite. SYNC POINT tail
        let tail = tail.load(Ordering::Acquire);
        // Also false for a tail that no consumer may have written.
        let has_room = self.head.get().wrapping_sub(tail) < capacity;
        if has_room {
            self.limit.set(tail.wrapping_add(capacity));
        } else {
            lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        has_room
    }

    /// Makes the record at `position` visible to the consumer.
    #[inline(always)]
    pub fn publish(&self, head: &AtomicU64, position: u64) {
        self.head.set(position + 1);
        // Release: the record's bytes are there before the consumer sees the new head. SYNC POINT head
        head.store(position + 1, Ordering::Release);
    }
}

/// Claims a slot if it is in this state; whether it was.
pub fn take(state: &AtomicU32, from: u32) -> bool {
    state.compare_exchange(from, CLAIMING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Gives the room of an ended thread's unread records to the next, without a consumer: the caller has the file's lock, and
/// the slot. They are lost and counted, but for what `keep(from, to)` moves from one position to another and says true of:
/// of that the newest stay, in at most half of the ring.
pub fn discard(
    head: &AtomicU64,
    tail: &AtomicU64,
    lost: &AtomicU64,
    capacity: u64,
    mut keep: impl FnMut(u64, u64) -> bool,
) {
    let head = head.load(Ordering::Relaxed);
    // Acquire: an earlier consumer has read what will be overwritten. More than the ring has for a tail that no consumer
    // may have written.
    let unread = head.wrapping_sub(tail.load(Ordering::Acquire)).min(capacity);
    let mut kept = 0;
    for at in 1..=unread {
        if kept < capacity / 2 && keep(head.wrapping_sub(at), head.wrapping_sub(kept + 1)) {
            kept += 1;
        }
    }
    lost.store(lost.load(Ordering::Relaxed) + unread - kept, Ordering::Relaxed);
    tail.store(head.wrapping_sub(kept), Ordering::Release);
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
