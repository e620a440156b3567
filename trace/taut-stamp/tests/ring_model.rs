//! The ring's algorithm against a bounded queue; interleavings are `loom_ring.rs`'s.

mod atomic {
    pub use core::sync::atomic::{AtomicU64, Ordering};
}
#[path = "../src/ring.rs"]
mod ring;

use std::collections::VecDeque;

use atomic::{AtomicU64, Ordering};
use proptest::prelude::*;
use ring::{Producer, readable, release};

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
}
