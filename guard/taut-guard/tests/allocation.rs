//! After construction nothing allocates: counted by the allocator itself.

mod stream;

use stream::{ALL_COMBINED, MS, Motion, Stream, parameters};
use taut_allocations::allocations_in;
use taut_guard::{
    SpeedGuard, TimeBase,
    ledger::{Fate, Ledger, Reason},
    setpoint::{JerkLimits, Limiter, Limits, Policy, Retarget},
    watchdog::{DegradeChain, Report, Timeouts},
};

#[test]
fn the_guard_does_not_allocate() {
    let mut stream = Stream::new(ALL_COMBINED, Motion::steady(0.95), 1);
    let frames: Vec<_> = (0..50_000).map(|_| stream.hear().frame).collect();
    let mut guard: SpeedGuard = SpeedGuard::new(parameters(TimeBase::Source)).unwrap();
    let count = allocations_in(|| {
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
    let count = allocations_in(|| {
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
    let count = allocations_in(|| {
        for n in 0..1000 {
            let target = [0.2 * f64::from(n % 5), 0.1, 0.0, -0.3, 0.05 * f64::from(n % 3), 0.2];
            retarget.step(&target, &[0.0; 6]).unwrap();
        }
    });
    assert_eq!(count, 0);
}
