//! Fields of any size at any bit of a packet, in either byte order.

/// Order of bytes, and with it of the bits in a byte, as CTF has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// A place in a packet.
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// In bits, as is `end`.
    at: u64,
    end: u64,
}

impl<'a> Bits<'a> {
    /// From bit `at` of `bytes` on, of which the first `end` bits are content.
    pub fn new(bytes: &'a [u8], at: u64, end: u64) -> Bits<'a> {
        Bits { bytes, at, end: end.min(bytes.len() as u64 * 8) }
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    /// Goes on to the next multiple of `align` bits, a power of two.
    pub fn align(&mut self, align: u32) -> Option<()> {
        let mask = u64::from(align) - 1;
        self.at = self.at.checked_add(mask)? & !mask;
        (self.at <= self.end).then_some(())
    }

    /// A number of `size` bits, 1 to 64.
    #[inline]
    pub fn number(&mut self, size: u32, order: Order) -> Option<u64> {
        let end = self.at + u64::from(size);
        if end > self.end {
            return None;
        }
        let first = (self.at / 8) as usize;
        let within = (self.at % 8) as u32;
        self.at = end;
        if within == 0 && order == Order::Little {
            // The common ones, whole.
            match size {
                8 => return Some(u64::from(self.bytes[first])),
                32 => return Some(u64::from(u32::from_le_bytes(self.bytes[first..first + 4].try_into().ok()?))),
                64 => return Some(u64::from_le_bytes(self.bytes[first..first + 8].try_into().ok()?)),
                _ => {}
            }
        }
        let count = (within + size).div_ceil(8);
        let bytes = &self.bytes[first..first + count as usize];
        let value = match order {
            Order::Little => bytes.iter().rev().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte)) >> within,
            Order::Big => {
                bytes.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte)) >> (8 * count - within - size)
            }
        };
        Some(value as u64 & (u64::MAX >> (64 - size)))
    }

    /// Leaves out `count` bits.
    pub fn skip(&mut self, count: u64) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.end)?;
        Some(())
    }

    /// A string that ends with a zero byte: where its bytes lie.
    pub fn text(&mut self) -> Option<std::ops::Range<usize>> {
        self.align(8)?;
        let start = (self.at / 8) as usize;
        let rest = self.bytes.get(start..(self.end / 8) as usize)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        self.at += (length as u64 + 1) * 8;
        Some(start..start + length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_compact_header_has_the_id_in_its_lowest_bits() {
        // id 3, timestamp 0x55aa5: 27 bits above the 5 of the id.
        let bytes = (0x55aa5u32 << 5 | 3).to_le_bytes();
        let mut bits = Bits::new(&bytes, 0, 32);
        assert_eq!(bits.number(5, Order::Little), Some(3));
        assert_eq!(bits.number(27, Order::Little), Some(0x55aa5));
        assert_eq!(bits.number(1, Order::Little), None);
    }

    /// One bit after the other, as the specification puts it.
    fn bit_by_bit(bytes: &[u8], at: u64, size: u32, order: Order) -> u64 {
        (0..u64::from(size)).fold(0, |sum, n| {
            let (byte, bit) = (((at + n) / 8) as usize, (at + n) % 8);
            match order {
                Order::Little => sum | u64::from(bytes[byte] >> bit & 1) << n,
                Order::Big => sum << 1 | u64::from(bytes[byte] >> (7 - bit) & 1),
            }
        })
    }

    proptest! {
        #[test]
        fn numbers_are_as_their_bits_say(
            bytes in prop::collection::vec(any::<u8>(), 16), at in 0u64..60, size in 1u32..=64, big: bool,
        ) {
            let order = if big { Order::Big } else { Order::Little };
            let mut bits = Bits::new(&bytes, at, 128);
            let expected = bit_by_bit(&bytes, at, size, order);
            prop_assert_eq!(bits.number(size, order), Some(expected));
            prop_assert_eq!(bits.at(), at + u64::from(size));
        }
    }
}
