//! The single-producer single-consumer ring: the algorithm of `docs/protocol.md` "Write"
//! and "Consume", generic over where the counters live so that loom can walk its interleavings.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// Where in the ring the next record goes, or `None` when it is full (then `lost` has grown).
///
/// `capacity` is a power of two. The record must be written before [`publish`].
#[inline(always)]
pub fn reserve(
    head: &AtomicU64,
    cached_tail: &AtomicU64,
    tail: &AtomicU64,
    lost: &AtomicU64,
    capacity: u64,
) -> Option<u64> {
    let position = head.load(Ordering::Relaxed);
    if position.wrapping_sub(cached_tail.load(Ordering::Relaxed)) >= capacity {
        // Acquire pairs with the release in `release`: the consumer has read what we will overwrite. SYNC POINT tail
        cached_tail.store(tail.load(Ordering::Acquire), Ordering::Relaxed);
        if position.wrapping_sub(cached_tail.load(Ordering::Relaxed)) >= capacity {
            lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return None;
        }
    }
    Some(position)
}

/// Makes the record at `position` visible to the consumer.
#[inline(always)]
pub fn publish(head: &AtomicU64, position: u64) {
    // Release: the record's bytes are there before the consumer sees the new head. SYNC POINT head
    head.store(position + 1, Ordering::Release);
}

/// The positions that the consumer may read.
pub fn readable(head: &AtomicU64, tail: &AtomicU64) -> core::ops::Range<u64> {
    let start = tail.load(Ordering::Relaxed);
    // SYNC POINT head
    start..head.load(Ordering::Acquire)
}

/// Gives the positions below `position` back to the producer.
pub fn release(tail: &AtomicU64, position: u64) {
    // SYNC POINT tail
    tail.store(position, Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any sequence of writes and reads gives what a bounded queue that drops the newest gives.
        #[test]
        fn behaves_like_a_bounded_queue(steps in proptest::collection::vec(0u8..8, 1..400), log2 in 0u32..5) {
            let capacity = 1u64 << log2;
            let [head, cached, tail, lost] = [const { AtomicU64::new(0) }; 4];
            let mut cells = vec![0u64; capacity as usize];
            let (mut model, mut model_lost) = (VecDeque::new(), 0);
            for (n, step) in steps.into_iter().enumerate() {
                if step < 5 {
                    if model.len() < capacity as usize { model.push_back(n as u64) } else { model_lost += 1 }
                    if let Some(at) = reserve(&head, &cached, &tail, &lost, capacity) {
                        cells[(at % capacity) as usize] = n as u64;
                        publish(&head, at);
                    }
                } else {
                    let range = readable(&head, &tail);
                    let upto = range.start + (range.end - range.start).min(u64::from(step) - 4);
                    for at in range.start..upto {
                        prop_assert_eq!(Some(cells[(at % capacity) as usize]), model.pop_front());
                    }
                    release(&tail, upto);
                }
                prop_assert_eq!(lost.load(Ordering::Relaxed), model_lost);
            }
        }
    }
}

/// `RUSTFLAGS="--cfg loom" cargo test -p taut-stamp --lib --release loom`
#[cfg(all(test, loom))]
mod loom_tests {
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    use super::*;

    struct Shared {
        head: AtomicU64,
        cached: AtomicU64,
        tail: AtomicU64,
        lost: AtomicU64,
        cells: [UnsafeCell<u64>; 2],
    }

    /// In every interleaving the consumer reads whole records in order, and what it
    /// does not get is counted as lost.
    #[test]
    fn no_interleaving_tears_or_reorders() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                head: AtomicU64::new(0),
                cached: AtomicU64::new(0),
                tail: AtomicU64::new(0),
                lost: AtomicU64::new(0),
                cells: [UnsafeCell::new(0), UnsafeCell::new(0)],
            });
            let producer = {
                let s = shared.clone();
                thread::spawn(move || {
                    for value in 1..=4u64 {
                        if let Some(at) = reserve(&s.head, &s.cached, &s.tail, &s.lost, 2) {
                            s.cells[(at % 2) as usize].with_mut(|cell| unsafe { *cell = value });
                            publish(&s.head, at);
                        }
                    }
                })
            };
            let mut got = Vec::new();
            let mut drain = |got: &mut Vec<u64>| {
                let range = readable(&shared.head, &shared.tail);
                for at in range.clone() {
                    got.push(shared.cells[(at % 2) as usize].with(|cell| unsafe { *cell }));
                }
                release(&shared.tail, range.end);
            };
            drain(&mut got);
            drain(&mut got);
            producer.join().unwrap();
            drain(&mut got);
            assert!(got.windows(2).all(|w| w[0] < w[1]));
            assert_eq!(got.len() as u64 + shared.lost.load(Ordering::Relaxed), 4);
        });
    }
}
