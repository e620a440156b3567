//! The mailbox under loom: every interleaving of a sender and a receiver.

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
}
#[path = "../src/setpoint/mailbox.rs"]
#[allow(dead_code, reason = "some of it is for C alone")]
mod mailbox;

use loom::thread;
use mailbox::{Mailbox, Put};

/// Each item is taken once or comes back once, whole and in order.
#[test]
fn no_interleaving_tears_doubles_or_forgets() {
    loom::model(|| {
        // loom's threads are 'static, and so must be what they borrow; it is a few words a model.
        let mailbox: &'static mut Mailbox<2> = Box::leak(Box::new(Mailbox::new()));
        let (mut sender, mut receiver) = mailbox.split();
        let sending = thread::spawn(move || {
            let puts = [1u64, 2, 3].map(|n| sender.put(&[n, !n]));
            puts.into_iter()
                .filter_map(|put| match put {
                    Put::Fresh => None,
                    Put::Superseded([n, inverse]) => {
                        assert_eq!(inverse, !n, "torn");
                        Some(n)
                    }
                })
                .collect::<Vec<u64>>()
        });
        let mut taken = Vec::new();
        for _ in 0..2 {
            taken.extend(receiver.take());
        }
        let superseded = sending.join().unwrap();
        taken.extend(receiver.take());
        assert!(taken.iter().all(|[n, inverse]| *inverse == !n), "torn");
        assert!(taken.windows(2).all(|pair| pair[0][0] < pair[1][0]), "out of order");
        let mut all: Vec<u64> = taken.iter().map(|item| item[0]).chain(superseded).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}
