//! A mailbox of depth 1 between two threads: the sender never waits, the receiver gets the latest, and an item that was
//! overwritten unread comes back to the sender, so that the ledger learns of it.
//!
//! Three places: one belongs to the sender, one to the receiver, and the third is swapped between them in one atomic
//! step. Words are atomics that only the place's owner touches, which makes all of it safe code. Its tests stand in
//! `tests/mailbox.rs`; every interleaving is tried in `tests/loom_mailbox.rs`.

use crate::atomic::{AtomicU8, AtomicU64, Ordering};

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
    pub fn new() -> Self {
        let place = || core::array::from_fn(|_| AtomicU64::new(0));
        Mailbox { places: [place(), place(), place()], middle: AtomicU8::new(1) }
    }

    /// The two ends. There is one of each: both borrow the mailbox for as long as they live.
    pub fn split(&mut self) -> (Sender<'_, WORDS>, Receiver<'_, WORDS>) {
        self.middle = AtomicU8::new(1);
        let mailbox = &*self;
        (Sender { mailbox, own: 0 }, Receiver { mailbox, own: 2 })
    }

    /// An end that goes on where another left off, for C, whose handles cannot borrow. There must be one at a time.
    #[cfg(feature = "c")]
    pub(crate) fn sender_at(&self, place: u8) -> Sender<'_, WORDS> {
        Sender { mailbox: self, own: place % 3 }
    }

    /// The same of the other end.
    #[cfg(feature = "c")]
    pub(crate) fn receiver_at(&self, place: u8) -> Receiver<'_, WORDS> {
        Receiver { mailbox: self, own: place % 3 }
    }

    fn read(&self, place: u8) -> [u64; WORDS] {
        core::array::from_fn(|word| self.places[usize::from(place % UNREAD)][word].load(Ordering::Relaxed))
    }
}

impl<const WORDS: usize> Sender<'_, WORDS> {
    #[cfg(feature = "c")]
    pub(crate) fn place(&self) -> u8 {
        self.own
    }

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
    #[cfg(feature = "c")]
    pub(crate) fn place(&self) -> u8 {
        self.own
    }

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
