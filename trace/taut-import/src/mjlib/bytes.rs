//! Reads numbers as the format writes them; every read is checked.

/// What is left to read.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Seven bits a byte, the lowest first; the high bit says that more follow.
    pub fn varuint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// As [`Bytes::varuint`], with the sign in the lowest bit.
    pub fn varint(&mut self) -> Option<i64> {
        let value = self.varuint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A length, and as many bytes.
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varuint()?).ok()?;
        self.take(length)
    }

    pub fn string(&mut self) -> Option<String> {
        self.counted().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub fn left(&self) -> usize {
        self.0.len()
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}
