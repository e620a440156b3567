//! The ring's algorithm against a bounded queue; interleavings are `loom_ring.rs`'s.

mod atomic {
    pub use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
#[path = "../src/ring.rs"]
#[expect(dead_code, reason = "what loom_ring.rs holds")]
mod ring;

use std::collections::VecDeque;

use atomic::{AtomicU64, Ordering};
use proptest::prelude::*;
use ring::{Producer, discard, readable, release};

proptest! {
    /// Any sequence of writes and reads gives what a bounded queue that drops the newest gives.
    #[test]
    fn behaves_like_a_bounded_queue(steps in proptest::collection::vec(0u8..8, 1..400), log2 in 0u32..5, start in 0u64..1 << 40) {
        let capacity = 1u64 << log2;
        let [head, tail, lost] = [start, start, 0].map(AtomicU64::new);
        let own = Producer::nowhere();
        own.start(start);
        let mut cells = vec![0u64; capacity as usize];
        let (mut model, mut model_lost) = (VecDeque::new(), 0);
        for (n, step) in steps.into_iter().enumerate() {
            if step < 5 {
                if model.len() < capacity as usize { model.push_back(n as u64) } else { model_lost += 1 }
                if own.reserve().is_some() || own.find_room(&tail, &lost, capacity) {
                    let at = own.reserve().unwrap();
                    cells[(at % capacity) as usize] = n as u64;
                    own.publish(&head, at);
                    // As a thread does whose counter is not the usual one.
                    if step == 4 { own.forget_room() }
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

    /// The next thread of a slot finds room for at least half of a ring, the newest of what is kept in front of it, in its
    /// order, and all else counted.
    #[test]
    fn what_an_ended_thread_left_gives_way(kept in proptest::collection::vec(any::<bool>(), 0..40), log2 in 1u32..6, start in 0u64..1 << 40) {
        let capacity = 1u64 << log2;
        let unread = (kept.len() as u64).min(capacity);
        let (end, first) = (start + kept.len() as u64, kept.len() - unread as usize);
        let [head, tail, lost] = [end, start + first as u64, 5].map(AtomicU64::new);
        let mut cells = vec![0usize; capacity as usize];
        (0..kept.len()).for_each(|n| cells[((start + n as u64) % capacity) as usize] = n);
        discard(&head, &tail, &lost, capacity, |from, to| {
            let n = cells[(from % capacity) as usize];
            if kept[n] { cells[(to % capacity) as usize] = n }
            kept[n]
        });
        let wanted: Vec<usize> = (first..kept.len()).filter(|n| kept[*n]).collect();
        let wanted = &wanted[wanted.len().saturating_sub(capacity as usize / 2)..];
        let left: Vec<usize> = readable(&head, &tail).map(|at| cells[(at % capacity) as usize]).collect();
        prop_assert_eq!(&left, wanted);
        prop_assert_eq!(lost.load(Ordering::Relaxed), 5 + unread - left.len() as u64);
        prop_assert_eq!(head.load(Ordering::Relaxed), end);
    }
}
