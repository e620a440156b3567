//! SPI as the pi3hat's host library drives it: polled registers, so that holding the chip select and feeding the
//! FIFO cost beside the bits.

use serde::Deserialize;

/// An SPI link polled by the host's CPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spi {
    /// Bits a second; 10.417 MHz is the pi3hat's divider of 400 MHz nearest 10 MHz.
    pub clock_hz: f64,
    /// One wait around the chip select, µs.
    pub hold_us: f64,
    /// Waits a transaction.
    #[serde(default = "three")]
    pub holds: u32,
    /// Address bits before the data.
    #[serde(default = "eight")]
    pub address_bits: u32,
    /// Time without clock while the CPU refills the FIFO, µs, for each `fifo_bytes`.
    #[serde(default)]
    pub fifo_dead_us: f64,
    /// Bytes to a refill.
    #[serde(default = "three")]
    pub fifo_bytes: u32,
    /// The rest of a transaction: setting up and looking at the result, µs.
    #[serde(default)]
    pub setup_us: f64,
    /// Buses behind each microcontroller that the host asks for what has come, where it does so.
    #[serde(default)]
    pub polled_buses: Option<u32>,
}

fn three() -> u32 {
    3
}

fn eight() -> u32 {
    8
}

impl Spi {
    /// A transaction of `bytes` after the address: holds, address, data, FIFO gaps, set-up.
    pub fn transaction_us(&self, bytes: u32) -> f64 {
        let bits = f64::from(self.address_bits + 8 * bytes);
        f64::from(self.holds) * self.hold_us
            + bits * 1e6 / self.clock_hz
            + f64::from(bytes.div_ceil(self.fifo_bytes)) * self.fifo_dead_us
            + self.setup_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PI3HAT: Spi = Spi {
        clock_hz: 10.417e6,
        hold_us: 3.0,
        holds: 3,
        address_bits: 8,
        fifo_dead_us: 0.15,
        fifo_bytes: 3,
        setup_us: 0.7,
        polled_buses: Some(2),
    };

    #[test]
    fn transactions_of_the_pi3hat() {
        // Write of 16 B (3 of header), read of 16 B (5 of header), status, attitude.
        for (bytes, us) in [(3 + 16, 26.1), (5 + 16, 27.6), (6, 15.4), (42, 44.8)] {
            assert!((PI3HAT.transaction_us(bytes) - us).abs() < 0.05, "{bytes} B: {}", PI3HAT.transaction_us(bytes));
        }
    }

    #[test]
    fn the_pi3hat_cycle_of_12_servos_is_736_us() {
        let t = |bytes| PI3HAT.transaction_us(bytes);
        let cycle = |n: u32| 12.0 * t(3 + n) + t(42) + 12.0 * t(5 + 16) + 3.0 * t(6);
        assert!((cycle(16) - 736.0).abs() < 0.5 && (cycle(32) - 892.0).abs() < 0.5);
    }
}
