//! The ledger on random setpoints: 10⁷ of them, each with one fate, and sums that hold at every check.

use taut_guard::{
    Error,
    ledger::{Class, Fate, Ledger, Reason},
};

const SECOND_NS: u64 = 1_000_000_000;

fn random_fate(random: &mut fastrand::Rng) -> Fate {
    let reason = Reason::ALL[random.usize(..20)];
    match random.u8(..10) {
        0..=4 => Fate::Passed,
        5 => Fate::Modified(reason),
        6 => Fate::Held(reason),
        7 => Fate::Superseded(reason),
        8 => Fate::Rejected(reason),
        _ => Fate::Lost(reason),
    }
}

#[test]
fn ten_million_random_setpoints_are_conserved() {
    let seed = 20_260_101;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ledger = Ledger::<32>::new();
    let mut open: Vec<u64> = Vec::new();
    let (mut now_ns, mut produced, mut refused, mut checks) = (0u64, 0u64, 0u64, 0u64);
    let mut expected = [0u64; 21];
    while produced < 10_000_000 {
        now_ns += random.u64(..4_000_000);
        if random.bool() {
            match ledger.produce(produced, now_ns) {
                Ok(()) => {
                    open.push(produced);
                    produced += 1;
                }
                Err(error) => {
                    assert_eq!((error, open.len()), (Error::TooManyInFlight(32), 32));
                    refused += 1;
                }
            }
        }
        if !open.is_empty() && random.bool() {
            let n = random.usize(..open.len());
            let fate = random_fate(&mut random);
            match ledger.end(open[n], fate, now_ns) {
                Ok(_) => {
                    assert!(ledger.end(open.swap_remove(n), fate, now_ns).is_err(), "a second fate");
                    expected[fate.reason().map_or(0, |reason| reason as usize)] += 1;
                }
                Err(error) => {
                    let reason = fate.reason().unwrap();
                    assert_eq!(error, Error::NotARejection(reason as u8));
                    assert!(!reason.may_reject());
                }
            }
        }
        if random.u16(..1000) == 0 {
            let balance = ledger.balance(now_ns).unwrap();
            assert_eq!((balance.produced, balance.in_flight), (produced, open.len() as u64));
            checks += 1;
        }
    }
    let balance = ledger.balance(now_ns).unwrap();
    let counted: [u64; 21] =
        std::array::from_fn(|n| if n == 0 { expected[0] } else { ledger.count(Reason::ALL[n - 1]) });
    assert_eq!(counted, expected);
    println!("seed {seed}: {produced} setpoints, {refused} refused for room, {checks} checks, {balance:?}");
}

#[test]
fn only_staleness_and_refusals_reject() {
    let mut ledger = Ledger::<4>::new();
    for reason in Reason::ALL {
        ledger.produce(1, 0).unwrap();
        let verdict = ledger.end(1, Fate::Rejected(reason), 0);
        assert_eq!(verdict.is_ok(), [3, 14, 15, 16, 17].contains(&(reason as u8)), "{reason:?}");
        if verdict.is_err() {
            assert!(ledger.is_in_flight(1));
            ledger.end(1, Fate::Modified(reason), 0).unwrap();
        }
        assert!(reason.class() != Class::Rejected || reason.may_reject());
    }
    assert!(Reason::ALL.iter().enumerate().all(|(n, reason)| *reason as usize == n + 1));
}

#[test]
fn an_id_has_one_fate_and_one_place() {
    let mut ledger = Ledger::<4>::new();
    assert_eq!(ledger.end(5, Fate::Passed, 0), Err(Error::NotInFlight(5)));
    ledger.produce(5, 10).unwrap();
    assert!(matches!(ledger.produce(5, 10), Err(Error::Contradiction(_))));
    assert_eq!(ledger.end(5, Fate::Passed, 35), Ok(25));
    assert_eq!(ledger.age_max_ns(), 25);
    for id in 0..4 {
        ledger.produce(id, id * 10).unwrap();
    }
    assert_eq!(ledger.end_older(20, Fate::Lost(Reason::Transport), 40), Ok(2));
    assert_eq!(ledger.count(Reason::Transport), 2);
    assert_eq!(ledger.share(Reason::Transport), 0.4);
    assert_eq!(ledger.balance(40).unwrap().in_flight, 2);
}

#[test]
fn the_alarm_hears_silent_losses_at_once_and_low_delivery_over_ten_seconds() {
    let mut ledger = Ledger::<4>::new();
    let mut id = 0;
    let mut second = |ledger: &mut Ledger<4>, at: u64, lost: u64| {
        for n in 0..100 {
            id += 1;
            let now_ns = at * SECOND_NS + n * 10_000_000;
            ledger.produce(id, now_ns).unwrap();
            let fate = if n < lost { Fate::Lost(Reason::Transport) } else { Fate::Passed };
            ledger.end(id, fate, now_ns).unwrap();
        }
        ledger.balance(at * SECOND_NS + 999_000_000).unwrap()
    };
    for at in 0..10 {
        assert!(!second(&mut ledger, at, 0).is_alarmed);
    }
    // 10 of 1000 is 99 % delivered; 11 is below.
    assert!(!second(&mut ledger, 10, 10).is_alarmed);
    let balance = second(&mut ledger, 11, 1);
    assert_eq!((balance.delivered_share, balance.is_alarmed), (Some(0.989), true));
    for at in 12..20 {
        assert!(second(&mut ledger, at, 0).is_alarmed);
    }
    assert!(!second(&mut ledger, 20, 0).is_alarmed);
    // Superseded ones were not to be delivered; one that was sent and not executed is a silent loss for ever.
    for _ in 0..100 {
        ledger.produce(0, 21 * SECOND_NS).unwrap();
        ledger.end(0, Fate::Superseded(Reason::Superseded), 21 * SECOND_NS).unwrap();
    }
    assert!(!ledger.balance(21 * SECOND_NS).unwrap().is_alarmed);
    ledger.produce(0, 21 * SECOND_NS).unwrap();
    ledger.end(0, Fate::Lost(Reason::NotExecuted), 21 * SECOND_NS).unwrap();
    let balance = ledger.balance(100 * SECOND_NS).unwrap();
    assert_eq!((balance.silent, balance.is_alarmed, balance.delivered_share), (1, true, None));
}

/// On u8 counters every count from 0 to 300 is tried for every reason and kind: none wraps, and a full one is said.
#[test]
fn full_counters_are_said_and_never_wrap() {
    for reason in Reason::ALL {
        for fate in [Fate::Modified, Fate::Held, Fate::Superseded, Fate::Rejected, Fate::Lost].map(|fate| fate(reason))
        {
            let (mut narrow, mut wide) = (Ledger::<2, u8>::new(), Ledger::<2, u64>::new());
            for n in 1..=300u64 {
                narrow.produce(n, n).unwrap();
                wide.produce(n, n).unwrap();
                assert_eq!(narrow.end(n, fate, n), wide.end(n, fate, n));
                assert_eq!(narrow.count(reason), wide.count(reason).min(255));
                if wide.is_in_flight(n) {
                    narrow.end(n, Fate::Passed, n).unwrap();
                    wide.end(n, Fate::Passed, n).unwrap();
                }
                let (narrow, wide) = (narrow.balance(n).unwrap(), wide.balance(n).unwrap());
                assert_eq!(narrow.is_saturated, n >= 255);
                assert_eq!((narrow.produced, narrow.in_flight), (wide.produced.min(255), wide.in_flight));
                assert_eq!(narrow.is_alarmed, wide.is_alarmed);
            }
        }
    }
}
