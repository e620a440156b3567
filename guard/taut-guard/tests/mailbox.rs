//! The mailbox between two real threads; interleavings are `loom_mailbox.rs`'s.

use taut_guard::setpoint::{Mailbox, Put};

#[test]
fn the_latest_wins_and_the_overwritten_comes_back() {
    let mut mailbox = Mailbox::<2>::new();
    let (mut sender, mut receiver) = mailbox.split();
    assert_eq!(receiver.take(), None);
    assert_eq!(sender.put(&[1, 10]), Put::Fresh);
    assert_eq!(sender.put(&[2, 20]), Put::Superseded([1, 10]));
    assert_eq!(sender.put(&[3, 30]), Put::Superseded([2, 20]));
    assert_eq!(receiver.take(), Some([3, 30]));
    assert_eq!(receiver.take(), None);
    assert_eq!(sender.put(&[4, 40]), Put::Fresh);
    assert_eq!(receiver.take(), Some([4, 40]));
}

/// Two threads, a million items: none is torn, none comes twice, and each was taken or came back.
#[test]
fn between_threads_nothing_is_torn_doubled_or_forgotten() {
    // Miri takes a thousand times as long for each.
    const ITEMS: u64 = if cfg!(miri) { 1_000 } else { 1_000_000 };
    let mut mailbox = Mailbox::<4>::new();
    let (mut sender, mut receiver) = mailbox.split();
    std::thread::scope(|scope| {
        let superseded = scope.spawn(move || {
            let puts = (1..=ITEMS).map(|n| sender.put(&[n, !n, n ^ 7, n << 1]));
            puts.filter(|put| matches!(put, Put::Superseded([n, a, b, c]) if (*a, *b, *c) == (!n, n ^ 7, n << 1)))
                .count()
        });
        let (mut taken, mut last) = (0u64, 0);
        while last < ITEMS {
            let Some([n, a, b, c]) = receiver.take() else { continue };
            assert!(n > last && (a, b, c) == (!n, n ^ 7, n << 1), "{n} after {last}");
            (taken, last) = (taken + 1, n);
        }
        assert_eq!(taken + superseded.join().unwrap() as u64, ITEMS);
    });
}
