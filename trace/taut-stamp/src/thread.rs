//! The thread's side: its slot, and the hot path of a stamp.

use core::{
    cell::Cell,
    ptr::{null, null_mut},
    sync::atomic::Ordering,
};

use taut_clock::{Counter, monotonic_ns};

use crate::{
    layout::{CLAIMING, CLOSED, FREE, OPEN, Record, Slot},
    process::{Aside, OFF, STATE, count_lost, process},
    ring,
};

/// What the hot path needs, in one cache line of thread-local storage. In cells of its own each: the hot path
/// reads them where they are, a copy would be spilled to the stack.
struct Here {
    /// Null until the thread has a slot.
    slot: Cell<*const Slot>,
    ring: Cell<*mut Record>,
    /// Records in the ring, a power of two.
    capacity: Cell<u64>,
    counter: Cell<Counter>,
    /// The thread asked for a slot and there was none: do not ask again.
    refused: Cell<bool>,
}

std::thread_local! {
    /// No destructor, so that access is one load off the thread pointer.
    static HERE: Here = const {
        Here {
            slot: Cell::new(null()),
            ring: Cell::new(null_mut()),
            capacity: Cell::new(0),
            counter: Cell::new(Counter::Monotonic),
            refused: Cell::new(false),
        }
    };
    /// Closes the slot when the thread ends; touched once, at claim.
    static CLOSER: Closer = const { Closer };
}

struct Closer;

impl Drop for Closer {
    fn drop(&mut self) {
        HERE.with(|here| {
            here.refused.set(true);
            let slot = here.slot.replace(null());
            if !slot.is_null() {
                // SAFETY: a slot pointer in HERE points into a mapping that is never unmapped.
                unsafe { (*slot).state.store(CLOSED, Ordering::Release) };
            }
        });
    }
}

/// Writes one record; drops and counts it when that is not possible.
#[inline(always)]
pub fn write(point: u32, kind: u32, message_id: u64, value: u64) {
    HERE.with(|here| {
        if here.slot.get().is_null() && !claim_or_count() {
            return;
        }
        // SAFETY: see `Closer`; not null, as `claim_or_count` was true.
        let slot = unsafe { &*here.slot.get() };
        let capacity = here.capacity.get();
        let Some(position) = ring::reserve(&slot.head, &slot.cached_tail, &slot.tail, &slot.lost, capacity) else {
            return;
        };
        // SAFETY: the ring has `capacity` (a power of two) records, and `reserve` gave this position to us.
        let place = unsafe { here.ring.get().add((position & (capacity - 1)) as usize) };
        let ticks = here.counter.get().now().0;
        // SAFETY: as above; the ring stays mapped while the thread has its slot.
        unsafe { place.write(Record { ticks, message_id, point, kind, value }) };
        ring::publish(&slot.head, position);
    });
}

/// True when stamps go nowhere: the one load and branch of a robot without a session.
#[inline(always)]
pub fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Gives this thread a slot if it has none; whether it has one. Loses nothing: nobody has stamped yet.
#[cold]
#[inline(never)]
pub fn claim() -> bool {
    HERE.with(|here| {
        if !here.slot.get().is_null() {
            return true;
        }
        if here.refused.get() {
            return false;
        }
        let _aside = Aside::step();
        let claimed = here.claim().is_some();
        // Without a session nothing is refused: one may be attached yet.
        here.refused.set(!claimed && !is_off());
        claimed
    })
}

/// As [`claim`], for a stamp that is lost when there is no slot.
#[cold]
#[inline(never)]
fn claim_or_count() -> bool {
    let claimed = claim();
    if !claimed && !is_off() {
        count_lost();
    }
    claimed
}

impl Here {
    fn claim(&self) -> Option<()> {
        let process = process()?;
        // Not in a thread that is tearing down its locals: the slot would never be closed.
        CLOSER.try_with(|_| ()).ok()?;
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
        self.ring.set(ring);
        self.capacity.set(process.ring_records());
        self.counter.set(process.counter());
        self.slot.set(slot);
        Some(())
    }
}

/// After a fork: the parent's slot is not this thread's.
pub fn forget() {
    HERE.with(|here| {
        here.slot.set(null());
        here.refused.set(false);
    });
}
