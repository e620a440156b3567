//! A mailbox of depth 1 between two threads: the sender never waits, the receiver gets the latest, and an item that was
//! overwritten unread comes back to the sender, so that the ledger learns of it.
//!
//! Three places: one belongs to the sender, one to the receiver, and the third is swapped between them in one atomic
//! step. Words are atomics that only the place's owner touches, which makes all of it safe code.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const UNREAD: u8 = 4;

/// The three places for items of `WORDS` words.
#[derive(Debug)]
pub struct Mailbox<const WORDS: usize> {
    places: [[AtomicU64; WORDS]; 3],
    /// The place in the middle, and whether it is unread.
    middle: AtomicU8,
}

/// The end that puts.
#[derive(Debug)]
pub struct Sender<'a, const WORDS: usize> {
    mailbox: &'a Mailbox<WORDS>,
    own: u8,
}

/// The end that takes.
#[derive(Debug)]
pub struct Receiver<'a, const WORDS: usize> {
    mailbox: &'a Mailbox<WORDS>,
    own: u8,
}

/// What became of the item before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put<const WORDS: usize> {
    /// It had been taken, or there was none.
    Fresh,
    /// It was overwritten unread: [`Reason::Superseded`](crate::ledger::Reason::Superseded).
    Superseded([u64; WORDS]),
}

impl<const WORDS: usize> Default for Mailbox<WORDS> {
    fn default() -> Self {
        Mailbox::new()
    }
}

impl<const WORDS: usize> Mailbox<WORDS> {
    /// An empty mailbox.
    pub const fn new() -> Self {
        Mailbox { places: [const { [const { AtomicU64::new(0) }; WORDS] }; 3], middle: AtomicU8::new(1) }
    }

    /// The two ends. There is one of each: both borrow the mailbox for as long as they live.
    pub fn split(&mut self) -> (Sender<'_, WORDS>, Receiver<'_, WORDS>) {
        self.middle = AtomicU8::new(1);
        let mailbox = &*self;
        (Sender { mailbox, own: 0 }, Receiver { mailbox, own: 2 })
    }

    fn read(&self, place: u8) -> [u64; WORDS] {
        core::array::from_fn(|word| self.places[usize::from(place % UNREAD)][word].load(Ordering::Relaxed))
    }
}

impl<const WORDS: usize> Sender<'_, WORDS> {
    /// Puts the newest item. Never waits.
    pub fn put(&mut self, item: &[u64; WORDS]) -> Put<WORDS> {
        for (word, value) in self.mailbox.places[usize::from(self.own)].iter().zip(item) {
            word.store(*value, Ordering::Relaxed);
        }
        // Releases the words just written, and acquires the place that comes back with all its words.
        let back = self.mailbox.middle.swap(self.own | UNREAD, Ordering::AcqRel);
        self.own = back % UNREAD;
        if back & UNREAD == 0 { Put::Fresh } else { Put::Superseded(self.mailbox.read(back)) }
    }
}

impl<const WORDS: usize> Receiver<'_, WORDS> {
    /// Takes the latest item, if there is one that was not taken. Never waits.
    pub fn take(&mut self) -> Option<[u64; WORDS]> {
        if self.mailbox.middle.load(Ordering::Relaxed) & UNREAD == 0 {
            return None;
        }
        let got = self.mailbox.middle.swap(self.own, Ordering::AcqRel);
        self.own = got % UNREAD;
        Some(self.mailbox.read(got))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

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
        const ITEMS: u64 = 1_000_000;
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
}
