//! The ring's algorithm under loom: every interleaving of a producer and a consumer.

mod atomic {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
}
#[path = "../src/ring.rs"]
mod ring;

use atomic::{AtomicU64, Ordering};
use loom::{cell::UnsafeCell, sync::Arc, thread};
use ring::{Producer, readable, release};

struct Shared {
    head: AtomicU64,
    tail: AtomicU64,
    lost: AtomicU64,
    cells: [UnsafeCell<u64>; 2],
}

/// loom itself fails the test when a cell is read while it is written.
#[test]
fn no_interleaving_tears_reorders_or_loses_uncounted() {
    loom::model(|| {
        let shared = Arc::new(Shared {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            cells: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        let producer = {
            let s = shared.clone();
            thread::spawn(move || {
                let own = Producer::nowhere();
                own.start(0);
                for value in 1..=4u64 {
                    if own.reserve().is_some() || own.find_room(&s.tail, &s.lost, 2) {
                        let at = own.reserve().unwrap();
                        // SAFETY: `reserve` gave the cell to the producer alone; loom checks exactly that.
                        s.cells[(at % 2) as usize].with_mut(|cell| unsafe { *cell = value });
                        own.publish(&s.head, at);
                        if value == 1 {
                            own.forget_room(); // As after each record with an unusual counter.
                        }
                    }
                }
            })
        };
        let mut got = Vec::new();
        let drain = |got: &mut Vec<u64>| {
            let range = readable(&shared.head, &shared.tail);
            for at in range.clone() {
                // SAFETY: the cell is published and not yet released; loom checks exactly that.
                got.push(shared.cells[(at % 2) as usize].with(|cell| unsafe { *cell }));
            }
            release(&shared.tail, range.end);
        };
        drain(&mut got);
        drain(&mut got);
        producer.join().unwrap();
        drain(&mut got);
        assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(got.len() as u64 + shared.lost.load(Ordering::Relaxed), 4);
    });
}
