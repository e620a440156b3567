//! The thread's side: its slot, and the hot path of a stamp.

use core::{
    cell::Cell,
    ptr::{null, null_mut},
    sync::atomic::Ordering,
};

use taut_clock::{Counter, monotonic_ns};

use crate::{
    layout::{CLOSED, FREE, OPEN, Record, Slot},
    process::{Aside, OFF, STATE, count_lost, process},
    ring::{Producer, take},
};

/// In [`Here::refused`]: there are no bytes for its ring, or the thread is ending. It does not try again amid its work.
const FOR_GOOD: u32 = u32::MAX;

/// What the hot path needs, in one cache line of thread-local storage. In cells of its own each: the hot path
/// reads them where they are, a copy would be spilled to the stack.
struct Here {
    producer: Producer,
    ring: Cell<*mut Record>,
    /// Null until the thread has a slot.
    slot: Cell<*const Slot>,
    /// Records in the ring, a power of two, less one.
    mask: Cell<u64>,
    counter: Cell<Counter>,
    /// How often there was no slot for the thread, or [`FOR_GOOD`].
    refused: Cell<u32>,
}

std::thread_local! {
    /// No destructor, so that access is one load off the thread pointer.
    static HERE: Here = const {
        Here {
            producer: Producer::nowhere(),
            ring: Cell::new(null_mut()),
            slot: Cell::new(null()),
            mask: Cell::new(0),
            counter: Cell::new(Counter::Monotonic),
            refused: Cell::new(0),
        }
    };
    /// Closes the slot when the thread ends; touched once, at claim.
    static CLOSER: Closer = const { Closer };
}

/// Why a thread has no slot.
enum Refusal {
    /// There is none now, or no session to be had now.
    NoSlot,
    /// No bytes for its ring, or the thread ends.
    NoRing,
}

struct Closer;

impl Drop for Closer {
    fn drop(&mut self) {
        HERE.with(|here| {
            let slot = here.slot.get();
            here.leave();
            here.refused.set(FOR_GOOD);
            if !slot.is_null() {
                // SAFETY: a slot pointer in HERE points into a mapping that is never unmapped.
                unsafe { (*slot).state.store(CLOSED, Ordering::Release) };
            }
        });
    }
}

/// The counter that nearly everybody has; the hot path knows no other.
pub const USUAL: Counter = if cfg!(target_arch = "aarch64") { Counter::Cntvct } else { Counter::Tsc };

/// Writes one record if that is plain sailing: the thread has a ring, the ring has room, the counter is the usual one.
/// Else false, and [`write_slowly`] must be asked: one branch and no call here, so that nothing is kept on the stack.
#[inline(always)]
pub fn write(point: u32, kind: u32, message_id: u64, value: u64) -> bool {
    // Only the address inside `with`: with the whole body in its closure the compiler calls it, and passes all by reference.
    let here: *const Here = HERE.with(core::ptr::from_ref);
    // SAFETY: a thread-local without a destructor lives as long as its thread, and the reference stays in this call.
    let here = unsafe { &*here };
    let Some(position) = here.producer.reserve() else { return false };
    // SAFETY: only `write_slowly` finds room, in the ring of this thread's slot and for a thread with the usual counter.
    unsafe { here.put(position, Record { ticks: USUAL.now().0, message_id, point, kind, value }) };
    true
}

/// Writes one record; drops and counts it when that is not possible.
#[cold]
#[inline(never)]
pub fn write_slowly(point: u32, kind: u32, message_id: u64, value: u64) {
    write_at(point, kind, message_id, value, None);
}

/// The same at a moment that the caller knows, in ticks of the session's counter.
#[cold]
#[inline(never)]
pub fn write_at(point: u32, kind: u32, message_id: u64, value: u64, ticks: Option<u64>) {
    HERE.with(|here| {
        if !claim() {
            if !is_off() {
                count_lost();
            }
            return;
        }
        // SAFETY: see `Closer`; not null, as `claim` was true.
        let slot = unsafe { &*here.slot.get() };
        if here.producer.reserve().is_none() && !here.producer.find_room(&slot.tail, &slot.lost, here.mask.get() + 1) {
            return;
        }
        if let Some(position) = here.producer.reserve() {
            let counter = here.counter.get();
            let ticks = ticks.unwrap_or_else(|| counter.now().0);
            // SAFETY: there is room in the ring of this thread's slot.
            unsafe { here.put(position, Record { ticks, message_id, point, kind, value }) };
            if counter != USUAL {
                here.producer.forget_room();
            }
        }
    });
}

