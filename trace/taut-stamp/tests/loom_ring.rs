//! The ring's algorithm under loom: every interleaving of a producer and a consumer, and of a thread that reclaims a slot.

mod atomic {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
#[path = "../src/ring.rs"]
mod ring;

use atomic::{AtomicU32, AtomicU64, Ordering};
use loom::{
    cell::UnsafeCell,
    sync::{Arc, Mutex},
    thread,
};
use ring::{Producer, discard, readable, release, take};

const FREE: u32 = 0;
const OPEN: u32 = 1;
const CLOSED: u32 = 2;

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

/// A slot that an ended thread left with two records unread, the first to be kept.
struct Left {
    /// The file's lock, which the kernel keeps.
    lock: Mutex<()>,
    state: AtomicU32,
    ring: Shared,
}

impl Left {
    /// What a consumer does in one visit, which is its whole life; nothing where it does not get the lock.
    fn consume(&self, got: &mut Vec<u64>) {
        let Ok(_lock) = self.lock.try_lock() else { return };
        let state = self.state.load(Ordering::Acquire);
        let range = readable(&self.ring.head, &self.ring.tail);
        for at in range.clone() {
            // SAFETY: the cell is published and not yet released; loom checks exactly that.
            got.push(self.ring.cells[(at % 2) as usize].with(|cell| unsafe { *cell }));
        }
        release(&self.ring.tail, range.end);
        if state == CLOSED {
            self.state.store(FREE, Ordering::Release);
        }
    }

    fn reclaim(&self) -> bool {
        let Ok(_lock) = self.lock.try_lock() else { return false };
        let is_taken = take(&self.state, CLOSED);
        if is_taken {
            discard(&self.ring.head, &self.ring.tail, &self.ring.lost, 2, |from, to| {
                // SAFETY: a slot that is being claimed is this thread's alone; loom checks exactly that.
                let value = self.ring.cells[(from % 2) as usize].with(|cell| unsafe { *cell });
                if value == 1 {
                    // SAFETY: as above.
                    self.ring.cells[(to % 2) as usize].with_mut(|cell| unsafe { *cell = value });
                }
                value == 1
            });
        }
        is_taken
    }

    /// A thread's life: two records, or none without a slot. How many were lost for want of one.
    fn produce(&self, values: [u64; 2]) -> u64 {
        if !take(&self.state, FREE) && !self.reclaim() {
            return 2;
        }
        self.state.store(OPEN, Ordering::Release);
        let own = Producer::nowhere();
        own.start(self.ring.head.load(Ordering::Relaxed));
        for value in values {
            if own.reserve().is_some() || own.find_room(&self.ring.tail, &self.ring.lost, 2) {
                let at = own.reserve().unwrap();
                // SAFETY: `reserve` gave the cell to the producer alone; loom checks exactly that.
                self.ring.cells[(at % 2) as usize].with_mut(|cell| unsafe { *cell = value });
                own.publish(&self.ring.head, at);
            }
        }
        self.state.store(CLOSED, Ordering::Release);
        0
    }
}

/// Two threads want the slot while a consumer comes: one has it at a time, and each record is taken once or counted.
#[test]
fn no_interleaving_of_a_reclaim_and_a_consumer_shares_a_ring() {
    loom::model(|| {
        let left = Arc::new(Left {
            lock: Mutex::new(()),
            state: AtomicU32::new(CLOSED),
            ring: Shared {
                head: AtomicU64::new(2),
                tail: AtomicU64::new(0),
                lost: AtomicU64::new(0),
                cells: [UnsafeCell::new(1), UnsafeCell::new(2)],
            },
        });
        let threads = [[3, 4], [5, 6]].map(|values| {
            let left = left.clone();
            thread::spawn(move || left.produce(values))
        });
        let mut got = Vec::new();
        left.consume(&mut got);
        let lost: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        left.consume(&mut got);
        assert!(got.iter().enumerate().all(|(at, value)| !got[..at].contains(value)), "{got:?}");
        assert_eq!(got.len() as u64 + lost + left.ring.lost.load(Ordering::Relaxed), 6);
        // Each thread's own are in their order.
        assert!([[1, 2], [3, 4], [5, 6]].iter().all(|pair| {
            let at = |value| got.iter().position(|one| *one == value);
            at(pair[1]).is_none() || at(pair[0]).is_none() || at(pair[0]) < at(pair[1])
        }));
        assert_eq!(left.state.load(Ordering::Relaxed), FREE);
    });
}
