//! The last frames before a trip, with both stamps, kept to explain it.

use crate::{
    frame::Frame,
    state::{Events, State},
};

/// Frames kept (as many as libfranka throws with an exception).
pub const BLACK_BOX_FRAMES: usize = 50;

/// A frame and what the guard thought of it.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct BlackBoxEntry {
    /// As it came.
    pub frame: Frame,
    /// The state after it.
    pub state: State,
    /// v_lb / L with it.
    pub ratio: f64,
    /// What was noticed.
    pub events: Events,
}

/// A ring that stops at the first trip.
#[derive(Clone, Debug)]
pub(crate) struct BlackBox {
    entries: [BlackBoxEntry; BLACK_BOX_FRAMES],
    next: usize,
    len: usize,
    pub is_frozen: bool,
}

impl BlackBox {
    pub fn new() -> BlackBox {
        let entries = [BlackBoxEntry::default(); BLACK_BOX_FRAMES];
        BlackBox { entries, next: 0, len: 0, is_frozen: false }
    }

    pub fn keep(&mut self, entry: BlackBoxEntry) {
        if !self.is_frozen {
            self.entries[self.next] = entry;
            self.next = (self.next + 1) % BLACK_BOX_FRAMES;
            self.len = (self.len + 1).min(BLACK_BOX_FRAMES);
        }
    }

    /// Oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &BlackBoxEntry> {
        let start = (self.next + BLACK_BOX_FRAMES - self.len) % BLACK_BOX_FRAMES;
        (0..self.len).map(move |n| &self.entries[(start + n) % BLACK_BOX_FRAMES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_last_fifty_until_frozen() {
        let mut kept = BlackBox::new();
        let frame = |n| BlackBoxEntry { frame: Frame { sequence: n, ..Frame::default() }, ..BlackBoxEntry::default() };
        for n in 0..70 {
            kept.keep(frame(n));
        }
        kept.is_frozen = true;
        kept.keep(frame(99));
        assert!(kept.entries().map(|e| e.frame.sequence).eq(20..70));
    }
}
