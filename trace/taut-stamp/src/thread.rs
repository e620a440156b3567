//! The thread's side: its slot, and the hot path of a stamp.

use core::{cell::Cell, ptr::null, sync::atomic::Ordering};

use taut_clock::{Counter, monotonic_ns};

use crate::{
    layout::{CLAIMING, CLOSED, FREE, OPEN, Record, Slot},
    process::{OFF, STATE, count_lost, process},
    ring,
};

/// What the hot path needs, in one cache line of thread-local storage.
#[derive(Clone, Copy)]
pub struct Here {
    /// Null until the thread has a slot.
    slot: *const Slot,
    ring: *mut Record,
    capacity: u64,
    counter: Counter,
    /// The thread asked for a slot and there was none: do not ask again.
    refused: bool,
}

const NOWHERE: Here =
    Here { slot: null(), ring: core::ptr::null_mut(), capacity: 0, counter: Counter::Monotonic, refused: false };

std::thread_local! {
    /// No destructor, so that access is one load off the thread pointer.
    static HERE: Cell<Here> = const { Cell::new(NOWHERE) };
    /// Closes the slot when the thread ends; touched once, at claim.
    static CLOSER: Closer = const { Closer };
}

struct Closer;

impl Drop for Closer {
    fn drop(&mut self) {
        let here = HERE.replace(Here { refused: true, ..NOWHERE });
        if !here.slot.is_null() {
            // SAFETY: a slot pointer in HERE points into a mapping that is never unmapped.
            unsafe { (*here.slot).state.store(CLOSED, Ordering::Release) };
        }
    }
}

/// Writes one record; drops and counts it when that is not possible.
#[inline(always)]
pub fn write(point: u32, kind: u32, message_id: u64, value: u64) {
    let mut here = HERE.get();
    if here.slot.is_null() {
        here = match claim() {
            Some(here) => here,
            None => return,
        };
    }
    // SAFETY: see `Closer`.
    let slot = unsafe { &*here.slot };
    let Some(position) = ring::reserve(&slot.head, &slot.cached_tail, &slot.tail, &slot.lost, here.capacity) else {
        return;
    };
    let ticks = here.counter.now().0;
    let record = Record { ticks, message_id, point, kind, value };
    // SAFETY: the ring has `capacity` (a power of two) records, and `reserve` gave this position to us.
    unsafe { here.ring.add((position & (here.capacity - 1)) as usize).write(record) };
    ring::publish(&slot.head, position);
}

/// True when stamps go nowhere: the one load and branch of a robot without a session.
#[inline(always)]
pub fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Claims a slot for this thread, or returns the one it has.
#[cold]
#[inline(never)]
pub fn claim() -> Option<Here> {
    let here = HERE.get();
    if !here.slot.is_null() {
        return Some(here);
    }
    if here.refused {
        count_lost();
        return None;
    }
    let claimed = process().and_then(|process| {
        let slots = process.slots();
        let free = |s: &Slot| s.state.compare_exchange(FREE, CLAIMING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let index = slots.iter().position(free)?;
        let slot = &slots[index];
        let Some(ring) = process.ring(index) else {
            slot.state.store(FREE, Ordering::Release);
            return None;
        };
        // SAFETY: gettid has no preconditions.
        slot.tid.store(unsafe { libc::gettid() } as u32, Ordering::Relaxed);
        slot.generation.store(slot.generation.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        slot.opened_ns.store(monotonic_ns(), Ordering::Relaxed);
        slot.state.store(OPEN, Ordering::Release);
        Some(Here { slot, ring, capacity: process.ring_records(), counter: process.counter(), refused: false })
    });
    match claimed {
        Some(here) if CLOSER.try_with(|_| ()).is_ok() => {
            HERE.set(here);
            Some(here)
        }
        // The thread is already tearing down its locals: a slot now would never be closed.
        Some(here) => {
            // SAFETY: see `Closer`.
            unsafe { (*here.slot).state.store(CLOSED, Ordering::Release) };
            HERE.set(Here { refused: true, ..NOWHERE });
            count_lost();
            None
        }
        None if is_off() => None,
        None => {
            HERE.set(Here { refused: true, ..NOWHERE });
            count_lost();
            None
        }
    }
}

/// After a fork: the parent's slot is not this thread's.
pub fn forget() {
    HERE.set(NOWHERE);
}
