//! How a controller's frames go onto the wire: whole and in time, joined and cut, or late and in bunches.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::{Value, json};

const SEED: u64 = 1;
/// A rough wire joins a frame with the next, or cuts it, so often.
const JOIN: f64 = 0.10;
const CUT: f64 = 0.05;
/// The guard specification's heavy jitter: exponential delays of 10 ms on average, and 0.5 stalls a second of 30 to 200 ms.
pub const MEAN_NS: f64 = 10e6;
pub const STALLS_HZ: f64 = 0.5;
pub const STALL_NS: [f64; 2] = [30e6, 200e6];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One send a frame.
    #[default]
    Plain,
    /// Now and then joins a frame with the next, or cuts it.
    Rough,
    /// The same, and every frame is late, and now and then the wire stands still. Frames keep their order, as TCP's do, so what
    /// waited behind a late one comes in a bunch.
    Heavy,
}

impl Kind {
    /// What it does to every frame; nothing of the others.
    pub fn jitter(self) -> Option<Value> {
        let stall_ms = STALL_NS.map(|ns| ns / 1e6);
        (self == Kind::Heavy)
            .then(|| json!({ "delay_mean_ms": MEAN_NS / 1e6, "stalls_hz": STALLS_HZ, "stall_ms": stall_ms }))
    }
}

pub struct Wire {
    kind: Kind,
    dice: fastrand::Rng,
    held: Vec<u8>,
    waiting: VecDeque<(u64, Vec<u8>)>,
    clear_ns: u64,
    stall_ns: u64,
}

impl Wire {
    pub fn new(kind: Kind, now_ns: u64) -> Wire {
        let dice = fastrand::Rng::with_seed(SEED);
        Wire { kind, dice, held: Vec::new(), waiting: VecDeque::new(), clear_ns: now_ns, stall_ns: now_ns }
    }

    pub fn put(&mut self, now_ns: u64, frame: Vec<u8>) {
        if self.kind == Kind::Heavy {
            if now_ns >= self.stall_ns {
                let length_ns = STALL_NS[0] + self.dice.f64() * (STALL_NS[1] - STALL_NS[0]);
                self.clear_ns = self.clear_ns.max(now_ns + length_ns as u64);
                self.stall_ns = now_ns + (1e9 * exponential(&mut self.dice) / STALLS_HZ) as u64;
            }
            self.clear_ns = self.clear_ns.max(now_ns + (MEAN_NS * exponential(&mut self.dice)) as u64);
        } else {
            self.clear_ns = now_ns;
        }
        self.waiting.push_back((self.clear_ns, frame));
    }

    /// What one send brings now.
    pub fn send(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        while self.waiting.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let mut bytes = std::mem::take(&mut self.held);
            bytes.extend(self.waiting.pop_front()?.1);
            let roll = if self.kind == Kind::Plain { 1.0 } else { self.dice.f64() };
            if roll < JOIN {
                self.held = bytes;
                continue;
            }
            if roll < JOIN + CUT {
                self.held = bytes.split_off(bytes.len() / 2);
            }
            return Some(bytes);
        }
        None
    }
}

/// With a mean of 1.
pub fn exponential(dice: &mut fastrand::Rng) -> f64 {
    -(1.0 - dice.f64()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn every_wire_brings_all_bytes_in_order_and_only_the_heavy_one_late() {
        for kind in [Kind::Plain, Kind::Rough, Kind::Heavy] {
            let mut wire = Wire::new(kind, 0);
            let (mut sent, mut came, mut reads, mut longest_ms) = (Vec::new(), Vec::new(), 0, 0);
            for ms in 0..10_000_u64 {
                if ms % 10 == 0 && ms < 9_000 {
                    let frame = ((ms / 10) as u16).to_le_bytes().to_vec();
                    sent.extend_from_slice(&frame);
                    wire.put(ms * MS, frame);
                }
                while let Some(bytes) = wire.send(ms * MS) {
                    came.extend(bytes);
                    reads += 1;
                    longest_ms = longest_ms.max(ms.saturating_sub(5 * came.len() as u64));
                }
            }
            came.extend(&wire.held);
            assert_eq!(came, sent);
            assert_eq!(reads == 900, kind == Kind::Plain, "{reads}");
            assert_eq!(longest_ms > 100, kind == Kind::Heavy, "{longest_ms}");
        }
    }
}
