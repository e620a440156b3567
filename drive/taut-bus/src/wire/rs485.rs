//! RS485: bytes of a UART, half duplex, and the two ways a bridge passes them on.

use serde::Deserialize;

/// Start bit, 8 data bits, stop bit.
const BITS_PER_BYTE: f64 = 10.0;
/// What a byte-copying bridge adds each way beside the byte it holds: polling it in, 1 µs, and turning the driver
/// round, 1 µs.
const BYTE_COPY_US: f64 = 2.0;

/// An RS485 link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rs485 {
    /// Bits a second on the wire.
    pub baud: f64,
    /// Bytes around a payload. 7 in the moteus protocol of 2019: 2 lead-in, source, destination, length, 2 CRC.
    #[serde(default = "moteus_framing")]
    pub overhead_bytes: u32,
}

fn moteus_framing() -> u32 {
    7
}

impl Rs485 {
    /// One byte, 8N1: 3.333 µs at 3 Mbaud.
    pub fn byte_us(&self) -> f64 {
        BITS_PER_BYTE * 1e6 / self.baud
    }

    /// A frame with its framing.
    pub fn frame_us(&self, payload_bytes: u32) -> f64 {
        f64::from(payload_bytes + self.overhead_bytes) * self.byte_us()
    }

    /// Command and reply of one servo with nothing in between: `(tx + rx) · 10 / baud + turn-around`.
    pub fn exchange_us(&self, command_bytes: u32, reply_bytes: u32, servo_us: f64) -> f64 {
        self.frame_us(command_bytes) + self.frame_us(reply_bytes) + servo_us
    }

    /// What a bridge that stores and forwards adds to an exchange: each frame again, in whole or in part, and its own time.
    /// `again` is the share of a command and of a reply that is not yet on its way while the frame still comes in:
    /// 1 for a bridge that waits for whole frames, towards 0 for one that streams.
    pub fn active_bridge_us(&self, command_bytes: u32, reply_bytes: u32, again: (f64, f64), bridge_us: f64) -> f64 {
        again.0 * self.frame_us(command_bytes) + again.1 * self.frame_us(reply_bytes) + bridge_us
    }

    /// What a bridge that copies byte by byte adds to an exchange: each way the byte it holds and about 2 µs,
    /// 10.7 µs in all at 3 Mbaud.
    pub fn passive_bridge_us(&self) -> f64 {
        2.0 * (self.byte_us() + BYTE_COPY_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Rs485 = Rs485 { baud: 3e6, overhead_bytes: 7 };

    fn near(a: f64, b: f64, within: f64) -> bool {
        (a - b).abs() <= within
    }

    #[test]
    fn a_byte_at_3_mbaud_is_a_third_of_ten_microseconds() {
        assert!(near(LINK.byte_us(), 3.333, 0.001));
        // 51 and 46 bytes on the wire, framing included.
        assert!(near(LINK.frame_us(44), 170.0, 1e-9) && near(LINK.frame_us(39), 153.333, 0.001));
    }

    #[test]
    fn a_store_and_forward_bridge_sends_everything_twice() {
        // The published initial system: 1041.7 µs a servo with 255 µs of host and bridge time.
        let exchange = LINK.exchange_us(44, 39, 140.0) + LINK.active_bridge_us(44, 39, (1.0, 1.0), 255.0);
        assert!(near(exchange, 1041.7, 0.05), "{exchange}");
        let streaming = LINK.exchange_us(44, 39, 140.0) + LINK.active_bridge_us(44, 39, (1.0, 0.0), 255.0);
        assert!(near(exchange - streaming, LINK.frame_us(39), 1e-9));
    }

    #[test]
    fn a_byte_copying_bridge_costs_a_byte_and_2_us_each_way() {
        assert!(near(LINK.passive_bridge_us(), 10.7, 0.05));
        let exchange = LINK.exchange_us(44, 39, 140.0) + LINK.passive_bridge_us() + 86.6;
        assert!(near(exchange, 560.6, 0.05), "{exchange}");
        let int16 = LINK.exchange_us(23, 16, 75.0) + LINK.passive_bridge_us() + 29.3;
        assert!(near(int16, 291.7, 0.07), "{int16}");
    }
}
