//! After construction nothing allocates: a trap in the allocator counts.

mod stream;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use stream::{ALL_COMBINED, MS, Motion, Stream, parameters};
use taut_guard::{
    SpeedGuard, TimeBase,
    ledger::{Fate, Ledger, Reason},
    setpoint::{JerkLimits, Limiter, Limits, Policy, Retarget},
    watchdog::{DegradeChain, Report, Timeouts},
};

struct Trap;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Trap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static TRAP: Trap = Trap;

/// Allocations of this thread while `run` runs.
fn allocations(run: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    run();
    COUNT.with(Cell::get) - before
}

#[test]
fn the_trap_works() {
    assert!(allocations(|| drop(std::hint::black_box(Box::new(1)))) > 0);
}

#[test]
fn the_guard_does_not_allocate() {
    let mut stream = Stream::new(ALL_COMBINED, Motion::steady(0.95), 1);
    let frames: Vec<_> = (0..50_000).map(|_| stream.hear().frame).collect();
    let mut guard: SpeedGuard = SpeedGuard::new(parameters(TimeBase::Source)).unwrap();
    let count = allocations(|| {
        for frame in &frames {
            guard.update(frame);
            guard.tick(frame.arrival_ns);
            _ = guard.reset(frame.arrival_ns);
        }
    });
    assert_eq!(count, 0);
}

/// The degraded path of the watchdog as the normal one.
#[test]
fn watchdog_ledger_and_limiter_do_not_allocate() {
    let mut chain = DegradeChain::<12>::new(Timeouts::default(), 5).unwrap();
    let mut ledger = Ledger::<64>::new();
    let limits = Limits {
        period_ns: 8 * MS,
        position_min: [-1.0; 6],
        position_max: [1.0; 6],
        margin: 0.01,
        velocity_max: [1.0; 6],
        position_reason: Reason::PositionLimit,
    };
    let mut limiter = Limiter::new(limits, Policy::Scale, [0.0; 6]).unwrap();
    let count = allocations(|| {
        chain.start(0).unwrap();
        for n in 1..10_000u64 {
            for servo in 0..12 {
                chain.reply(servo, if n > 5000 && servo == 3 { Report::Faulted } else { Report::Healthy });
                std::hint::black_box(chain.action(servo));
            }
            chain.cycle(n * MS);
            ledger.produce(n, n * MS).unwrap();
            let shaped = limiter.shape(&[(n % 7) as f64 - 3.0; 6]).unwrap();
            ledger.end(n, if n % 9 == 0 { Fate::Lost(Reason::Transport) } else { shaped.fate }, n * MS).unwrap();
            ledger.balance(n * MS).unwrap();
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn retargeting_allocates_only_when_constructed() {
    let limits = JerkLimits {
        period_ns: 8 * MS,
        position_min: [-1.0; 6],
        position_max: [1.0; 6],
        margin: 0.01,
        velocity_max: [1.0; 6],
        acceleration_max: [5.0; 6],
        jerk_max: [50.0; 6],
    };
    let mut retarget = Retarget::new(limits, [0.0; 6]).unwrap();
    retarget.step(&[0.1; 6], &[0.0; 6]).unwrap();
    let count = allocations(|| {
        for n in 0..1000 {
            let target = [0.2 * f64::from(n % 5), 0.1, 0.0, -0.3, 0.05 * f64::from(n % 3), 0.2];
            retarget.step(&target, &[0.0; 6]).unwrap();
        }
    });
    assert_eq!(count, 0);
}
