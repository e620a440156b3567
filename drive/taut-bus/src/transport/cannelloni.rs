//! Frames in datagrams, as the daemon `cannelloni` and Wireshark know them (version 2): a header of version, kind, sequence
//! number and count; for each frame its id, length, flags and bytes.

use super::{Frame, ID_MASK, LARGEST_STANDARD};

/// The largest datagram that is understood.
pub(super) const LARGEST: usize = 1500;
const VERSION: u8 = 2;
const DATA: u8 = 0;
const HEADER: usize = 5;
/// In the id: 29 bits.
const EXTENDED: u32 = 0x8000_0000;
/// In the id: remote request or error report; neither carries data for us.
const NO_DATA: u32 = 0x6000_0000;
/// In the length: a CAN-FD frame, with a byte of flags.
const FD: u8 = 0x80;
/// In the flags: bit-rate switch.
const BRS: u8 = 0x01;

/// A datagram with one frame, and its length.
pub(super) fn encode(frame: &Frame, sequence: u8) -> ([u8; HEADER + 6 + 64], usize) {
    let mut bytes = [0; HEADER + 6 + 64];
    let mut padded = frame.clone();
    padded.pad_to_dlc();
    let id = padded.arbitration_id;
    let flagged = if id > LARGEST_STANDARD { id | EXTENDED } else { id };
    bytes[..HEADER].copy_from_slice(&[VERSION, DATA, sequence, 0, 1]);
    bytes[5..9].copy_from_slice(&flagged.to_be_bytes());
    bytes[9] = padded.size | FD;
    bytes[10] = if padded.brs_enabled() { BRS } else { 0 };
    let end = 11 + padded.payload().len();
    bytes[11..end].copy_from_slice(padded.payload());
    (bytes, end)
}

/// A datagram whose frames are taken out one by one.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub bytes: Box<[u8; LARGEST]>,
    length: usize,
    at: usize,
    left: u16,
}

impl Datagram {
    pub fn new() -> Datagram {
        Datagram { bytes: Box::new([0; LARGEST]), length: 0, at: 0, left: 0 }
    }

    /// `length` bytes have come. What is not of our version and kind holds no frames.
    pub fn filled(&mut self, length: usize) {
        (self.length, self.at) = (length, HEADER);
        self.left = match &self.bytes[..length] {
            [VERSION, DATA, _, high, low, ..] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        };
    }

    /// The next frame with data; a datagram that ends before its frames do, ends.
    pub fn next(&mut self, frame: &mut Frame) -> bool {
        while self.left > 0 {
            self.left -= 1;
            match self.take(frame) {
                Some(true) => return true,
                Some(false) => {}
                None => self.left = 0,
            }
        }
        false
    }

    /// False: a frame without data for us. `None`: nothing whole is left.
    fn take(&mut self, frame: &mut Frame) -> Option<bool> {
        let rest = &self.bytes[self.at..self.length];
        let (id, rest) = rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first()?;
        let flagged = u32::from_be_bytes(*id);
        let is_fd = length & FD != 0;
        let length = usize::from(length & !FD);
        let (flags, rest) = if is_fd { rest.split_first()? } else { (&0, rest) };
        if flagged & NO_DATA != 0 {
            // A remote request has a length and no bytes.
            let bytes = if flagged & 0x4000_0000 != 0 { 0 } else { length };
            self.at = self.length - rest.get(bytes..)?.len();
            return Some(false);
        }
        let data = rest.get(..length).filter(|_| length <= 64)?;
        *frame = Frame::new();
        frame.arbitration_id = flagged & ID_MASK;
        frame.data[..length].copy_from_slice(data);
        frame.size = length as u8;
        frame.set_fdcan(is_fd);
        frame.set_brs(flags & BRS != 0);
        self.at = self.length - (rest.len() - length);
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(bytes: &[u8]) -> Datagram {
        let mut datagram = Datagram::new();
        datagram.bytes[..bytes.len()].copy_from_slice(bytes);
        datagram.filled(bytes.len());
        datagram
    }

    #[test]
    fn several_frames_and_kinds_in_one_datagram() {
        // A remote request, a classic frame, an FD frame with 29 bits of id.
        let bytes = [
            &[2, 0, 7, 0, 3][..],
            &[0x40, 0, 1, 0x23, 4],
            &[0, 0, 1, 0, 2, 0xaa, 0xbb],
            &[0x80, 0, 0x80, 0x01, 0x83, 1, 1, 2, 3],
        ]
        .concat();
        let (mut datagram, mut frame) = (filled(&bytes), Frame::new());
        assert!(datagram.next(&mut frame));
        assert_eq!((frame.arbitration_id, frame.payload(), frame.fdcan_enabled()), (0x100, &[0xaa, 0xbb][..], false));
        assert!(datagram.next(&mut frame));
        assert_eq!((frame.arbitration_id, frame.payload(), frame.brs_enabled()), (0x8001, &[1, 2, 3][..], true));
        assert!(!datagram.next(&mut frame));
    }

    proptest! {
        #[test]
        fn a_frame_survives(id in 0..=ID_MASK, data in prop::collection::vec(any::<u8>(), 0..=64), sequence: u8) {
            let mut sent = Frame::new();
            sent.arbitration_id = id;
            sent.data[..data.len()].copy_from_slice(&data);
            sent.size = data.len() as u8;
            let (bytes, length) = encode(&sent, sequence);
            sent.pad_to_dlc();
            let (mut datagram, mut frame) = (filled(&bytes[..length]), Frame::new());
            prop_assert!(datagram.next(&mut frame));
            prop_assert_eq!((frame.arbitration_id, frame.payload()), (id, sent.payload()));
            prop_assert!(!datagram.next(&mut frame));
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300), ours: bool) {
            let mut bytes = bytes;
            if ours && bytes.len() > 1 { bytes[..2].copy_from_slice(&[VERSION, DATA]); }
            let (mut datagram, mut frame) = (filled(&bytes), Frame::new());
            let mut n = 0;
            while datagram.next(&mut frame) { n += 1; }
            prop_assert!(n <= bytes.len() / 5);
        }
    }
}