/// True when stamps go nowhere: the one load and branch of a robot without a session.
#[inline(always)]
pub fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Gives this thread a slot if it has none; whether it has one. Loses nothing: there was no stamp yet. A thread that got
/// none looks again at its 2nd, 4th, 8th … try: so it loses no more than twice what was lost before a slot came free, for
/// a few looks in all.
#[cold]
#[inline(never)]
pub fn claim() -> bool {
    HERE.with(|here| {
        if !here.slot.get().is_null() {
            return true;
        }
        let refused = match here.refused.get() {
            FOR_GOOD => return false,
            tries => tries + 1,
        };
        here.refused.set(refused);
        if !refused.is_power_of_two() {
            return false;
        }
        let _aside = Aside::step();
        match here.claim() {
            Ok(()) => here.refused.set(0),
            // Without a session nothing is refused: one may be attached yet.
            Err(Refusal::NoSlot) => here.refused.set(if is_off() { 0 } else { refused }),
            Err(Refusal::NoRing) => here.refused.set(FOR_GOOD),
        }
        here.refused.get() == 0 && !here.slot.get().is_null()
    })
}

impl Here {
    /// # Safety
    /// `position` was reserved in this thread's ring.
    #[inline(always)]
    unsafe fn put(&self, position: u64, record: Record) {
        // SAFETY: of the caller: a ring of `mask` + 1 records is mapped, and its slot is never unmapped.
        unsafe {
            let place = self.ring.get().add((position & self.mask.get()) as usize);
            place.write(record);
            fetch_ahead(place);
            self.producer.publish(&(*self.slot.get()).head, position);
        }
    }

    /// Has no slot any more.
    fn leave(&self) {
        self.slot.set(null());
        self.producer.start(0);
    }

    fn claim(&self) -> Result<(), Refusal> {
        let process = process().ok_or(Refusal::NoSlot)?;
        // Not in a thread that is tearing down its locals: the slot would never be closed.
        CLOSER.try_with(|_| ()).map_err(|_| Refusal::NoRing)?;
        let slots = process.slots();
        let free = slots.iter().position(|slot| take(&slot.state, FREE));
        let index = free.or_else(|| process.reclaim()).ok_or(Refusal::NoSlot)?;
        let slot = &slots[index];
        let Some(ring) = process.ring(index) else {
            slot.state.store(FREE, Ordering::Release);
            return Err(Refusal::NoRing);
        };
        // SAFETY: gettid has no preconditions.
        slot.tid.store(unsafe { libc::gettid() } as u32, Ordering::Relaxed);
        slot.generation.store(slot.generation.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        slot.opened_ns.store(monotonic_ns(), Ordering::Relaxed);
        slot.state.store(OPEN, Ordering::Release);
        self.ring.set(ring);
        self.mask.set(process.ring_records() - 1);
        self.counter.set(process.counter());
        self.slot.set(slot);
        self.producer.start(slot.head.load(Ordering::Relaxed));
        Ok(())
    }
}

/// The ring is longer than a cache, and the consumer has taken its lines: fetch those of the stamps to come.
#[inline(always)]
fn fetch_ahead(place: *const Record) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is in every x86-64; a prefetch never faults, and past the ring's end it fetches nothing.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(16).cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch never faults, and reads and writes nothing.
    unsafe {
        let ahead = place.wrapping_add(16);
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) ahead, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// There is a ring file now: this thread's next stamp looks for a slot, unless the thread is ending.
pub fn look_again() {
    HERE.with(|here| {
        if here.refused.get() != FOR_GOOD {
            here.refused.set(0);
        }
    });
}

/// After a fork: the parent's slot is not this thread's.
pub fn forget() {
    HERE.with(|here| {
        here.leave();
        here.refused.set(0);
    });
}
