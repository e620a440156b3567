//! Reads the stamp at the head of a message: CDR as DDS has it, and the serialization of ROS 1.

use std::io::Read;

use super::{
    container::ZSTD,
    schema::{Format, Place},
};

/// Enough of a message for the stamp at its head.
const HEAD_BYTES: u64 = 64;

/// What the head of a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Nanoseconds since 1970, or since whatever its clock counts from; and the sequence number that ROS 1 has.
    At { ns: i64, sequence: Option<u32> },
    /// The stamp is zero: it was never set.
    Zero,
    /// The sequence whose first element has the stamp is empty.
    Nothing,
    /// Too short, no encoding that is known, or no time.
    Unreadable,
}

/// Reads what stands at that place.
pub fn head(place: Place, message: &[u8]) -> Head {
    if !message.starts_with(&ZSTD) {
        return read(place, message).unwrap_or(Head::Unreadable);
    }
    // rosbag2 compresses message by message, if it is asked to; plain CDR never begins like this.
    let mut plain = Vec::new();
    let unpacked = zstd::Decoder::new(message).and_then(|from| from.take(HEAD_BYTES).read_to_end(&mut plain));
    // What came before an error is enough: the message may have been cut.
    drop(unpacked);
    read(place, &plain).unwrap_or(Head::Unreadable)
}

fn read(place: Place, message: &[u8]) -> Option<Head> {
    let mut from = match place.format {
        Format::Ros1 => Numbers { bytes: message, big: false },
        Format::Cdr => {
            // DDS-XTypes 1.3, section 7.6.2.1.2; 0x10 and 0x11 are what its drafts had. Of the parametrized ones
            // (PL_, D_) a type's first member is not the first of its bytes.
            let (big, is_xcdr2) = match message.first_chunk::<2>()? {
                [0, 0] => (true, false),
                [0, 1] => (false, false),
                [0, 0x06 | 0x10] => (true, true),
                [0, 0x07 | 0x11] => (false, true),
                _ => return None,
            };
            let mut from = Numbers { bytes: message.get(4..)?, big };
            if is_xcdr2 && place.in_sequence {
                // XCDR2 says the length of a sequence of structs before it.
                from.u32()?;
            }
            from
        }
    };
    if place.in_sequence && from.u32()? == 0 {
        return Some(Head::Nothing);
    }
    let sequence = if place.format == Format::Ros1 && place.is_header { Some(from.u32()?) } else { None };
    let (seconds, nanos) = (from.u32()?, from.u32()?);
    // ROS 1 counts without sign.
    let seconds = if place.format == Format::Ros1 { i64::from(seconds) } else { i64::from(seconds as i32) };
    match (seconds, nanos) {
        (0, 0) => Some(Head::Zero),
        (_, 1_000_000_000..) => None,
        _ => Some(Head::At { ns: seconds * 1_000_000_000 + i64::from(nanos), sequence }),
    }
}

/// Numbers of four bytes, one after the other: what stands before a stamp is nothing else.
struct Numbers<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl Numbers<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(if self.big { u32::from_be_bytes(*number) } else { u32::from_le_bytes(*number) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Place = Place { format: Format::Cdr, in_sequence: false, is_header: true };

    fn message(encoding: [u8; 2], numbers: &[u32]) -> Vec<u8> {
        let big = encoding[1].is_multiple_of(2);
        let bytes = numbers.iter().flat_map(|n| if big { n.to_be_bytes() } else { n.to_le_bytes() });
        [encoding[0], encoding[1], 0, 0].into_iter().chain(bytes).collect()
    }

    fn at(ns: i64) -> Head {
        Head::At { ns, sequence: None }
    }

    #[test]
    fn both_byte_orders_and_both_encodings() {
        for encoding in [[0, 0], [0, 1], [0, 6], [0, 7], [0, 0x10], [0, 0x11]] {
            assert_eq!(head(HEADER, &message(encoding, &[1_700_000_000, 5, 7])), at(1_700_000_000_000_000_005));
        }
        for parametrized in [2, 3, 8, 9, 10, 11] {
            assert_eq!(head(HEADER, &message([0, parametrized], &[1_700_000_000, 5])), Head::Unreadable);
        }
    }

    #[test]
    fn the_first_element_of_a_sequence_counts() {
        let place = Place { in_sequence: true, ..HEADER };
        assert_eq!(head(place, &message([0, 1], &[2, 9, 8])), at(9_000_000_008));
        assert_eq!(head(place, &message([0, 7], &[100, 2, 9, 8])), at(9_000_000_008));
        assert_eq!(head(place, &message([0, 1], &[0])), Head::Nothing);
    }

    #[test]
    fn what_is_no_time_is_none() {
        assert_eq!(head(HEADER, &message([0, 1], &[0, 0])), Head::Zero);
        assert_eq!(head(HEADER, &message([0, 1], &[5, 1_000_000_000])), Head::Unreadable);
        assert_eq!(head(HEADER, &message([0, 1], &[5])), Head::Unreadable);
        assert_eq!(head(HEADER, &message([0, 1], &[u32::MAX, 1])), at(-999_999_999));
        assert_eq!(head(HEADER, &[]), Head::Unreadable);
    }

    #[test]
    fn ros_1_has_its_sequence_first() {
        let place = Place { format: Format::Ros1, in_sequence: false, is_header: true };
        let bytes = [7_u32, 3, 4].map(u32::to_le_bytes).concat();
        assert_eq!(head(place, &bytes), Head::At { ns: 3_000_000_004, sequence: Some(7) });
    }

    #[test]
    fn a_message_may_be_compressed_by_itself() {
        let packed = zstd::bulk::compress(&message([0, 1], &[9, 8, 0, 0]), 1).unwrap();
        assert_eq!(head(HEADER, &packed), at(9_000_000_008));
        assert_eq!(head(HEADER, &packed[..6]), Head::Unreadable);
    }
}
